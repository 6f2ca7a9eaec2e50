"""The decorator that declares a handler's endpoint, right above the method that handles it.

Start at `serves`; `Resource.endpoints` turns the declarations into endpoints for routing and OpenAPI.
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
    """Optional parts of an endpoint's declaration, besides method, path and summary."""

    parameters: tuple[Parameter, ...]
    body: Mapping[str, Any]
    reply: Mapping[str, Any]
    status: int
    media_types: MediaTypes
    refuses: tuple[int, ...]
    """Error statuses besides those that any endpoint may return."""
    by_leader: bool
    """Whether only the leader handles it, as for writes; other instances forward the call."""


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
    """Decorator that declares the endpoint of a `Resource` method; may be repeated for several endpoints."""

    def mark(handler: Handler) -> Handler:
        # The lowest decorator is applied first; prepending keeps the order in which they are written.
        setattr(handler, _SERVED, (Served(method, path, summary, description), *served_by(handler)))
        return handler

    return mark


def served_by(member: object) -> tuple[Served, ...]:
    """The endpoints declared for a class member; empty if it is not a handler."""
    served: tuple[Served, ...] = getattr(member, _SERVED, ())
    return served


def refusals(*statuses: int) -> dict[int, str]:
    """Error statuses of an endpoint with descriptions: the given ones and those of any endpoint."""
    return {status: _REASONS[status] for status in (400, 404, 406, *statuses)}
