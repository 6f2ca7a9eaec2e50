"""Serves an app on a port, with uvicorn, in an event loop that may be shared.

Binding, readiness and shutdown are handled here, so that the port chosen for 0 is known, a port in use is one clear
error, and running requests are finished before the end. So are limits that uvicorn does not have: on the size and the
time of a request's head, and on clients that keep sending after they were answered. Start at `HttpServer`.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

from moldau.core.errors import StartupError
from moldau.http.streaming import STOPPING

__all__ = ["BACKLOG", "DEFAULT_MAX_MESSAGE_BYTES", "HttpServer", "bind_socket", "with_stopping"]

BACKLOG = 2048
IDLE_S = 75
"""Idle timeout of a connection: longer than that of clients, so that none is closed just as a request arrives."""
STARTING_POLL_S = 0.005
MAX_HEAD_BYTES = 64 * 1024
"""Limit of request line and headers together, which uvicorn would buffer without limit."""
HEAD_TIMEOUT_S = 30.0
"""How long a client may take to send request line and headers."""
LINGER_S = 5.0
"""How long a client may keep sending a body that was answered before its end, so that it gets to read the answer."""
MAX_PIPELINED = 8
"""Pipelined requests of a connection that wait for earlier answers; no more are read."""
MAX_FRAGMENTS = 1024
"""Fragments of one WebSocket message: empty ones would stay below the size limit forever."""
_HTTP2_OFFER = re.compile(rb"\A((?:[^\r\n]+\r\n)*?[^\r\n]+)\r\nupgrade:[ \t]*h2c[ \t]*(?=\r\n)", re.IGNORECASE)
DEFAULT_MAX_MESSAGE_BYTES = 1024 * 1024


class HttpServer:
    def __init__(
        self,
        *,
        host: str = "",
        port: int = 0,
        drain_s: int = 10,
        tls: ssl.SSLContext | None = None,
        max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
    ) -> None:
        """`host` may be empty for all addresses, `port` 0 for a free one; `drain_s` is how long the end may take.

        `tls` comes from `tls.server_context` and makes it https; `max_message_bytes` limits messages on WebSockets.
        """
        self._host, self._asked_port = host, port
        self._drain_s = drain_s
        self._tls = tls
        self._max_message_bytes = max_message_bytes
        self._stopping = asyncio.Event()
        self._listening: socket.socket | None = None
        self._server: _Uvicorn | None = None
        self._task: asyncio.Task[None] | None = None
        self.port = 0

    def bind(self) -> None:
        """Bind the port, which `port` returns from then on; raises `StartupError` where that fails."""
        self._listening = bind_socket(self._host, self._asked_port)
        self.port = self._listening.getsockname()[1]

    async def start(self, app: ASGIApp) -> None:
        """Return once requests are answered."""
        if self._listening is None:
            self.bind()
        assert self._listening is not None
        self._stopping = asyncio.Event()
        config = uvicorn.Config(
            with_stopping(app, self._stopping),
            http=_Protocol,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            backlog=BACKLOG,
            timeout_graceful_shutdown=self._drain_s,
            timeout_keep_alive=IDLE_S,
            ws=_SocketProtocol,
            ws_max_size=self._max_message_bytes,
            # Compression saves little on short messages, and costs memory for every connection.
            ws_per_message_deflate=False,
        )
        config.load()
        config.ssl = self._tls
        self._server = _Uvicorn(config)
        self._task = asyncio.create_task(self._server.serve(sockets=[self._listening]))
        while not self._server.started and not self._task.done():
            await asyncio.sleep(STARTING_POLL_S)
        if self._task.done():
            await self._task

    async def stop(self) -> None:
        """Stop accepting, finish running requests, and stop. Endless streams and WebSockets are ended at once."""
        self._stopping.set()
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await self._task
            self._server = self._task = None
        if self._listening is not None:
            self._listening.close()
            self._listening = None


def bind_socket(host: str, port: int) -> socket.socket:
    """A listening socket; raises `StartupError` where the port cannot be bound."""
    plain = host.strip("[]")
    listening = socket.socket(socket.AF_INET6 if ":" in plain else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((plain, port))
        # With SO_REUSEADDR a second server could bind the port too, until this one listens.
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise StartupError(f"cannot listen on {host or '*'}:{port}: {error.strerror or error}") from None
    listening.setblocking(False)
    return listening


def with_stopping(app: ASGIApp, stopping: asyncio.Event) -> ASGIApp:
    """The app, whose streams and WebSockets know when the server stops."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        scope["extensions"] = {**(scope.get("extensions") or {}), STOPPING: stopping}
        await app(scope, receive, send)

    return serve


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals belong to the process, which may host more than this server."""
        yield


class _Protocol(HttpToolsProtocol):
    """uvicorn's connection with limits; a disconnect reaches the request that is being answered."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._running: RequestResponseCycle | None = None
        self._is_between_requests = True
        self._head_bytes: int | None = 0
        """Bytes received of an incomplete head; `None` outside of heads."""
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._set_deadline(IDLE_S)

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear_deadline()
        running = self._running
        if running is not None and running is not self.cycle and not running.response_complete:
            # uvicorn notifies only the newest request. An earlier one that streams would go on forever.
            running.disconnected = True
            running.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_between_requests:
            # Java's client offers HTTP/2 with every request. The parser would treat its body as another protocol.
            data = _HTTP2_OFFER.sub(rb"\1\r\nx-declined-upgrade: h2c", data, count=1)
        if self._head_bytes is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes is not None and self._head_bytes > MAX_HEAD_BYTES:
            self._refuse_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_between_requests = False
        if self._head_bytes is None:
            # Bytes received together with the end of the previous message are not counted; that is one read at most.
            self._head_bytes = 0
        self._set_deadline(HEAD_TIMEOUT_S)

    def on_headers_complete(self) -> None:
        self._head_bytes = None
        self._clear_deadline()
        super().on_headers_complete()
        if 0 < len(self.pipeline) <= MAX_PIPELINED:
            # uvicorn stops reading after a queued request, and would not notice a disconnect.
            self.flow.resume_reading()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete and self.cycle.more_body:
            self._set_deadline(LINGER_S)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_between_requests = True
        self._clear_deadline()
        if self.cycle is not None:  # there is none yet for a WebSocket
            self.cycle.more_body = False
            if self.cycle.response_complete:
                # The body ended after its answer, and uvicorn has not started to wait for the next request.
                self._set_deadline(IDLE_S)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _refuse_head(self) -> None:
        body = b"The request line and headers are too large"
        head = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain\r\nconnection: close\r\n"
        if not self.transport.is_closing():
            self.transport.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
            self.transport.close()

    def _set_deadline(self, seconds: float) -> None:
        self._clear_deadline()
        self._deadline = self.loop.call_later(seconds, self.transport.close)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _SocketProtocol(WebSocketsSansIOProtocol):
    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) < MAX_FRAGMENTS:
            super().handle_cont(event)
        elif self.conn.close_sent is None:
            self.conn.fail(CloseCode.MESSAGE_TOO_BIG, "too many fragments")
            self.handle_parser_exception()
