"""`/subjects`: names, versions, registering, looking up, deleting. Start at `endpoints`."""

from __future__ import annotations

import re

from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint, Parameter, flag, number, text
from moldau.registry import schemas_of_documents as documents
from moldau.registry.decisions.deletion import delete_subject, delete_version
from moldau.registry.decisions.register import look_up
from moldau.registry.decisions.tags import tagged
from moldau.registry.documents import register_document, schema_document
from moldau.registry.entities import SchemaVersion
from moldau.registry.errors import SchemaNotFoundError
from moldau.registry.queries import (
    LATEST,
    find_latest_with,
    find_version,
    find_versions,
    page,
    parse_version,
    subjects_below,
)
from moldau.registry.requests import RegisterRequest, TagRequest
from moldau.registry.routes.resources import SUBJECT, VERSION, Resources, refusals
from moldau.registry.state import State
from moldau.registry.subjects import WILDCARD

__all__ = ["endpoints"]

DELETED = flag("deleted", "Whether soft-deleted ones count.")
DELETED_ONLY = flag("deletedOnly", "Only soft-deleted ones.")
NORMALIZE = flag("normalize", "Whether the schema is put in its normal form first.")
PERMANENT = flag("permanent", "Whether it goes for good; a soft delete must come first.")
FORMAT = text("format", "Avro: `resolved`; Protobuf: `serialized`, `ignore_extensions`; else the stored text.")
REFERENCE_FORMAT = text("referenceFormat", "`qualified` spells out the context of references.")
FIND_TAGS = Parameter("findTags", "Accepted, and passed over.", {"type": "string"}, is_repeatable=True)
PAGE = (number("offset", "How many to leave out.", 0), number("limit", "How many to give; -1 for all.", -1))
_DESCRIPTOR = re.compile(r"[A-Za-z0-9+/=\s]+")
"""Base64, in which descriptors are sent; a schema's text always has other characters."""
BOTH = {"subject": SUBJECT, "version": VERSION}
ONE = {"subject": SUBJECT}


class _Subjects:
    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    # Reading

    async def list_subjects(self, call: Call) -> Answer:
        names = subjects_below(
            self._resources.state,
            self._resources.prefix(call, WILDCARD),
            with_deleted=call.flag("deleted"),
            only_deleted=call.flag("deletedOnly"),
        )
        return Answer(page(names, call.number("offset", 0), call.number("limit", -1)))

    async def list_versions(self, call: Call) -> Answer:
        is_negative = call.flag("deletedAsNegative")
        versions = find_versions(
            self._resources.state,
            self._resources.subject(call),
            with_deleted=call.flag("deleted") or is_negative,
            only_deleted=call.flag("deletedOnly"),
        )
        numbers = [-one.version if one.is_deleted and is_negative else one.version for one in versions]
        return Answer(page(numbers, call.number("offset", 0), call.number("limit", -1)))

    async def get_version(self, call: Call) -> Answer:
        return self._document(call, self._version(call))

    async def get_version_text(self, call: Call) -> Answer:
        schema = self._version(call)
        return Answer(content=self._resources.text(schema, call.text("format")).encode())

    async def get_metadata(self, call: Call) -> Answer:
        wanted = dict(zip(call.texts("key"), call.texts("value"), strict=False))
        subject = self._resources.subject(call)
        schema = find_latest_with(self._resources.state, subject, wanted, with_deleted=call.flag("deleted"))
        return self._document(call, schema)

    async def referenced_by(self, call: Call) -> Answer:
        schema = self._version(call)
        users = self._resources.state.referrers(schema.subject, schema.version)
        ids = sorted({user.id for user in users if call.flag("deleted") or not user.is_deleted})
        return Answer(page(ids, call.number("offset", 0), call.number("limit", -1)))

    async def look_up(self, call: Call) -> Answer:
        request = RegisterRequest.of(await call.document())
        subject, with_deleted = self._resources.subject(call), call.flag("deleted")
        normalize = call.flag("normalize")

        def search(state: State) -> SchemaVersion:
            parser, defaults = self._resources.registry.parser, self._resources.defaults
            for spelling in state.spellings(subject):
                if state.versions(spelling) if with_deleted else state.latest(spelling):
                    found = look_up(
                        state,
                        parser,
                        spelling,
                        request,
                        defaults=defaults,
                        normalize=normalize,
                        with_deleted=with_deleted,
                    )
                    if found is not None:
                        return found
            find_versions(state, subject, with_deleted=with_deleted)
            raise SchemaNotFoundError

        return self._document(call, await self._resources.registry.examine(search))

    # Writing

    async def register(self, call: Call) -> Answer:
        """Known schemas are told by every instance; only new ones are the leader's."""
        request = RegisterRequest.of(await call.document())
        subject, normalize = self._resources.subject(call), call.flag("normalize")
        registry = self._resources.registry
        schema = await registry.known(subject, request, normalize=normalize)
        if schema is not None:
            return self._registered(call, schema, request)
        return await self._resources.writing(self._register)(call)

    async def _register(self, call: Call) -> Answer:
        request = RegisterRequest.of(await call.document())
        schema = await self._resources.registry.register(
            self._resources.subject(call), request, normalize=call.flag("normalize"), force=call.flag("force")
        )
        return self._registered(call, schema, request)

    async def delete_subject(self, call: Call) -> Answer:
        subject, permanent = self._resources.subject(call), call.flag("permanent")
        change = self._resources.registry.change
        return Answer(await change(lambda state: delete_subject(state, subject, permanent=permanent)))

    async def delete_version(self, call: Call) -> Answer:
        subject, permanent = self._resources.subject(call), call.flag("permanent")
        version = parse_version(call.parts["version"])
        change = self._resources.registry.change
        return Answer(await change(lambda state: delete_version(state, subject, version, permanent=permanent)))

    async def tag(self, call: Call) -> Answer:
        """A new version of the same text with other metadata or rules."""
        request = TagRequest.of(await call.document())
        old = self._version(call)
        previous = find_version(
            self._resources.state, old.subject, request.new_version - 1 if request.new_version > 1 else LATEST
        )
        schema = await self._resources.registry.register(
            old.subject, tagged(old, previous, request), normalize=False, force=False
        )
        return Answer(register_document(schema, self._resources.dialect))

    # Shared

    def _version(self, call: Call) -> SchemaVersion:
        version = parse_version(call.parts["version"])
        subject = self._resources.subject(call)
        return find_version(self._resources.state, subject, version, with_deleted=call.flag("deleted"))

    def _document(self, call: Call, schema: SchemaVersion) -> Answer:
        text = self._resources.text(schema, call.text("format"))
        qualifies = call.text("referenceFormat").lower() == "qualified"
        return Answer(schema_document(schema, self._resources.dialect, text=text, qualifies=qualifies))

    def _registered(self, call: Call, schema: SchemaVersion, request: RegisterRequest) -> Answer:
        """Who sends a Protobuf schema as a descriptor keeps the text of the answer, and reads it as one later."""
        is_descriptor = schema.schema_type == "PROTOBUF" and _DESCRIPTOR.fullmatch(request.schema)
        text = request.schema if is_descriptor else self._resources.text(schema, call.text("format"))
        return Answer(register_document(schema, self._resources.dialect, text=text))


def endpoints(resources: Resources) -> list[Endpoint]:
    subjects, writing = _Subjects(resources), resources.writing
    tag = "Subjects"
    return [
        Endpoint(
            method="GET",
            path="/subjects",
            handle=subjects.list_subjects,
            summary="Names of subjects, of all contexts unless a prefix says otherwise.",
            parameters=(text("subjectPrefix", "How names begin.", default=WILDCARD), DELETED, DELETED_ONLY, *PAGE),
            reply=documents.NAMES,
            refusals=refusals(),
            tag=tag,
        ),
        Endpoint(
            method="POST",
            path="/subjects/{subject}",
            handle=subjects.look_up,
            summary="The version of a subject that is the given schema.",
            parameters=(NORMALIZE, FORMAT, DELETED),
            parts=ONE,
            body=documents.REGISTER_REQUEST,
            reply=documents.SCHEMA,
            refusals=refusals(415, 422),
            tag=tag,
        ),
        Endpoint(
            method="DELETE",
            path="/subjects/{subject}",
            handle=writing(subjects.delete_subject),
            summary="Delete a subject: softly, or for good.",
            parameters=(PERMANENT,),
            parts=ONE,
            reply=documents.NUMBERS,
            refusals=refusals(422, 500),
            tag=tag,
        ),
        Endpoint(
            method="GET",
            path="/subjects/{subject}/metadata",
            handle=subjects.get_metadata,
            summary="The newest version whose metadata has all the given properties.",
            parameters=(
                Parameter("key", "Names of properties.", {"type": "string"}, is_repeatable=True),
                Parameter("value", "Their values, in the same order.", {"type": "string"}, is_repeatable=True),
                FORMAT,
                DELETED,
            ),
            parts=ONE,
            reply=documents.SCHEMA,
            refusals=refusals(),
            tag=tag,
        ),
        Endpoint(
            method="GET",
            path="/subjects/{subject}/versions",
            handle=subjects.list_versions,
            summary="The versions of a subject, in order.",
            parameters=(DELETED, DELETED_ONLY, flag("deletedAsNegative", "List deleted ones as negative."), *PAGE),
            parts=ONE,
            reply=documents.NUMBERS,
            refusals=refusals(),
            tag=tag,
        ),
        Endpoint(
            method="POST",
            path="/subjects/{subject}/versions",
            handle=subjects.register,
            summary="Register a schema; one that is there already keeps its id and version.",
            parameters=(NORMALIZE, FORMAT, flag("force", "Whether compatibility is not checked.")),
            parts=ONE,
            body=documents.REGISTER_REQUEST,
            reply=documents.REGISTER_RESPONSE,
            refusals=refusals(409, 415, 422, 500),
            tag=tag,
        ),
        Endpoint(
            method="GET",
            path="/subjects/{subject}/versions/{version}",
            handle=subjects.get_version,
            summary="One version as a whole.",
            parameters=(FORMAT, REFERENCE_FORMAT, DELETED, FIND_TAGS),
            parts=BOTH,
            reply=documents.SCHEMA,
            refusals=refusals(422),
            tag=tag,
        ),
        Endpoint(
            method="DELETE",
            path="/subjects/{subject}/versions/{version}",
            handle=writing(subjects.delete_version),
            summary="Delete a version: softly, or for good.",
            parameters=(PERMANENT,),
            parts=BOTH,
            reply=documents.NUMBER,
            refusals=refusals(422, 500),
            tag=tag,
        ),
        Endpoint(
            method="GET",
            path="/subjects/{subject}/versions/{version}/schema",
            handle=subjects.get_version_text,
            summary="The text of one version, as it is.",
            parameters=(FORMAT, DELETED),
            parts=BOTH,
            reply=documents.ANYTHING,
            refusals=refusals(422),
            tag=tag,
        ),
        Endpoint(
            method="GET",
            path="/subjects/{subject}/versions/{version}/referencedby",
            handle=subjects.referenced_by,
            summary="Ids of the schemas that refer to a version.",
            parameters=(DELETED, *PAGE),
            parts=BOTH,
            reply=documents.NUMBERS,
            refusals=refusals(422),
            tag=tag,
        ),
        Endpoint(
            method="POST",
            path="/subjects/{subject}/versions/{version}/tags",
            handle=writing(subjects.tag),
            summary="Make a new version of the same text with other metadata or rules.",
            parts=BOTH,
            body=documents.TAG_REQUEST,
            reply=documents.REGISTER_RESPONSE,
            refusals=refusals(409, 415, 422, 500),
            tag=tag,
        ),
    ]
