"""A request's body as it arrives, and the detection of a client that disconnects.

Both come out of the same ASGI `receive`, so one object owns it. At most one piece is buffered: if the handler does
not read, the server stops reading from the socket (backpressure). Start at `RequestBody.pieces`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.types import Receive

from moldau.http.errors import ClientGoneError, HttpError

__all__ = ["RequestBody"]


class RequestBody:
    def __init__(self, receive: Receive, *, max_bytes: int, idle_s: float | None, is_stream: bool) -> None:
        """`max_bytes` limits the whole body, `idle_s` the silence between two pieces; `None` waits forever.

        The unread rest of a body is discarded once the handler has answered, except for a stream, which its handler
        may go on reading.
        """
        self._receive = receive
        self._max_bytes = max_bytes
        self._idle_s = idle_s
        self._is_stream = is_stream
        self._receiving = asyncio.Lock()
        self._held: bytes | None = None
        """A piece that arrived while waiting for a disconnect."""
        self._taken = asyncio.Event()
        self._received_bytes = 0
        self._is_whole = False
        self._is_gone = False

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives; raises a 413 or 408 at its limits, `ClientGoneError` if the client leaves."""
        while True:
            piece = await self._next()
            if piece is None:
                return
            if piece:
                yield piece

    async def wait_until_client_is_gone(self) -> None:
        """Return when the client has closed the connection. The body stays readable meanwhile."""
        while not self._is_gone:
            async with self._receiving:
                if self._held is None:
                    await self._receive_one()
                    if not self._is_stream:
                        self._held = None
            if self._held is not None:
                self._taken.clear()
                await self._taken.wait()

    async def _next(self) -> bytes | None:
        # Once the body is complete nothing more is received for it, and the task that waits for a disconnect keeps the
        # lock.
        if self._held is None and not self._is_whole:
            await self._receive_in_time()
        piece, self._held = self._held, None
        self._taken.set()
        if piece is None and self._is_gone:
            raise ClientGoneError
        self._received_bytes += len(piece or b"")
        if self._received_bytes > self._max_bytes:
            raise HttpError(413, f"The body is larger than {self._max_bytes} bytes")
        return piece

    async def _receive_in_time(self) -> None:
        try:
            async with asyncio.timeout(self._idle_s), self._receiving:
                if self._held is None and not self._is_whole:
                    await self._receive_one()
        except TimeoutError:
            message = f"Nothing of the body arrived for {self._idle_s:g} seconds"
            raise HttpError(408, message, headers={"connection": "close"}) from None

    async def _receive_one(self) -> None:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._is_gone = self._is_whole = True
        elif not self._is_whole:
            self._held = message.get("body", b"")
            self._is_whole = not message.get("more_body", False)
