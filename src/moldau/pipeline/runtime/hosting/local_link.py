"""An engine in the same process as its service, for tests and for programs that have Spark already."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from moldau.core.errors import MoldauError
from moldau.pipeline.runtime.hosting.host import PipelineHost, PipelineSpec

__all__ = ["LocalLink"]


class LocalLink:
    """Pipelines are started and stopped in a thread, one after the other, in the order in which they were asked for."""

    def __init__(self, host: PipelineHost) -> None:
        self._host = host
        self._work: asyncio.Queue[tuple[PipelineSpec, bool, bool]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep_up())

    async def stop(self) -> None:
        """Stop all pipelines."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await asyncio.to_thread(self._host.close)

    def want(self, spec: PipelineSpec) -> None:
        self._work.put_nowait((spec, True, False))

    def unwant(self, spec: PipelineSpec, *, delete_state: bool) -> None:
        self._work.put_nowait((spec, False, delete_state))

    def status(self, name: str) -> Mapping[str, Any] | None:
        return next((one for one in self._host.statuses() if one["name"] == name), None)

    async def settle(self, timeout_s: float) -> bool:
        """Wait until all that was asked for has been done; False after the timeout."""
        try:
            await asyncio.wait_for(self._work.join(), timeout_s)
        except TimeoutError:
            return False
        return True

    async def ask(self, question: str, name: str) -> Any:
        answers = {"pipeline": self._host.status, "explain": self._host.explain}
        if question not in answers:
            raise MoldauError(f"the engine has no answer to the request {question!r}")
        return await asyncio.to_thread(answers[question], name)

    async def _keep_up(self) -> None:
        while True:
            spec, is_wanted, deletes = await self._work.get()
            if is_wanted:
                await asyncio.to_thread(self._host.put, spec)
            else:
                await asyncio.to_thread(self._host.remove, spec.name, delete_state=deletes)
            self._work.task_done()
