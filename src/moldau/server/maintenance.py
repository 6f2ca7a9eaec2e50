"""The maintenance thread: periodic work on the log that must not block the event loop.

It runs periodic jobs (retention, flushing, checkpoints, deletions) and jobs submitted by the loop (the sync after a
roll). Jobs run one after the other, so they need no locks against each other. Start at `Maintenance`.
"""

from __future__ import annotations

import heapq
import logging
import threading
from collections import deque
from collections.abc import Callable
from itertools import count

from moldau.core.activity import Activity
from moldau.core.clock import Clock
from moldau.log.errors import FatalDiskError, StorageError

__all__ = ["Maintenance", "Schedule"]

_logger = logging.getLogger("moldau.maintenance")

Job = Callable[[], None]

LONGEST_WAIT_MS = 60_000


class Schedule:
    """When each periodic job is due. A job that missed several rounds runs only once."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, Job]] = []
        self._order = count()

    def add(self, job: Job, *, first_ms: int, interval_ms: int) -> None:
        heapq.heappush(self._heap, (first_ms, next(self._order), max(1, interval_ms), job))

    def due(self, now_ms: int) -> list[Job]:
        """Return the jobs that are due, and set when each runs next."""
        jobs = []
        while self._heap and self._heap[0][0] <= now_ms:
            _, order, interval_ms, job = heapq.heappop(self._heap)
            jobs.append(job)
            heapq.heappush(self._heap, (now_ms + interval_ms, order, interval_ms, job))
        return jobs

    def wait_ms(self, now_ms: int) -> int:
        """The time until the next job is due, at most `LONGEST_WAIT_MS`."""
        if not self._heap:
            return LONGEST_WAIT_MS
        return min(LONGEST_WAIT_MS, max(0, self._heap[0][0] - now_ms))


class Maintenance:
    def __init__(self, clock: Clock, on_fatal: Callable[[BaseException], None]) -> None:
        self._clock = clock
        self._on_fatal = on_fatal
        self._schedule = Schedule()
        self._jobs: deque[Job] = deque()
        self._wake = threading.Condition()
        self._is_stopping = False
        self.activity = Activity("a maintenance job", patience_s=10.0)
        self._thread = threading.Thread(target=self._run, name="moldau-maintenance", daemon=True)

    def every(self, interval_ms: int, job: Job, *, first_after_ms: int | None = None) -> None:
        """Run `job` at an interval, first after `first_after_ms`. Call it only before `start`."""
        first = self._clock.monotonic_ms() + (interval_ms if first_after_ms is None else first_after_ms)
        self._schedule.add(job, first_ms=first, interval_ms=interval_ms)

    def submit(self, job: Job) -> None:
        """Queue a job and return at once. Thread-safe."""
        with self._wake:
            self._jobs.append(job)
            self._wake.notify()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Finish the jobs submitted so far, then end the thread."""
        if not self._thread.is_alive():
            return
        with self._wake:
            self._is_stopping = True
            self._wake.notify()
        self._thread.join()

    def _run(self) -> None:
        while (jobs := self._next_jobs()) is not None:
            for job in jobs:
                self._do(job)

    def _next_jobs(self) -> list[Job] | None:
        """Wait for jobs that are submitted or due; `None` after `stop`, once no submitted job is left."""
        with self._wake:
            while True:
                handed_over = list(self._jobs)
                self._jobs.clear()
                if handed_over:
                    return handed_over
                if self._is_stopping:
                    return None
                now_ms = self._clock.monotonic_ms()
                due = self._schedule.due(now_ms)
                if due:
                    return due
                self._wake.wait(self._schedule.wait_ms(now_ms) / 1000)

    def _do(self, job: Job) -> None:
        try:
            with self.activity:
                job()
        except FatalDiskError as error:
            self._on_fatal(error)
        except StorageError as error:
            _logger.error("a maintenance job failed; it is retried at its next interval: %s", error)
        except Exception:
            _logger.exception("a maintenance job failed; it is retried at its next interval")
