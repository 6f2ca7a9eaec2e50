"""An engine as a service of a process: the host of pipelines behind its control channel, found by its files.

Start at `EngineService`, which `server.services.run.run_services` runs.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import ExitStack
from pathlib import Path

from moldau.http.serving import HttpServer
from moldau.pipeline.runtime.hosting.control_app import build_app
from moldau.pipeline.runtime.hosting.engine_files import EngineFiles
from moldau.pipeline.runtime.hosting.host import PipelineHost

__all__ = ["EngineService"]

DRAIN_S = 2

logger = logging.getLogger("moldau.engine")


class EngineService:
    def __init__(self, folder: Path, host: PipelineHost) -> None:
        self._files = EngineFiles(folder)
        self._host = host
        self._server: HttpServer | None = None
        self._held = ExitStack()

    async def start(self) -> None:
        """Listen, and say where; raises `StartupError` if the folder has an engine already."""
        self._held.enter_context(self._files.held())
        token = secrets.token_urlsafe(32)
        self._server = HttpServer(host="127.0.0.1", port=0, drain_s=DRAIN_S)
        await self._server.start(build_app(self._host, token))
        self._files.announce(self._server.port, token)
        logger.info(
            "engine started in %s, control channel on port %d of this machine", self._files.folder, self._server.port
        )

    async def stop(self) -> None:
        """Stop all pipelines, then the channel. The lock goes last: a successor must not meet their state in use."""
        await asyncio.to_thread(self._host.close)
        if self._server is not None:
            await self._server.stop()
        self._held.close()
        logger.info("engine stopped")
