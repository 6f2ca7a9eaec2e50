"""A thread for appends while the kernel makes writers wait.

A `write` usually just copies into the page cache. Once too many pages are dirty the kernel stops whoever writes until
the disk has caught up, and the loop would stop with it. So after one such write all appends go through a thread, in
order, until none has been slow for a while. At any time either the loop appends or the thread does; whatever else
changes a log takes `lock` first. Start at `SlowAppends.note`.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import resource
import threading
from collections.abc import Callable
from time import perf_counter
from typing import Final

__all__ = ["LARGE_BYTES", "SlowAppends", "sleeps"]

log = logging.getLogger(__name__)

SLOW_S: Final = 0.020
"""A write that takes longer did not just copy."""

CALM_S: Final = 1.0
"""Without a slow write for this long, the loop appends again."""

LARGE_BYTES: Final = 32 * 1024
"""Appends worth timing: the kernel stops writers by the pages they make dirty."""

QUEUED_BYTES: Final = 32 * 1024 * 1024
"""With more than this waiting to be written, connections wait instead of sending more."""

Job = tuple[Callable[[], None], Callable[[], None], int]


def sleeps() -> int:
    """How often this thread has given up the processor of its own accord, as a writer does whom the kernel stops."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


class SlowAppends:
    """One per broker; everything but the jobs runs on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, lock: threading.Lock) -> None:
        self._loop = loop
        self._lock = lock
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._pending = 0
        self._pending_bytes = 0
        self._last_slow = 0.0
        self.is_on = False
        """Whether appends have to go through the thread."""
        self.on_switch: Callable[[bool], None] = lambda is_on: None
        self.count = 0
        """Appends that the kernel held up."""

    @property
    def is_full(self) -> bool:
        return self._pending_bytes > QUEUED_BYTES

    def note(self, elapsed_s: float, sleeps_before: int) -> None:
        """An append took this long; `sleeps_before` is what `sleeps` said when it began.

        Without a sleep in between it was not the kernel that held the write up: the machine was busy, and a thread
        would only have made that worse.
        """
        if elapsed_s < SLOW_S or sleeps() == sleeps_before:
            return
        self.count += 1
        self._last_slow = self._loop.time()
        if not self.is_on:
            log.warning("an append took %d ms: appends go through a thread until the disk keeps up", elapsed_s * 1000)
            self.is_on = True
            self.on_switch(True)

    def submit(self, append: Callable[[], None], then: Callable[[], None], size: int) -> None:
        """Run `append` in the thread after all others, then `then` on the loop."""
        self._pending += 1
        self._pending_bytes += size
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="moldau-slow-appends", daemon=True)
            self._thread.start()
        self._jobs.put((append, then, size))

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            append, then, size = job
            with self._lock:
                began = perf_counter()
                append()
                elapsed_s = perf_counter() - began
            self._loop.call_soon_threadsafe(self._finish, then, size, elapsed_s)

    def _finish(self, then: Callable[[], None], size: int, elapsed_s: float) -> None:
        self._pending -= 1
        self._pending_bytes -= size
        if elapsed_s >= SLOW_S:
            self.count += 1
            self._last_slow = self._loop.time()
        then()
        if not self._pending and self._loop.time() - self._last_slow > CALM_S:
            log.info("the disk keeps up: the loop appends again")
            self.is_on = False
            self.on_switch(False)

    def close(self) -> None:
        """Finish the appends that were handed over and end the thread."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None
