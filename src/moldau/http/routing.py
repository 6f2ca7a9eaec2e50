"""From a path to an endpoint, by its encoded parts: a part that holds `%2F` stays one part.

Fixed words win over parts that vary. Built once; a lookup costs one step per part. Start at `Routes.find`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from moldau.http.endpoints import Endpoint
from moldau.http.errors import HttpError

__all__ = ["Found", "Routes"]


class Found(NamedTuple):
    endpoint: Endpoint
    parts: Mapping[str, str]


class _Node:
    __slots__ = ("endpoints", "fixed", "names", "varying")

    def __init__(self) -> None:
        self.fixed: dict[bytes, _Node] = {}
        self.varying: _Node | None = None
        self.endpoints: dict[str, Endpoint] = {}
        self.names: tuple[str, ...] = ()


class Routes:
    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self._root = _Node()
        for endpoint in endpoints:
            self._add(endpoint)

    def find(self, method: str, raw_path: bytes) -> Found:
        """The endpoint for a path as it was sent; raises 404 or 405, and 400 for a path that is not text."""
        parts = raw_path.split(b"/")[1:]
        if parts and not parts[-1]:
            parts.pop()
        found = _match(self._root, parts, 0, ())
        if found is None:
            raise HttpError(404)
        node, values = found
        endpoint = node.endpoints.get("GET" if method == "HEAD" else method)
        if endpoint is None:
            raise HttpError(405, headers={"Allow": ", ".join(sorted(node.endpoints))})
        return Found(endpoint, {name: _text(value) for name, value in zip(node.names, values, strict=True)})

    def _add(self, endpoint: Endpoint) -> None:
        node, names = self._root, []
        for word in endpoint.path.split("/")[1:]:
            if word.startswith("{"):
                names.append(word.strip("{}"))
                node.varying = node.varying or _Node()
                node = node.varying
            elif word:
                node = node.fixed.setdefault(word.encode(), _Node())
        node.names = tuple(names)
        node.endpoints[endpoint.method] = endpoint


def _match(
    node: _Node, parts: list[bytes], position: int, values: tuple[bytes, ...]
) -> tuple[_Node, tuple[bytes, ...]] | None:
    if position == len(parts):
        return (node, values) if node.endpoints else None
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
