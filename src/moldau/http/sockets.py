"""WebSockets: one endpoint, one coroutine per connection.

Until a handler calls `accept` it may raise an `HttpError`, which is rendered like that of any other endpoint; after
that an error closes the connection with a code and its text. The end of the handler closes it with 1000. uvicorn
handles messages over the limit, bad frames and pings. Start at `Socket`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from moldau.http.auth import ANONYMOUS, ForbiddenError, Principal
from moldau.http.calls import encode_json

__all__ = ["CLOSE_GOING_AWAY", "CLOSE_INTERNAL_ERROR", "CLOSE_POLICY", "Socket", "check_origin", "close_code"]

CLOSE_POLICY, CLOSE_INTERNAL_ERROR, CLOSE_GOING_AWAY = 1008, 1011, 1001
MAX_REASON_BYTES = 123
"""The limit of a close frame."""


class Socket(WebSocket):
    """Starlette's WebSocket with path parameters by name; iterate over it for the client's messages."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, on_accept: Callable[[], None]) -> None:
        super().__init__(scope, receive, send)
        self.parts: Mapping[str, str] = {}
        self.principal: Principal = ANONYMOUS
        self._on_accept = on_accept

    async def accept(
        self, subprotocol: str | None = None, headers: Iterable[tuple[bytes, bytes]] | None = None
    ) -> None:
        """Complete the handshake; `subprotocol` should be one of `scope["subprotocols"]`."""
        self._on_accept()
        await super().accept(subprotocol, headers)

    async def __aiter__(self) -> AsyncIterator[str | bytes]:
        """Messages, text as `str` and binary as `bytes`, until the client closes."""
        while True:
            message = await self.receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            yield message["bytes"] if text is None else text

    async def send_document(self, document: Any) -> None:
        await self.send_text(encode_json(document).decode())

    async def send_all(self, source: AsyncIterator[str | bytes]) -> None:
        """Send the messages of `source` until it ends or the client disconnects; messages of the client are ignored.

        The source is cancelled and closed in both cases.
        """
        sending = asyncio.ensure_future(self._send_each(source))
        listening = asyncio.ensure_future(self._wait_until_closed())
        try:
            await asyncio.wait((sending, listening), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            listening.cancel()
            await asyncio.wait((sending, listening))
        if not sending.cancelled():
            sending.result()

    async def _send_each(self, source: AsyncIterator[str | bytes]) -> None:
        try:
            async for message in source:
                await (self.send_text(message) if isinstance(message, str) else self.send_bytes(message))
        except WebSocketDisconnect:
            return
        finally:
            if isinstance(source, AsyncGenerator):
                await source.aclose()

    async def _wait_until_closed(self) -> None:
        async for _ in self:
            pass

    @property
    def was_accepted(self) -> bool:
        return self.application_state is not WebSocketState.CONNECTING

    @property
    def is_open(self) -> bool:
        states = (self.client_state, self.application_state)
        return states == (WebSocketState.CONNECTED, WebSocketState.CONNECTED)

    async def close_with(self, code: int, reason: str = "") -> None:
        """Close, if not closed yet; the reason is truncated to fit."""
        if self.is_open:
            short = reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
            try:
                await self.close(code, short)
            except (WebSocketDisconnect, RuntimeError):
                return  # the client closed first


def check_origin(socket: Socket, allowed: frozenset[str]) -> None:
    """Reject browsers on other sites' pages: they send their user's credentials along, and an `Origin`."""
    origin = socket.headers.get("origin")
    if origin is None or origin in allowed:
        return
    if urlsplit(origin).netloc != socket.headers.get("host"):
        raise ForbiddenError(f"Pages of {origin} may not open this WebSocket")


def close_code(status: int) -> int:
    """The close code for an error that would have had this status before the connection was accepted."""
    return CLOSE_POLICY if status < 500 else CLOSE_INTERNAL_ERROR
