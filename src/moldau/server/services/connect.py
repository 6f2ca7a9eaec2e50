"""A Connect worker wired together: its settings, and its engine process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from moldau.connect.runtime.board import TaskBoard
from moldau.connect.runtime.hosted_task import KIND, ConnectBuilder
from moldau.connect.runtime.thread_carriers import ThreadCarriers
from moldau.connect.worker.instance import ConnectInstance
from moldau.connect.worker.settings import WorkerSettings
from moldau.pipeline.runtime.hosting.engine_link import PipelineLink
from moldau.pipeline.runtime.hosting.host import PipelineHost
from moldau.pipeline.runtime.hosting.local_link import LocalLink
from moldau.server.services.engine_links import SPARK_TASKS, engine_link

__all__ = ["connect_instance"]

CHECK_S = 0.3


def connect_instance(settings: WorkerSettings, connectors: Sequence[Mapping[str, str]] = ()) -> ConnectInstance:
    """A worker whose tasks run in an engine process of its own, or in threads if its settings say so."""
    return ConnectInstance(settings, _link(settings), connectors)


def _link(settings: WorkerSettings) -> PipelineLink:
    per_carrier = settings["moldau.connect.tasks.per.carrier"]
    if settings["moldau.connect.engine"] == "threads":
        board = TaskBoard(per_carrier)
        return _ThreadLink(board, ThreadCarriers(board))
    return engine_link(
        settings.state_folder / "engine",
        settings["moldau.engine.dir"],
        prefix=f"connect-{settings.group_id}-",
        options=("--threads", str(SPARK_TASKS), "--tasks-per-carrier", str(per_carrier)),
        spark=settings.spark,
        check_s=CHECK_S,
    )


class _ThreadLink(LocalLink):
    def __init__(self, board: TaskBoard, carriers: ThreadCarriers) -> None:
        super().__init__(PipelineHost({KIND: ConnectBuilder(board, carriers)}))
        self._carriers = carriers

    async def stop(self) -> None:
        await super().stop()
        await asyncio.to_thread(self._carriers.close)
