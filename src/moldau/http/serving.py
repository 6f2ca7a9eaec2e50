"""An app on a port: uvicorn inside a loop that may serve other things too.

Binding, the ready moment and the way out are ours, so that port 0 is known, a port in use is one clear line, and
requests under way are finished before the end. Start at `HttpServer`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from moldau.core.errors import StartupError

__all__ = ["HttpServer"]

BACKLOG = 2048
STARTING_POLL_S = 0.005


class HttpServer:
    def __init__(self, app: ASGIApp, *, host: str = "", port: int = 0, drain_s: int = 10) -> None:
        """`host` may be empty for all addresses, `port` 0 for a free one; `drain_s` is how long the end may take."""
        self._app = app
        self._host, self._asked_port = host, port
        self._drain_s = drain_s
        self._server: _Uvicorn | None = None
        self._task: asyncio.Task[None] | None = None
        self.port = 0

    async def start(self) -> None:
        """Listen and return once requests are answered; raises `StartupError` where the port cannot be had."""
        listening = self._bound()
        self.port = listening.getsockname()[1]
        config = uvicorn.Config(
            self._app,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            backlog=BACKLOG,
            timeout_graceful_shutdown=self._drain_s,
            ws="none",
        )
        self._server = _Uvicorn(config)
        self._task = asyncio.create_task(self._server.serve(sockets=[listening]))
        while not self._server.started and not self._task.done():
            await asyncio.sleep(STARTING_POLL_S)
        if self._task.done():
            await self._task

    async def stop(self) -> None:
        """Accept nothing more, finish what was begun, leave."""
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await self._task
            self._server = self._task = None

    def _bound(self) -> socket.socket:
        host = self._host.strip("[]")
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            listening = socket.socket(family, socket.SOCK_STREAM)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((host, self._asked_port))
        except OSError as error:
            where = f"{self._host or '*'}:{self._asked_port}"
            raise StartupError(f"cannot listen on {where}: {error.strerror or error}") from None
        listening.setblocking(False)
        return listening


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals belong to the process, which may host more than this server."""
        yield
