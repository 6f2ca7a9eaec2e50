"""Forwards a request to the leader: the same request with a marker header, and the leader's answer unchanged.

The marker prevents loops while the leader changes: an instance that gets a marked request and does not lead rejects
it. Start at `Forwarding`.
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from urllib.parse import urlsplit

from moldau.core.errors import MoldauError
from moldau.http.calls import Answer, Call

__all__ = ["Forward", "Forwarding", "ForwardingFailedError"]

Forward = Callable[[Call, str], Awaitable[Answer]]
"""Sends a call to the leader at a URL."""

_ALWAYS = ("content-type", "accept")


class ForwardingFailedError(MoldauError):
    """The leader could not be reached, or did not answer."""


class Forwarding:
    def __init__(
        self,
        *,
        hop_header: str,
        connect_timeout_ms: int,
        read_timeout_ms: int,
        headers: Iterable[str] = (),
        answer_headers: Iterable[str] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`hop_header` marks forwarded requests. `headers`, such as `Authorization`, are forwarded in addition to those
        that describe the body; `answer_headers` are returned in addition to the content type. `tls` is for leaders with
        https: whom to trust."""
        self._hop_header = hop_header.lower()
        self._connect_timeout_s = connect_timeout_ms / 1000
        self._read_timeout_s = read_timeout_ms / 1000
        self._headers = (*_ALWAYS, *(name.lower() for name in headers))
        self._answer_headers = tuple(answer_headers)
        self._tls = tls

    async def __call__(self, call: Call, url: str) -> Answer:
        """The leader's answer; raises `ForwardingFailedError`."""
        body = await call.content()
        headers = {name: call.headers[name] for name in self._headers if name in call.headers}
        headers[self._hop_header] = "true"
        raw_path: bytes = call.scope.get("raw_path") or call.scope["path"].encode()
        query: bytes = call.scope["query_string"]
        target = (raw_path + b"?" + query if query else raw_path).decode("latin-1")
        try:
            return await asyncio.to_thread(self._send, call.method, url, target, headers, body)
        except (OSError, http.client.HTTPException) as error:
            raise ForwardingFailedError(f"The leader at {url} could not be reached: {error}") from None

    def _send(self, method: str, url: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        address = urlsplit(url)
        host, port, timeout_s = address.hostname or "", address.port, self._connect_timeout_s
        if address.scheme == "https":
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=timeout_s, context=self._tls
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
        try:
            connection.connect()
            connection.sock.settimeout(self._read_timeout_s)
            connection.request(method, target, body, dict(headers))
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        handed_back = {name: text for name in self._answer_headers if (text := response.getheader(name)) is not None}
        return Answer(
            content=content,
            status=response.status,
            media_type=response.getheader("content-type"),
            headers=handed_back or None,
        )
