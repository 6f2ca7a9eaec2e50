"""Handing a write on to the leader: the same request, marked, and its answer as it is. Start at `Forwarding`."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Awaitable, Callable, Iterable, Mapping
from urllib.parse import urlsplit

from moldau.http.calls import Answer, Call
from moldau.registry.errors import ForwardingError

__all__ = ["FORWARDED", "OFFSET_HEADER", "Forward", "Forwarding"]

FORWARDED = "x-forward"
OFFSET_HEADER = "x-moldau-offset"
"""On answers to writes: how far a follower must have read to know what was written."""

Forward = Callable[[Call, str], Awaitable[Answer]]
"""Sends a call to the leader at a URL."""

_ALWAYS = ("content-type", "accept")


class Forwarding:
    def __init__(self, *, connect_timeout_ms: int, read_timeout_ms: int, headers: Iterable[str] = ()) -> None:
        """`headers` are handed on beside those that say what the body is, such as `Authorization`."""
        self._connect_timeout_s = connect_timeout_ms / 1000
        self._read_timeout_s = read_timeout_ms / 1000
        self._headers = (*_ALWAYS, *(name.lower() for name in headers))

    async def __call__(self, call: Call, url: str) -> Answer:
        body = await call.content()
        headers = {name: call.headers[name] for name in self._headers if name in call.headers} | {FORWARDED: "true"}
        raw_path: bytes = call.scope.get("raw_path") or call.scope["path"].encode()
        query: bytes = call.scope["query_string"]
        target = (raw_path + b"?" + query if query else raw_path).decode("latin-1")
        try:
            return await asyncio.to_thread(self._send, call.method, url, target, headers, body)
        except (OSError, http.client.HTTPException) as error:
            raise ForwardingError(f"The leader at {url} could not be asked: {error}") from None

    def _send(self, method: str, url: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        address = urlsplit(url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=self._connect_timeout_s)
        try:
            connection.connect()
            connection.sock.settimeout(self._read_timeout_s)
            connection.request(method, target, body, dict(headers))
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        offset = response.getheader(OFFSET_HEADER)
        return Answer(
            content=content,
            status=response.status,
            media_type=response.getheader("content-type"),
            headers={OFFSET_HEADER: offset} if offset is not None else None,
        )
