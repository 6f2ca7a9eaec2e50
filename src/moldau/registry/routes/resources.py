"""What all endpoints share: the registry, its dialect, who is meant by a path, and whose task a write is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint, Parameter
from moldau.registry.entities import SchemaVersion
from moldau.registry.errors import InvalidSchemaTextError, UnknownLeaderError
from moldau.registry.registry import Registry
from moldau.registry.scopes import alias_target, scope_of
from moldau.registry.settings import Dialect
from moldau.registry.state import State
from moldau.registry.subjects import DEFAULT_CONTEXT, QualifiedSubject, context_name, in_context
from moldau.schemas.errors import SchemaError

__all__ = [
    "CONTEXT",
    "FORWARDED",
    "OFFSET_HEADER",
    "SUBJECT",
    "VERSION",
    "Forward",
    "Resources",
    "refusals",
    "within_contexts",
]

FORWARDED = "x-forward"
OFFSET_HEADER = "x-moldau-offset"
"""On answers to writes: how far a follower must have read to know what was written."""

Forward = Callable[[Call, str], Awaitable[Answer]]
"""Sends a call to the leader at a URL."""

SUBJECT = Parameter("subject", "A subject, plain or qualified as `:.context:name`.", {"type": "string", "minLength": 1})
VERSION = Parameter(
    "version",
    "A number from 1, or `latest`.",
    {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 2**31 - 1}, {"type": "string", "enum": ["latest", "-1"]}]},
)
CONTEXT = Parameter(
    "context", "A context such as `.lab`.", {"type": "string", "minLength": 1, "pattern": "^\\.[a-z]+$"}
)

_REASONS = {
    400: "The body is not JSON.",
    404: "No such resource.",
    406: "None of the accepted content types can be given.",
    409: "Incompatible with an earlier version (40901; 409 in the 7.x dialect).",
    415: "The body's content type is not understood.",
    422: "The request cannot be done; the error code says why.",
    500: "The topic or the leader cannot be reached (50001 to 50004).",
}


def refusals(*statuses: int) -> dict[int, str]:
    """Statuses that an endpoint may answer with, beside those that any may."""
    return {status: _REASONS[status] for status in (400, 404, 406, *statuses)}


@dataclass(frozen=True, slots=True)
class Resources:
    registry: Registry
    forward: Forward

    @property
    def state(self) -> State:
        return self.registry.state

    @property
    def dialect(self) -> Dialect:
        return self.registry.settings.dialect

    @property
    def defaults(self) -> Mapping[str, Any]:
        return self.registry.settings.config_defaults

    # Who is meant

    def context(self, call: Call) -> str:
        return context_name(call.parts["context"]) if "context" in call.parts else DEFAULT_CONTEXT

    def subject(self, call: Call) -> str:
        """The subject of a path, in the path's context, past its alias."""
        return alias_target(self.state, in_context(self.context(call), call.parts["subject"]))

    def scope(self, call: Call) -> str | None:
        """Whose settings a path is about; an alias is not followed here, it is one of them."""
        return scope_of(in_context(self.context(call), call.parts.get("subject", "")))

    def subject_in_query(self, call: Call) -> str:
        """The `subject` parameter, or the whole context that the path names."""
        subject = call.text("subject")
        if not subject and "context" not in call.parts:
            return ""
        return alias_target(self.state, in_context(self.context(call), subject))

    def prefix(self, call: Call, default: str) -> str:
        """The beginning of names that are listed; a path within a context lists that one."""
        if "context" not in call.parts:
            return call.text("subjectPrefix", default)
        return QualifiedSubject(self.context(call), "").text + call.text("subjectPrefix")

    # Texts

    def text(self, schema: SchemaVersion, format_name: str) -> str:
        """A schema's text in a format; the stored one unless another is asked for."""
        if not format_name or format_name.lower() == "default":
            return schema.schema
        try:
            return self.registry.parser.parse_version(self.state, schema).rendered(format_name)
        except (SchemaError, InvalidSchemaTextError):
            return schema.schema

    # Writes

    def writing(self, handle: Callable[[Call], Awaitable[Answer]]) -> Callable[[Call], Awaitable[Answer]]:
        """An endpoint that only the leader serves: elsewhere the call is handed on to it."""

        async def lead_or_forward(call: Call) -> Answer:
            registry = self.registry
            await registry.leadership.settled(registry.settings["kafkastore.timeout.ms"] / 1000)
            if registry.leadership.is_leader:
                answer = await handle(call)
                return answer._replace(headers={OFFSET_HEADER: str(registry.store.applied_offset)})
            return await self._forwarded(call, registry.leadership.leader_url)

        return lead_or_forward

    async def _forwarded(self, call: Call, url: str | None) -> Answer:
        if url is None or FORWARDED in call.headers:
            raise UnknownLeaderError("The leader is changing; ask again in a moment")
        answer = await self.forward(call, url)
        offset = (answer.headers or {}).get(OFFSET_HEADER, "")
        if offset.lstrip("-").isdigit():
            await self.registry.store.reached(int(offset))
        return answer


def within_contexts(endpoints: list[Endpoint]) -> list[Endpoint]:
    """The same endpoints once more below `/contexts/{context}`."""
    return [
        replace(
            endpoint,
            path=f"/contexts/{{context}}{endpoint.path}",
            parts={**endpoint.parts, "context": CONTEXT},
            tag=f"{endpoint.tag} within a context",
        )
        for endpoint in endpoints
    ]
