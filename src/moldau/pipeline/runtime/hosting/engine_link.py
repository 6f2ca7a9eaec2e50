"""What a service wants its engine to run, and the task that sees to it.

The service says which pipelines it wants (`want`); a task compares that with what the engine runs, again and again,
and mends the difference. So it does not matter which of the two processes was killed, or when: a new engine gets all
pipelines, and a new service finds those that kept running. The engine process starts with the first pipeline, since it
brings Spark. Names of a service's pipelines share a prefix, because one engine serves several services. Start at
`EngineLink`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from moldau.core.errors import MoldauError
from moldau.pipeline.runtime.hosting.engine_client import EngineClient, EngineError, EngineUnreachableError
from moldau.pipeline.runtime.hosting.engine_files import EngineFiles
from moldau.pipeline.runtime.hosting.host import PipelineSpec

__all__ = ["EngineLink", "PipelineLink"]

CHECK_S = 1.0
START_S = 30.0
"""How long a new engine process may take until its control channel answers."""
END_S = 75.0

logger = logging.getLogger("moldau.engine")


class PipelineLink(Protocol):
    """What a service does with an engine, wherever that runs."""

    def start(self) -> None:
        """Begin to run what is wanted."""

    async def stop(self) -> None:
        """Stop, and have the pipelines stopped if nobody else wants them."""

    def want(self, spec: PipelineSpec) -> None:
        """Have this pipeline run from now on."""

    def unwant(self, spec: PipelineSpec, *, delete_state: bool) -> None:
        """Have this pipeline stopped; `delete_state` if it will never be wanted again."""

    def status(self, name: str) -> Mapping[str, Any] | None:
        """What was last known of a pipeline."""

    async def settle(self, timeout_s: float) -> bool:
        """Wait until the engine runs what is wanted; False after the timeout."""

    async def ask(self, question: str, name: str) -> Any:
        """Call a method of `EngineClient` (`pipeline`, `explain`) for a pipeline; raises `MoldauError`."""


class EngineLink:
    """The engine is a process of its own. Runs on the event loop that starts it; what blocks runs in threads."""

    def __init__(
        self,
        files: EngineFiles,
        command: Sequence[str],
        *,
        prefix: str,
        owns_engine: bool = True,
        check_s: float = CHECK_S,
    ) -> None:
        """`command` starts an engine process for the folder of `files`, where none runs.

        `prefix` is that of the names of this service's pipelines. With `owns_engine` the engine ends with this service.
        """
        self._files = files
        self._command = command
        self._prefix = prefix
        self._owns_engine = owns_engine
        self._check_s = check_s
        self._wanted: dict[str, PipelineSpec] = {}
        self._doomed: dict[str, PipelineSpec] = {}
        """Pipelines whose state is to be deleted, whether they run or not."""
        self._statuses: Mapping[str, Mapping[str, Any]] = {}
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._settled = asyncio.Event()
        self._complaint: str | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep_up())

    async def stop(self) -> None:
        """Stop watching; the engine process ends too, if it is this service's own, also one that was found running."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        if self._owns_engine:
            await asyncio.to_thread(self._end_engine)

    def want(self, spec: PipelineSpec) -> None:
        """Have this pipeline run from now on."""
        self._wanted[spec.name] = spec
        self._doomed.pop(spec.name, None)
        self._note_change()

    def unwant(self, spec: PipelineSpec, *, delete_state: bool) -> None:
        """Have this pipeline stopped; `delete_state` if it will never be wanted again."""
        self._wanted.pop(spec.name, None)
        if delete_state:
            self._doomed[spec.name] = spec
        self._note_change()

    def status(self, name: str) -> Mapping[str, Any] | None:
        """What was last known of a pipeline; None before the engine has taken it."""
        return self._statuses.get(name)

    async def settle(self, timeout_s: float) -> bool:
        """Wait until the engine runs what is wanted; False after the timeout."""
        try:
            await asyncio.wait_for(self._settled.wait(), timeout_s)
        except TimeoutError:
            return False
        return True

    async def ask(self, question: str, name: str) -> Any:
        """Call a method of `EngineClient` (`pipeline`, `explain`) for a pipeline; raises `EngineError`."""
        address = self._files.find()
        if address is None:
            raise EngineUnreachableError("the engine has not started yet")
        return await asyncio.to_thread(getattr(EngineClient(address), question), name)

    def _note_change(self) -> None:
        self._settled.clear()
        self._changed.set()

    async def _keep_up(self) -> None:
        while True:
            self._changed.clear()
            try:
                if await asyncio.to_thread(self._compare_and_mend, dict(self._wanted), dict(self._doomed)):
                    if not self._changed.is_set():
                        self._settled.set()
                    self._complaint = None
            except MoldauError as error:
                self._complain(str(error))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), self._check_s)

    def _compare_and_mend(self, wanted: Mapping[str, PipelineSpec], doomed: Mapping[str, PipelineSpec]) -> bool:
        """Bring the engine to what is wanted; False if it was not there yet."""
        client = self._engine(is_needed=bool(wanted) or bool(doomed))
        if client is None:
            return not wanted
        running = {one["name"]: one for one in client.pipelines() if one["name"].startswith(self._prefix)}
        for name in running.keys() - wanted.keys() - doomed.keys():
            client.remove(name)
        for name, spec in doomed.items():
            if name not in running:
                client.put(replace(spec, is_paused=True))  # so that the engine knows whose state to delete
            client.remove(name, delete_state=True)
            self._doomed.pop(name, None)
        for name, spec in wanted.items():
            if name not in running or _differs(running[name], spec):
                client.put(spec)
        self._statuses = {one["name"]: one for one in client.pipelines()}
        return True

    def _engine(self, *, is_needed: bool) -> EngineClient | None:
        address = self._files.find()
        if address is None and is_needed:
            self._start_process()
            address = self._await_address()
        if address is None:
            self._statuses = {}
            return None
        return EngineClient(address)

    def _start_process(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            logger.warning("the engine process %d ended with status %d", self._process.pid, self._process.returncode)
            self._process = None
        if self._process is None and not self._files.is_held():
            self._files.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # A session of its own: Ctrl-C at the terminal is for the service, which then ends the engine in order.
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, start_new_session=True)
            logger.info("starting an engine process (%d), which brings Spark", self._process.pid)

    def _await_address(self) -> Any:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            address = self._files.find()
            if address is not None:
                return address
            if self._process is not None and self._process.poll() is not None:
                raise EngineError(f"the engine process ended with status {self._process.returncode}; its log says why")
            time.sleep(0.05)
        raise EngineUnreachableError(
            f"the engine process does not answer after {START_S:g} s; the start is tried again"
        )

    def _end_engine(self) -> None:
        address = self._files.find()
        if address is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(address.pid, signal.SIGTERM)
        deadline = time.monotonic() + END_S
        while self._files.is_held():
            if time.monotonic() > deadline:
                logger.warning("the engine process %d does not end and is killed", address.pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(address.pid, signal.SIGKILL)
                break
            time.sleep(0.05)
        if self._process is not None:
            self._process.wait()

    def _complain(self, text: str) -> None:
        """Log a problem once, not at every check."""
        if text != self._complaint:
            logger.warning("%s", text)
            self._complaint = text


def _differs(running: Mapping[str, Any], spec: PipelineSpec) -> bool:
    return bool(
        running["kind"] != spec.kind
        or running["definition"] != spec.definition
        or running["isPaused"] != spec.is_paused
    )
