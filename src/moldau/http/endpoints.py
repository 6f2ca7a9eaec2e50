"""What a service offers, as a table: each row is routed, negotiated and described in OpenAPI from the same words.

Start at `Endpoint`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.http.calls import Answer, Call

__all__ = ["Endpoint", "Handle", "Parameter", "flag", "number", "text"]

Handle = Callable[[Call], Awaitable[Answer]]
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One query parameter, or one part of the path."""

    name: str
    description: str
    schema: Document
    is_repeatable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    method: str
    path: str
    """With `{names}` for the parts that vary; a part may hold an encoded slash."""
    handle: Handle
    summary: str
    parameters: tuple[Parameter, ...] = ()
    """Query parameters; parts of the path are found in `path` and described in `parts`."""
    parts: Mapping[str, Parameter] = field(default_factory=dict)
    body: Document | None = None
    """The JSON schema of the body, for those that take one."""
    reply: Document | None = None
    """The JSON schema of a good answer; `None` where there is nothing in it."""
    status: int = 200
    refusals: Mapping[int, str] = field(default_factory=dict)
    """Statuses of refusals, with the numeric codes and reasons behind each."""
    tag: str = ""
    media_types: tuple[str, ...] = ()
    """Content types of the answer where they are not the service's."""
    moment: Callable[[], Hashable] | None = None
    """For endpoints whose good answer depends on the request and a state alone: a token that changes with the state.

    As long as it stays the same, the answer to the same request is given again without asking.
    """


def flag(name: str, description: str) -> Parameter:
    return Parameter(name, description, {"type": "boolean", "default": False})


def number(name: str, description: str, default: int) -> Parameter:
    return Parameter(name, description, {"type": "integer", "format": "int32", "default": default})


def text(name: str, description: str, **schema: Any) -> Parameter:
    return Parameter(name, description, {"type": "string", **schema})
