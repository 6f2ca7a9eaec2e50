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
IDLE_S = 75
"""How long a silent connection is kept: longer than clients do, so that none is closed just as a request comes."""
STARTING_POLL_S = 0.005


class HttpServer:
    def __init__(self, *, host: str = "", port: int = 0, drain_s: int = 10) -> None:
        """`host` may be empty for all addresses, `port` 0 for a free one; `drain_s` is how long the end may take."""
        self._host, self._asked_port = host, port
        self._drain_s = drain_s
        self._listening: socket.socket | None = None
        self._server: _Uvicorn | None = None
        self._task: asyncio.Task[None] | None = None
        self.port = 0

    def bind(self) -> None:
        """Take the port, which `port` tells from now on; raises `StartupError` where it cannot be had."""
        self._listening = self._bound()
        self.port = self._listening.getsockname()[1]

    async def start(self, app: ASGIApp) -> None:
        """Return once requests are answered."""
        if self._listening is None:
            self.bind()
        assert self._listening is not None
        config = uvicorn.Config(
            app,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            backlog=BACKLOG,
            timeout_graceful_shutdown=self._drain_s,
            timeout_keep_alive=IDLE_S,
            ws="none",
        )
        self._server = _Uvicorn(config)
        self._task = asyncio.create_task(self._server.serve(sockets=[self._listening]))
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
        if self._listening is not None:
            self._listening.close()
            self._listening = None

    def _bound(self) -> socket.socket:
        host = self._host.strip("[]")
        listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((host, self._asked_port))
            # Bound alone would let a second server bind too; listening from now on makes it ours.
            listening.listen(BACKLOG)
        except OSError as error:
            listening.close()
            where = f"{self._host or '*'}:{self._asked_port}"
            raise StartupError(f"cannot listen on {where}: {error.strerror or error}") from None
        listening.setblocking(False)
        return listening


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals belong to the process, which may host more than this server."""
        yield
