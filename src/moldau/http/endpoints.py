"""The endpoints of a service as a table: routing, content negotiation and OpenAPI are derived from its rows.

Start at `Endpoint`; `WebSocketEndpoint` is its counterpart for WebSockets, `Routes` finds the row of a path.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from moldau.http.calls import Answer, Call
from moldau.http.errors import HttpError
from moldau.http.negotiation import MediaTypes
from moldau.http.sockets import Socket

__all__ = [
    "UNLIMITED",
    "AnyEndpoint",
    "Endpoint",
    "Found",
    "Handle",
    "Parameter",
    "Routes",
    "WebSocketEndpoint",
    "flag",
    "number",
    "text",
]

Handle = Callable[[Call], Awaitable[Answer]]
HandleSocket = Callable[[Socket], Awaitable[None]]
Document = Mapping[str, Any]

UNLIMITED = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter or a path parameter."""

    name: str
    description: str
    schema: Document
    is_repeatable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One row. `negotiation.negotiate` chooses among rows with the same method and path by their `media_types`."""

    method: str
    path: str
    """With `{names}` for path parameters; a parameter may contain an encoded slash."""
    handle: Handle
    summary: str
    parameters: tuple[Parameter, ...] = ()
    """Query parameters; path parameters are named in `path` and described in `parts`."""
    parts: Mapping[str, Parameter] = field(default_factory=dict)
    body: Document | None = None
    """The JSON schema of the body, if any; of one object, if the body is a stream of objects."""
    reply: Document | None = None
    """The JSON schema of a successful answer; `None` for an empty one."""
    status: int = 200
    refusals: Mapping[int, str] = field(default_factory=dict)
    """Error statuses, with the numeric codes and reasons of each."""
    tag: str = ""
    media_types: MediaTypes | None = None
    """Overrides those of the service."""
    is_public: bool = False
    """Whether it needs no authentication, in a service that authenticates."""
    is_stream: bool = False
    """Whether the handler reads the body with `Call.stream` or `Call.objects` while it answers.

    Such a body has no limit in size or time unless `max_body_bytes` and `body_idle_s` are set.
    """
    max_body_bytes: int | None = None
    """The largest body; overrides the service's limit."""
    body_idle_s: float | None = None
    """How long the body may stall; overrides the service's limit."""
    state_token: Callable[[], Hashable] | None = None
    """For endpoints whose successful answer depends only on the request and a state: a token that changes with the
    state.

    As long as it stays the same, the answer to the same request is served from the cache.
    """

    @property
    def has_body(self) -> bool:
        return self.body is not None or self.is_stream


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSocketEndpoint:
    path: str
    handle: HandleSocket
    summary: str
    parameters: tuple[Parameter, ...] = ()
    parts: Mapping[str, Parameter] = field(default_factory=dict)
    tag: str = ""
    is_public: bool = False
    allowed_origins: frozenset[str] = frozenset()
    """Sites, such as `https://console.example`, whose pages may connect, besides those of this server."""


AnyEndpoint = Endpoint | WebSocketEndpoint


def flag(name: str, description: str) -> Parameter:
    return Parameter(name, description, {"type": "boolean", "default": False})


def number(name: str, description: str, default: int) -> Parameter:
    return Parameter(name, description, {"type": "integer", "format": "int32", "default": default})


def text(name: str, description: str, **schema: Any) -> Parameter:
    return Parameter(name, description, {"type": "string", **schema})


class Found(NamedTuple):
    endpoints: tuple[Endpoint, ...]
    """All rows of the method and path, in the order of the table."""
    parts: Mapping[str, str]


class FoundSocket(NamedTuple):
    endpoint: WebSocketEndpoint
    parts: Mapping[str, str]


class _Node:
    __slots__ = ("endpoints", "fixed", "names", "socket", "varying")

    def __init__(self) -> None:
        self.fixed: dict[bytes, _Node] = {}
        self.varying: _Node | None = None
        self.endpoints: dict[str, tuple[Endpoint, ...]] = {}
        self.socket: WebSocketEndpoint | None = None
        self.names: tuple[str, ...] = ()

    @property
    def is_end(self) -> bool:
        return bool(self.endpoints) or self.socket is not None

    def parts(self, values: tuple[bytes, ...]) -> Mapping[str, str]:
        return {name: _text(value) for name, value in zip(self.names, values, strict=True)}


class Routes:
    """Finds the endpoints of a path by its encoded segments: a segment that contains `%2F` stays one segment.

    Fixed segments win over parameters. Built once; a lookup costs one step per segment.
    """

    def __init__(self, endpoints: Iterable[AnyEndpoint]) -> None:
        self._root = _Node()
        for endpoint in endpoints:
            self._add(endpoint)

    def find(self, method: str, raw_path: bytes) -> Found:
        """The endpoints for a path, still encoded; raises 404, 405 or 426, and 400 for a path that is not text."""
        node, values = self._node(raw_path)
        endpoints = node.endpoints.get("GET" if method == "HEAD" else method)
        if endpoints is None:
            if method == "GET" and node.socket is not None:
                raise HttpError(
                    426, "This path is a WebSocket", headers={"upgrade": "websocket", "connection": "Upgrade"}
                )
            raise HttpError(405, headers={"Allow": ", ".join(sorted(node.endpoints))})
        return Found(endpoints, node.parts(values))

    def find_socket(self, raw_path: bytes) -> FoundSocket:
        """The WebSocket endpoint for a path; raises 404, and 400 for a path that is not text."""
        node, values = self._node(raw_path)
        if node.socket is None:
            raise HttpError(404, "This path is not a WebSocket")
        return FoundSocket(node.socket, node.parts(values))

    def _node(self, raw_path: bytes) -> tuple[_Node, tuple[bytes, ...]]:
        parts = raw_path.split(b"/")[1:]
        if parts and not parts[-1]:
            parts.pop()
        found = _match(self._root, parts, 0, ())
        if found is None:
            raise HttpError(404)
        return found

    def _add(self, endpoint: AnyEndpoint) -> None:
        node, names = self._root, []
        for word in endpoint.path.split("/")[1:]:
            if word.startswith("{"):
                names.append(word.strip("{}"))
                node.varying = node.varying or _Node()
                node = node.varying
            elif word:
                node = node.fixed.setdefault(word.encode(), _Node())
        if node.is_end and node.names != tuple(names):
            raise ValueError(f"{endpoint.path}: the same path has other names for its parts: {', '.join(node.names)}")
        node.names = tuple(names)
        if isinstance(endpoint, WebSocketEndpoint):
            node.socket = endpoint
        else:
            node.endpoints[endpoint.method] = (*node.endpoints.get(endpoint.method, ()), endpoint)


def _match(
    node: _Node, parts: list[bytes], position: int, values: tuple[bytes, ...]
) -> tuple[_Node, tuple[bytes, ...]] | None:
    if position == len(parts):
        return (node, values) if node.is_end else None
    part = parts[position]
    fixed = node.fixed.get(part)
    if fixed is not None:
        found = _match(fixed, parts, position + 1, values)
        if found is not None:
            return found
    if node.varying is None:
        return None
    return _match(node.varying, parts, position + 1, (*values, part))


def _text(part: bytes) -> str:
    try:
        return (unquote_to_bytes(part) if b"%" in part else part).decode()
    except UnicodeDecodeError:
        raise HttpError(400, "The path is not valid UTF-8") from None
