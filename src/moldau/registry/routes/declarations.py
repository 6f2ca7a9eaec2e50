"""How a handler says what it serves: the endpoint is described right above the method that answers it.

Start at `serves`; `Resource.endpoints` makes rows for routing and OpenAPI of the descriptions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar, Unpack

from moldau.http.calls import Answer
from moldau.http.endpoints import Endpoint, Handle, Parameter
from moldau.http.negotiation import MediaTypes
from moldau.registry.routes.parameters import parts_of

__all__ = ["Description", "Handler", "Served", "refusals", "served_by", "serves"]

Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Answer]])

_SERVED = "served_endpoints"
_REASONS = {
    400: "The body is not JSON.",
    404: "No such resource.",
    406: "None of the accepted content types can be given.",
    409: "Incompatible with an earlier version (40901; 409 in the 7.x dialect).",
    415: "The body's content type is not understood.",
    429: "Too many schemas wait to be parsed and compared.",
    422: "The request cannot be done; the error code says why.",
    500: "The topic or the leader cannot be reached (50001 to 50004).",
}


class Description(TypedDict, total=False):
    """What may be said of an endpoint beside its method, path and summary."""

    parameters: tuple[Parameter, ...]
    body: Mapping[str, Any]
    reply: Mapping[str, Any]
    status: int
    media_types: MediaTypes
    refuses: tuple[int, ...]
    """Statuses of refusals beside those that any endpoint may answer with."""
    by_leader: bool
    """Whether it writes, as only the leader does; any other instance hands the call on."""


@dataclass(frozen=True, slots=True)
class Served:
    method: str
    path: str
    summary: str
    description: Description

    @property
    def is_by_leader(self) -> bool:
        return self.description.get("by_leader", False)

    def endpoint(self, handle: Handle, *, tag: str) -> Endpoint:
        said = self.description
        return Endpoint(
            method=self.method,
            path=self.path,
            handle=handle,
            summary=self.summary,
            parameters=said.get("parameters", ()),
            parts=parts_of(self.path),
            body=said.get("body"),
            reply=said.get("reply"),
            status=said.get("status", 200),
            refusals=refusals(*said.get("refuses", ())),
            tag=tag,
            media_types=said.get("media_types"),
        )


def serves(method: str, path: str, summary: str, **description: Unpack[Description]) -> Callable[[Handler], Handler]:
    """Say of a method of a `Resource` which endpoint it answers; said more than once, it answers them all."""

    def mark(handler: Handler) -> Handler:
        # The lowest decorator is applied first: in front of it comes what is written above it.
        setattr(handler, _SERVED, (Served(method, path, summary, description), *served_by(handler)))
        return handler

    return mark


def served_by(member: object) -> tuple[Served, ...]:
    """What was said of a member of a class; nothing of one that is no handler."""
    served: tuple[Served, ...] = getattr(member, _SERVED, ())
    return served


def refusals(*statuses: int) -> dict[int, str]:
    """Statuses that an endpoint may answer with, beside those that any may."""
    return {status: _REASONS[status] for status in (400, 404, 406, *statuses)}
