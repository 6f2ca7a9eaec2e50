"""Base class of all resources: resolves the subject of a path, renders schemas, and forwards writes to the leader.

Start at `Resource`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint, Handle
from moldau.http.forwarding import Forward, ForwardingFailedError
from moldau.registry.entities import SchemaVersion
from moldau.registry.errors import ForwardingError, InvalidSchemaTextError, UnknownLeaderError
from moldau.registry.queries import page
from moldau.registry.registry import Registry
from moldau.registry.routes.declarations import served_by
from moldau.registry.routes.documents import schema_document
from moldau.registry.routes.parameters import CONTEXT
from moldau.registry.scopes import alias_target, scope_of
from moldau.registry.settings import Dialect
from moldau.registry.state import State
from moldau.registry.subjects import DEFAULT_CONTEXT, QualifiedSubject, context_name, in_context
from moldau.schemas.errors import SchemaError

__all__ = ["FORWARDED", "OFFSET_HEADER", "Resource", "page_answer", "qualifies_references", "within_contexts"]

FORWARDED = "x-forward"
"""Request header: set on requests forwarded by another instance."""
OFFSET_HEADER = "x-moldau-offset"
"""Response header of writes: the offset a follower must have applied before it has the written state."""


class Resource:
    """The handlers of the endpoints below a path, each a method with a `serves` decorator."""

    tag: ClassVar[str]
    """The OpenAPI tag of the endpoints."""

    def __init__(self, registry: Registry, forward: Forward) -> None:
        self.registry = registry
        self._forward = forward

    def endpoints(self) -> list[Endpoint]:
        """The endpoints of this class, in source order."""
        endpoints = []
        for name, member in vars(type(self)).items():
            for served in served_by(member):
                handle: Handle = getattr(self, name)
                endpoints.append(
                    served.endpoint(self.by_leader(handle) if served.is_by_leader else handle, tag=self.tag)
                )
        return endpoints

    @property
    def state(self) -> State:
        return self.registry.state

    @property
    def dialect(self) -> Dialect:
        return self.registry.settings.dialect

    @property
    def defaults(self) -> Mapping[str, Any]:
        return self.registry.settings.config_defaults

    # Subjects and scopes

    def context(self, call: Call) -> str:
        return context_name(call.parts["context"]) if "context" in call.parts else DEFAULT_CONTEXT

    def subject(self, call: Call) -> str:
        """The subject of a path, in the path's context; an alias is resolved."""
        return alias_target(self.state, in_context(self.context(call), call.parts["subject"]))

    def scope(self, call: Call) -> str | None:
        """The scope whose settings a path addresses; an alias is not resolved here, since it is itself a setting."""
        return scope_of(in_context(self.context(call), call.parts.get("subject", "")))

    def subject_in_query(self, call: Call) -> str:
        """The `subject` query parameter, or the whole context that the path names."""
        subject = call.text("subject")
        if not subject and "context" not in call.parts:
            return ""
        return alias_target(self.state, in_context(self.context(call), subject))

    def prefix(self, call: Call, default: str) -> str:
        """The prefix of the subjects to list; a path within a context lists only that context."""
        if "context" not in call.parts:
            return call.text("subjectPrefix", default)
        return QualifiedSubject(self.context(call), "").text + call.text("subjectPrefix")

    # Rendering schemas

    async def text(self, call: Call, schema: SchemaVersion) -> str:
        """A schema's text in the requested format; the stored text if it has no such format."""
        format_name = call.text("format")
        if not format_name or format_name.lower() == "default":
            return schema.schema
        parser = self.registry.parser
        try:
            return await self.registry.examine(lambda state: parser.parse_version(state, schema).render(format_name))
        except (SchemaError, InvalidSchemaTextError):
            return schema.schema

    async def text_alone(self, call: Call, schema: SchemaVersion) -> Answer:
        return Answer(content=(await self.text(call, schema)).encode())

    async def whole(self, call: Call, schema: SchemaVersion) -> Answer:
        text, qualifies = await self.text(call, schema), qualifies_references(call)
        return Answer(schema_document(schema, self.dialect, text=text, qualifies=qualifies))

    # Writes

    def by_leader(self, handle: Handle) -> Handle:
        """A handler that runs on the leader only; other instances forward the call to the leader."""

        async def lead_or_forward(call: Call) -> Answer:
            registry = self.registry
            await registry.leadership.wait_for_leader(registry.settings["kafkastore.timeout.ms"] / 1000)
            if registry.leadership.is_leader:
                answer = await handle(call)
                return answer._replace(headers={OFFSET_HEADER: str(registry.store.applied_offset)})
            return await self._answer_of_leader(call, registry.leadership.leader_url)

        return lead_or_forward

    async def _answer_of_leader(self, call: Call, url: str | None) -> Answer:
        if url is None or FORWARDED in call.headers:
            raise UnknownLeaderError("The leader is changing; try again in a moment")
        try:
            answer = await self._forward(call, url)
        except ForwardingFailedError as error:
            raise ForwardingError(str(error)) from None
        offset = (answer.headers or {}).get(OFFSET_HEADER, "")
        if offset.lstrip("-").isdigit():
            await self.registry.store.wait_until_applied(int(offset))
        return answer


def page_answer(call: Call, items: Sequence[Any]) -> Answer:
    """The page of a list that a call requests."""
    return Answer(page(items, call.number("offset", 0), call.number("limit", -1)))


def qualifies_references(call: Call) -> bool:
    return call.text("referenceFormat").lower() == "qualified"


def within_contexts(endpoints: list[Endpoint]) -> list[Endpoint]:
    """The endpoints, copied to paths below `/contexts/{context}`."""
    return [
        replace(
            endpoint,
            path=f"/contexts/{{context}}{endpoint.path}",
            parts={**endpoint.parts, "context": CONTEXT},
            tag=f"{endpoint.tag} within a context",
        )
        for endpoint in endpoints
    ]
