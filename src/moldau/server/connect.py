"""A Connect worker wired together: its settings, and the command that starts its engine process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence

from moldau.connect.runtime.board import TaskBoard
from moldau.connect.runtime.hosted_task import KIND, ConnectBuilder
from moldau.connect.runtime.thread_carriers import ThreadCarriers
from moldau.connect.worker.instance import ConnectInstance
from moldau.connect.worker.settings import WorkerSettings
from moldau.pipeline.runtime.hosting.engine_files import EngineFiles
from moldau.pipeline.runtime.hosting.engine_link import EngineLink, PipelineLink
from moldau.pipeline.runtime.hosting.host import PipelineHost
from moldau.pipeline.runtime.hosting.local_link import LocalLink

__all__ = ["connect_instance"]

SPARK_TASKS = 32
"""Spark tasks that may run at the same time: carriers mostly wait."""
CHECK_S = 0.3


def connect_instance(settings: WorkerSettings, connectors: Sequence[Mapping[str, str]] = ()) -> ConnectInstance:
    """A worker whose tasks run in an engine process of its own, or in threads if its settings say so."""
    return ConnectInstance(settings, _link(settings), connectors)


def _link(settings: WorkerSettings) -> PipelineLink:
    per_carrier = settings["moldau.connect.tasks.per.carrier"]
    if settings["moldau.connect.engine"] == "threads":
        board = TaskBoard(per_carrier)
        return _ThreadLink(board, ThreadCarriers(board))
    folder = settings.state_folder / "engine"
    command = [sys.executable, "-m", "moldau.server.engine", str(folder), "--threads", str(SPARK_TASKS)]
    command += ["--tasks-per-carrier", str(per_carrier)]
    command += [f"{name}={text}" for name, text in settings.spark.items()]
    prefix = f"connect-{settings.group_id}-"
    return EngineLink(EngineFiles(folder), command, prefix=prefix, check_s=CHECK_S)


class _ThreadLink(LocalLink):
    def __init__(self, board: TaskBoard, carriers: ThreadCarriers) -> None:
        super().__init__(PipelineHost({KIND: ConnectBuilder(board, carriers)}))
        self._carriers = carriers

    async def stop(self) -> None:
        await super().stop()
        await asyncio.to_thread(self._carriers.close)
