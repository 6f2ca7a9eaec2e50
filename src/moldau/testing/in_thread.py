"""A service on an event loop in its own thread, for tests: started, stopped and restarted by the test.

Subclasses define the service: a broker or a registry. Start at `InThread`.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Self

__all__ = ["InThread"]

PATIENCE_S = 60


class InThread(ABC):
    """`what` names the service in thread names and errors."""

    what: str

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        """Guards `_loop` and `_stopping`: the loop is not closed while another thread asks it to stop."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @abstractmethod
    async def serve(self, ready: Callable[[], None], stopping: asyncio.Event) -> None:
        """Start, call `ready`, wait until `stopping` is set, and shut down cleanly."""

    def start(self) -> None:
        """Start and return once the service accepts requests; raises the error that prevents it from starting."""
        started = threading.Event()
        failure: list[BaseException] = []
        self._thread = threading.Thread(
            target=self._run, args=(started, failure), name=f"moldau-{self.what}", daemon=True
        )
        self._thread.start()
        if not started.wait(PATIENCE_S):
            raise TimeoutError(f"the {self.what} did not start within {PATIENCE_S} s")
        if failure:
            self._thread.join()
            raise failure[0]

    def stop(self) -> None:
        """Shut down cleanly, as SIGTERM does; the data stays. Does nothing if the service has already ended."""
        if self._thread is None:
            return
        self.ask_to_stop()
        self._thread.join(PATIENCE_S)
        if self._thread.is_alive():
            raise TimeoutError(f"the {self.what} did not stop within {PATIENCE_S} s")
        self._thread = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def ask_to_stop(self) -> None:
        """Thread-safe; does not wait, and does nothing once the service has ended."""
        with self._lock:
            if self._loop is not None and self._stopping is not None:
                self._loop.call_soon_threadsafe(self._stopping.set)

    def _run(self, started: threading.Event, failure: list[BaseException]) -> None:
        import uvloop

        try:
            uvloop.run(self._serve(started))
        except BaseException as error:
            failure.append(error)
        finally:
            started.set()

    async def _serve(self, started: threading.Event) -> None:
        stopping = asyncio.Event()
        with self._lock:
            self._loop, self._stopping = asyncio.get_running_loop(), stopping
        try:
            await self.serve(started.set, stopping)
        finally:
            with self._lock:
                self._loop = self._stopping = None
