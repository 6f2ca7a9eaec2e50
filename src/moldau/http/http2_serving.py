"""Serves an app over HTTP/1.1 and HTTP/2 on one port, with Hypercorn: ksqlDB's clients ask for HTTP/2.

HTTP/2 is taken with prior knowledge (h2c), by upgrade, and over TLS by ALPN. Uvicorn, which serves everything else, has
no HTTP/2 and is faster without it. Start at `Http2Server`, which is used like `serving.HttpServer`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl

from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.run import worker_serve
from hypercorn.config import Config, Sockets
from starlette.types import ASGIApp, Receive, Scope, Send

from moldau.http.serving import BACKLOG, DEFAULT_MAX_MESSAGE_BYTES, bind_socket, with_stopping

__all__ = ["Http2Server"]

IDLE_S = 75.0
MAX_HEAD_BYTES = 64 * 1024
MAX_STREAMS = 1000
"""Requests of one connection at the same time; each push query of a client is one."""


class Http2Server:
    def __init__(
        self,
        *,
        host: str = "",
        port: int = 0,
        drain_s: int = 10,
        tls: ssl.SSLContext | None = None,
        max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
    ) -> None:
        """As for `serving.HttpServer`; a context of `tls` is given the protocols to offer."""
        self._host, self._asked_port = host, port
        self._tls = tls
        self._config = _config(drain_s, max_message_bytes, tls)
        self._stopping = asyncio.Event()
        self._listening: socket.socket | None = None
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
        is_ready = asyncio.Event()
        plain = [] if self._tls is not None else [self._listening]
        secure = [self._listening] if self._tls is not None else []
        self._task = asyncio.create_task(
            worker_serve(
                ASGIWrapper(_with_lifespan(with_stopping(app, self._stopping), is_ready)),  # type: ignore[arg-type]
                self._config,
                sockets=Sockets(secure_sockets=secure, insecure_sockets=plain, quic_sockets=[]),
                shutdown_trigger=self._stopping.wait,
            )
        )
        ready = asyncio.ensure_future(is_ready.wait())
        await asyncio.wait({self._task, ready}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._task.done():
            await self._task

    async def stop(self) -> None:
        """Stop accepting, finish running requests, and stop. Endless streams and WebSockets are ended at once."""
        self._stopping.set()
        if self._task is not None:
            await self._task
            self._task = None
        if self._listening is not None:
            self._listening.close()
            self._listening = None


class _Config(Config):
    """Hypercorn's settings, with a TLS context that is given instead of read from files."""

    tls: ssl.SSLContext | None = None

    @property
    def ssl_enabled(self) -> bool:
        return self.tls is not None

    def create_ssl_context(self) -> ssl.SSLContext | None:
        if self.tls is not None:
            self.tls.set_alpn_protocols(self.alpn_protocols)
        return self.tls


def _config(drain_s: int, max_message_bytes: int, tls: ssl.SSLContext | None) -> _Config:
    config = _Config()
    config.tls = tls
    config.backlog = BACKLOG
    config.graceful_timeout = float(drain_s)
    config.keep_alive_timeout = IDLE_S
    config.keep_alive_max_requests = 2**31
    config.h11_max_incomplete_size = MAX_HEAD_BYTES
    config.h2_max_header_list_size = MAX_HEAD_BYTES
    config.h2_max_concurrent_streams = MAX_STREAMS
    config.websocket_max_message_size = max_message_bytes
    config.include_server_header = False
    config.include_date_header = False
    config.accesslog = None
    config.errorlog = logging.getLogger("moldau.http.hypercorn")
    config.loglevel = "WARNING"
    return config


def _with_lifespan(app: ASGIApp, is_ready: asyncio.Event) -> ASGIApp:
    """The app, with an answer to the server's start and end messages, which HTTP apps here do not know."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
                is_ready.set()
            else:
                await send({"type": "lifespan.shutdown.complete"})
                return

    return serve
