"""`/subjects`: listing subjects, looking up a schema, deleting. Start at `Subjects`.

Paths below `/subjects/{subject}/versions` are in `versions`.
"""

from __future__ import annotations

from functools import partial

from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Parameter, text
from moldau.registry.decisions.deletion import delete_subject
from moldau.registry.decisions.look_up import look_up
from moldau.registry.queries import find_latest_with, subjects_below
from moldau.registry.requests import RegisterRequest
from moldau.registry.routes import document_schemas as documents
from moldau.registry.routes.declarations import serves
from moldau.registry.routes.parameters import DELETED, DELETED_ONLY, FORMAT, NORMALIZE, PAGE, PERMANENT
from moldau.registry.routes.resource import Resource, page_answer
from moldau.registry.subjects import WILDCARD

__all__ = ["Subjects"]

KEY = Parameter("key", "Names of properties.", {"type": "string"}, is_repeatable=True)
VALUE = Parameter("value", "Their values, in the same order.", {"type": "string"}, is_repeatable=True)


class Subjects(Resource):
    tag = "Subjects"

    @serves(
        "GET",
        "/subjects",
        "Names of subjects, of all contexts unless a prefix says otherwise.",
        parameters=(text("subjectPrefix", "How names begin.", default=WILDCARD), DELETED, DELETED_ONLY, *PAGE),
        reply=documents.NAMES,
    )
    async def list_subjects(self, call: Call) -> Answer:
        names = subjects_below(
            self.state,
            self.prefix(call, WILDCARD),
            with_deleted=call.flag("deleted"),
            only_deleted=call.flag("deletedOnly"),
        )
        return page_answer(call, names)

    @serves(
        "POST",
        "/subjects/{subject}",
        "The version of a subject that is the given schema.",
        parameters=(NORMALIZE, FORMAT, DELETED),
        body=documents.REGISTER_REQUEST,
        reply=documents.SCHEMA,
        refuses=(415, 422, 429),
    )
    async def look_up(self, call: Call) -> Answer:
        request = RegisterRequest.of(await call.document())
        search = partial(
            look_up,
            parser=self.registry.parser,
            subject=self.subject(call),
            request=request,
            defaults=self.defaults,
            normalize=call.flag("normalize"),
            with_deleted=call.flag("deleted"),
        )
        return await self.whole(call, await self.registry.examine(search))

    @serves(
        "DELETE",
        "/subjects/{subject}",
        "Delete a subject: softly, or for good.",
        parameters=(PERMANENT,),
        reply=documents.NUMBERS,
        refuses=(422, 429, 500),
        by_leader=True,
    )
    async def delete_subject(self, call: Call) -> Answer:
        subject, permanent = self.subject(call), call.flag("permanent")
        return Answer(await self.registry.change(lambda state: delete_subject(state, subject, permanent=permanent)))

    @serves(
        "GET",
        "/subjects/{subject}/metadata",
        "The newest version whose metadata has all the given properties.",
        parameters=(KEY, VALUE, FORMAT, DELETED),
        reply=documents.SCHEMA,
        refuses=(429,),
    )
    async def get_metadata(self, call: Call) -> Answer:
        wanted = dict(zip(call.texts("key"), call.texts("value"), strict=False))
        schema = find_latest_with(self.state, self.subject(call), wanted, with_deleted=call.flag("deleted"))
        return await self.whole(call, schema)
