"""`/subjects/{subject}/versions`: registering, reading, deleting, tagging. Start at `Versions`."""

from __future__ import annotations

import re

from moldau.http.calls import Answer, Call
from moldau.http.endpoints import flag
from moldau.registry.decisions.candidates import retag_request
from moldau.registry.decisions.deletion import delete_version
from moldau.registry.entities import SchemaVersion
from moldau.registry.queries import LATEST, find_version, find_versions, parse_version
from moldau.registry.requests import RegisterRequest, TagRequest
from moldau.registry.routes import document_schemas as documents
from moldau.registry.routes.declarations import serves
from moldau.registry.routes.documents import register_document
from moldau.registry.routes.parameters import (
    DELETED,
    DELETED_ONLY,
    FIND_TAGS,
    FORMAT,
    NORMALIZE,
    PAGE,
    PERMANENT,
    REFERENCE_FORMAT,
)
from moldau.registry.routes.resource import Resource, page_answer

__all__ = ["Versions"]

FORCE = flag("force", "Whether compatibility is not checked.")
DELETED_AS_NEGATIVE = flag("deletedAsNegative", "List deleted ones as negative.")
_DESCRIPTOR = re.compile(r"[A-Za-z0-9+/=\s]+")
"""Base64, the encoding of descriptors; the text of a schema always has other characters."""


class Versions(Resource):
    tag = "Subjects"

    @serves(
        "GET",
        "/subjects/{subject}/versions",
        "The versions of a subject, in order.",
        parameters=(DELETED, DELETED_ONLY, DELETED_AS_NEGATIVE, *PAGE),
        reply=documents.NUMBERS,
    )
    async def list_versions(self, call: Call) -> Answer:
        is_negative = call.flag("deletedAsNegative")
        versions = find_versions(
            self.state,
            self.subject(call),
            with_deleted=call.flag("deleted") or is_negative,
            only_deleted=call.flag("deletedOnly"),
        )
        return page_answer(call, [-one.version if one.is_deleted and is_negative else one.version for one in versions])

    @serves(
        "POST",
        "/subjects/{subject}/versions",
        "Register a schema; one that is there already keeps its id and version.",
        parameters=(NORMALIZE, FORMAT, FORCE),
        body=documents.REGISTER_REQUEST,
        reply=documents.REGISTER_RESPONSE,
        refuses=(409, 415, 422, 429, 500),
    )
    async def register(self, call: Call) -> Answer:
        """Every instance answers for registered schemas; only the leader registers new ones."""
        request = RegisterRequest.of(await call.document())
        schema = await self.registry.find_registered(self.subject(call), request, normalize=call.flag("normalize"))
        if schema is not None:
            return await self._registration_answer(call, schema, request)
        return await self.by_leader(self._register)(call)

    async def _register(self, call: Call) -> Answer:
        request = RegisterRequest.of(await call.document())
        schema = await self.registry.register(
            self.subject(call), request, normalize=call.flag("normalize"), force=call.flag("force")
        )
        return await self._registration_answer(call, schema, request)

    @serves(
        "GET",
        "/subjects/{subject}/versions/{version}",
        "One version as a whole.",
        parameters=(FORMAT, REFERENCE_FORMAT, DELETED, FIND_TAGS),
        reply=documents.SCHEMA,
        refuses=(422, 429),
    )
    async def get_version(self, call: Call) -> Answer:
        return await self.whole(call, self._version(call))

    @serves(
        "DELETE",
        "/subjects/{subject}/versions/{version}",
        "Delete a version: softly, or for good.",
        parameters=(PERMANENT,),
        reply=documents.NUMBER,
        refuses=(422, 429, 500),
        by_leader=True,
    )
    async def delete_version(self, call: Call) -> Answer:
        subject, permanent = self.subject(call), call.flag("permanent")
        version = parse_version(call.parts["version"])
        return Answer(
            await self.registry.change(lambda state: delete_version(state, subject, version, permanent=permanent))
        )

    @serves(
        "GET",
        "/subjects/{subject}/versions/{version}/schema",
        "The text of one version, as it is.",
        parameters=(FORMAT, DELETED),
        reply=documents.ANYTHING,
        refuses=(422, 429),
    )
    async def get_version_text(self, call: Call) -> Answer:
        return await self.text_alone(call, self._version(call))

    @serves(
        "GET",
        "/subjects/{subject}/versions/{version}/referencedby",
        "Ids of the schemas that refer to a version.",
        parameters=(DELETED, *PAGE),
        reply=documents.NUMBERS,
        refuses=(422,),
    )
    async def referenced_by(self, call: Call) -> Answer:
        schema = self._version(call)
        users = self.state.referrers(schema.subject, schema.version)
        return page_answer(call, sorted({user.id for user in users if call.flag("deleted") or not user.is_deleted}))

    @serves(
        "POST",
        "/subjects/{subject}/versions/{version}/tags",
        "Make a new version of the same text with other metadata or rules.",
        body=documents.TAG_REQUEST,
        reply=documents.REGISTER_RESPONSE,
        refuses=(409, 415, 422, 429, 500),
        by_leader=True,
    )
    async def tag_version(self, call: Call) -> Answer:
        """Register a new version of the same text with different metadata or rules."""
        request = TagRequest.of(await call.document())
        old = self._version(call)
        before = request.new_version - 1 if request.new_version > 1 else LATEST
        previous = find_version(self.state, old.subject, before)
        schema = await self.registry.register(
            old.subject, retag_request(old, previous, request), normalize=False, force=False
        )
        return Answer(register_document(schema, self.dialect))

    def _version(self, call: Call) -> SchemaVersion:
        version = parse_version(call.parts["version"])
        return find_version(self.state, self.subject(call), version, with_deleted=call.flag("deleted"))

    async def _registration_answer(self, call: Call, schema: SchemaVersion, request: RegisterRequest) -> Answer:
        """The response. A Protobuf descriptor is returned as sent: the client keeps this text and parses it later."""
        is_descriptor = schema.schema_type == "PROTOBUF" and _DESCRIPTOR.fullmatch(request.schema)
        text = request.schema if is_descriptor else await self.text(call, schema)
        return Answer(register_document(schema, self.dialect, text=text))
