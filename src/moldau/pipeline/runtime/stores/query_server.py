"""The HTTP server for store queries, on a thread with its own event loop. Start at `QueryServer`."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

from moldau.http.serving import HttpServer
from moldau.pipeline.runtime.stores.query_app import Application, build_app

__all__ = ["QueryServer"]

PATIENCE_S = 15.0


class QueryServer:
    """Serves from `start` until `close`; `port` is the actual port if 0 was configured."""

    def __init__(self, host: str, port: int, application: Application) -> None:
        self._server = HttpServer(host=host, port=port, drain_s=2)
        self._application = application
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        return self._server.port

    def start(self) -> None:
        """Bind the port and serve; raises `StartupError` if the port cannot be bound."""
        self._server.bind()
        started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(started,), name="stores-http", daemon=True)
        self._thread.start()
        started.result(PATIENCE_S)

    def close(self) -> None:
        """Finish current requests, and stop."""
        if self._loop is not None and self._stopping is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(PATIENCE_S)
            self._thread = None

    def _run(self, started: Future[None]) -> None:
        try:
            asyncio.run(self._serve(started))
        except BaseException as error:
            if not started.done():
                started.set_exception(error)

    async def _serve(self, started: Future[None]) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        await self._server.start(build_app(self._application))
        started.set_result(None)
        await self._stopping.wait()
        await self._server.stop()
