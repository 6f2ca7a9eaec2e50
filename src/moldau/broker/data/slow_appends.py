"""A thread that changes logs while the kernel blocks writers.

A `write` usually just copies into the page cache. Once too many pages are dirty, or the disk does not answer, the
kernel blocks the writer, which would block the loop. So after one such write all changes to logs go through a thread,
in order, until none has been slow for a while. At any time either the loop changes logs or the thread does, never both,
so neither needs a lock and the loop never waits for one. All code that changes a log calls this module:

- `run` for an append: directly while the disk keeps up, in the thread otherwise;
- `submit` for work that always needs the thread, because it opens or renames files;
- `between` for a change in memory that must not overlap an append: on the loop, while the thread is idle.

Why the loop writes at all while the disk keeps up is `docs/adr/0017-the-loop-writes-until-a-write-is-slow.md`.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import resource
import threading
import time
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Final, NamedTuple, TypeVar, TypeVarTuple

from moldau.core.activity import Activity
from moldau.core.errors import MoldauError
from moldau.log.errors import UnexpectedAppendError

__all__ = ["LARGE_BYTES", "SlowAppends", "failure_of", "sleeps"]

log = logging.getLogger(__name__)

SLOW_S: Final = 0.020
"""A write that takes longer counts as blocked by the kernel."""

CALM_S: Final = 1.0
CALM_FACTOR: Final = 10
LONGEST_CALM_S: Final = 300.0
"""The loop appends again after ten times the duration of the slowest write, within these bounds, without a slow write.

A disk that stalled once may stall again, and that should not block the loop.
"""

LARGE_BYTES: Final = 32 * 1024
"""The size from which an append is worth timing: the kernel blocks writers by the pages they make dirty."""

QUEUED_BYTES: Final = 32 * 1024 * 1024
"""With more than this waiting to be written, connections handle no further request until theirs is written."""

JOB_BYTES: Final = 1024
"""The approximate memory of a waiting append besides its batch."""

REPORT_S: Final = 0.005
"""How long finished appends may wait for the others of their loop iteration before they are reported to the loop."""

PATIENCE_S: Final = 0.5
"""An append that takes longer is logged."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _Job(NamedTuple):
    change: Callable[[], None]
    then: Callable[[], None]
    size: int


def _nothing() -> None:
    """The default callback; does nothing."""


def failure_of(append: Callable[[*Ts], None], *args: *Ts) -> MoldauError | None:
    """Append, and return the error if that failed; an unhandled exception is logged and returned as an error too."""
    try:
        append(*args)
    except MoldauError as error:
        return error
    except Exception as error:
        log.exception("an append failed with an unhandled exception")
        return UnexpectedAppendError(f"the append failed with an unhandled exception: {error}")
    return None


def sleeps() -> int:
    """The voluntary context switches of this thread: a write that the kernel blocks causes one."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


class SlowAppends:
    """Runs changes to logs on the loop or in the thread; one per broker, only the jobs run in the thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        is_always_on: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._is_always_on = is_always_on
        self._jobs: queue.SimpleQueue[list[_Job] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._turn: list[_Job] = []
        """Jobs of this loop iteration, handed over together at its end, because waking the thread is expensive."""
        self._line: deque[_Job | Callable[[], None]] = deque()
        """An action for the loop that waits for the jobs before it, and everything submitted after it."""
        self._in_thread = 0
        self._pending = 0
        self._pending_bytes = 0
        self._thread_until: float | None = None
        """When the loop may append again, after a slow write."""
        self._idle: asyncio.Future[None] | None = None
        self._is_closed = False
        self.is_on = is_always_on
        """Whether changes have to go through the thread."""
        self.on_switch: Callable[[bool], None] = lambda is_on: None
        self.count = 0
        """Appends that the kernel blocked."""
        self.activity = Activity("an append", patience_s=PATIENCE_S)

    @property
    def is_full(self) -> bool:
        return self._pending_bytes > QUEUED_BYTES

    @property
    def pending(self) -> int:
        """Gauge: changes that are queued or running in the thread."""
        return self._pending

    # --- making changes ---------------------------------------------------------------------------------

    def run(self, change: Callable[[], None], then: Callable[[MoldauError | None], None], size: int) -> None:
        """Run a change after all earlier ones, here or in the thread, then call `then(error)` on the loop.

        The error is `None` on success. `then` may be called before this returns.
        """
        failures: list[MoldauError | None] = []

        def attempt() -> None:
            failures.append(failure_of(change))

        if self.is_on:
            self.submit(attempt, lambda: then(failures[0]), size)
            return
        sleeps_before, began = sleeps(), perf_counter()
        attempt()
        self.note(perf_counter() - began, sleeps_before)
        then(failures[0])

    def submit(self, change: Callable[[], None], then: Callable[[], None] = _nothing, size: int = 0) -> None:
        """Run `change` in the thread after all others, then `then` on the loop. After `close` both run directly."""
        if self._is_closed:
            change()
            then()
            return
        self._turn_on()
        job = _Job(change, then, size + JOB_BYTES)
        self._pending += 1
        self._pending_bytes += job.size
        if self._line:
            self._line.append(job)
        else:
            self._hand_over(job)

    def between(self, action: Callable[[], None]) -> None:
        """Call `action` on the loop: after everything submitted before, and before anything submitted later."""
        if self._pending or self._line:
            self._line.append(action)
        else:
            action()

    async def apply(self, action: Callable[[], T]) -> T:
        """Like `between`, for a caller that awaits the result."""
        if not self._pending and not self._line:
            return action()
        applied: asyncio.Future[T] = self._loop.create_future()

        def act() -> None:
            try:
                result = action()
            except Exception as error:
                if not applied.done():
                    applied.set_exception(error)
            else:
                if not applied.done():
                    applied.set_result(result)

        self._line.append(act)
        return await applied

    # --- turning on and off -----------------------------------------------------------------------------

    def note(self, elapsed_s: float, sleeps_before: int) -> None:
        """Record the duration of an append; `sleeps_before` is the value of `sleeps` when it began.

        Without a sleep in between, the kernel did not block the write: the machine was busy, and a thread would only
        make that worse.
        """
        if elapsed_s < SLOW_S or sleeps() == sleeps_before:
            return
        self.note_slow(elapsed_s)

    def note_slow(self, elapsed_s: float) -> None:
        """Record that a write on the loop had to wait for the disk."""
        self._keep_thread_on(1, elapsed_s)
        if not self.is_on:
            log.warning("an append took %d ms: appends go through a thread until the disk keeps up", elapsed_s * 1000)
            self._turn_on()

    def _keep_thread_on(self, count: int, slowest_s: float) -> None:
        self.count += count
        until = self._clock() + min(max(CALM_S, slowest_s * CALM_FACTOR), LONGEST_CALM_S)
        self._thread_until = until if self._thread_until is None else max(until, self._thread_until)

    def _turn_on(self) -> None:
        if not self.is_on:
            self.is_on = True
            self.on_switch(True)

    def _turn_off_if_calm(self) -> None:
        if self._is_always_on or not self.is_on:
            return
        if self._thread_until is not None:
            if self._clock() < self._thread_until:
                return
            self._thread_until = None
            log.info("the disk keeps up: the loop appends again")
        self.is_on = False
        self.on_switch(False)

    # --- the queue ---------------------------------------------------------------------------------------

    def _hand_over(self, job: _Job) -> None:
        self._in_thread += 1
        if not self._turn:
            self._loop.call_soon(self._end_turn)
        self._turn.append(job)

    def _end_turn(self) -> None:
        turn, self._turn = self._turn, []
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="moldau-slow-appends", daemon=True)
            self._thread.start()
        self._jobs.put(turn)

    def _run(self) -> None:
        while (turn := self._jobs.get()) is not None:
            done: list[_Job] = []
            slow, slowest_s = 0, 0.0
            told = perf_counter()
            for job in turn:
                began = perf_counter()
                with self.activity:
                    _run_logging_errors(job.change)
                ended = perf_counter()
                slow += ended - began >= SLOW_S
                slowest_s = max(slowest_s, ended - began)
                done.append(job)
                if ended - told > REPORT_S:
                    self._loop.call_soon_threadsafe(self._finish, done, slow, slowest_s)
                    done, slow, slowest_s, told = [], 0, 0.0, ended
            if done:
                self._loop.call_soon_threadsafe(self._finish, done, slow, slowest_s)

    def _finish(self, jobs: list[_Job], slow: int, slowest_s: float) -> None:
        if slow:
            self._keep_thread_on(slow, slowest_s)
        self._in_thread -= len(jobs)
        for job in jobs:
            self._pending -= 1
            self._pending_bytes -= job.size
            _run_logging_errors(job.then)
        self._advance()
        if not self._pending and not self._line:
            self._turn_off_if_calm()
            if self._idle is not None and not self._idle.done():
                self._idle.set_result(None)

    def _advance(self) -> None:
        """Hand over the jobs queued after an action, up to the next action that has to wait for jobs itself."""
        while self._line:
            first = self._line[0]
            if isinstance(first, _Job):
                self._line.popleft()
                self._hand_over(first)
            elif self._in_thread:
                return
            else:
                self._line.popleft()
                _run_logging_errors(first)

    # --- ending -----------------------------------------------------------------------------------------

    async def finish(self) -> None:
        """Wait until everything handed over so far is done."""
        while self._pending or self._line:
            self._idle = self._loop.create_future()
            await self._idle

    def close(self) -> None:
        """End the thread; call it after `finish`, and not on the loop."""
        self._is_closed = True
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None


def _run_logging_errors(act: Callable[[], None]) -> None:
    """Run one job; an unhandled exception is logged and does not stop the queue."""
    try:
        act()
    except Exception:
        log.exception("a change to a log failed with an unhandled exception")
