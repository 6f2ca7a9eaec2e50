"""The thread that looks after the logs: all that may wait for the disk and must not hold up the loop.

Jobs come at once (a segment was rolled, `flush.messages` have gathered), rounds come by the clock. A round
that fails is logged and comes again; only a failed sync is fatal, and the log itself has reported that.
Start at `LogMaintenance.start`.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

from moldau.core.clock import Clock
from moldau.log.errors import FatalDiskError
from moldau.log.log_state import LogEvents
from moldau.log.manager import LogManager
from moldau.log.partition_log import PartitionLog
from moldau.log.segment import Segment

__all__ = ["LogMaintenance", "MaintenanceIntervals"]

log = logging.getLogger("moldau.log")

_LONGEST_WAIT_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceIntervals:
    """How often each round comes, in milliseconds."""

    initial_delay_ms: int = 30_000
    """Before the first retention round. Kafka key: `log.initial.task.delay.ms`."""
    retention_ms: int = 300_000
    """Kafka key: `log.retention.check.interval.ms`."""
    flush_ms: int = 1_000
    """How often `flush.ms` is looked at. Kafka key: `log.flush.scheduler.interval.ms`."""
    checkpoint_ms: int = 60_000
    """Kafka key: `log.flush.offset.checkpoint.interval.ms`."""
    high_watermark_ms: int = 5_000
    """Kafka key: `replica.high.watermark.checkpoint.interval.ms`."""
    delete_ms: int = 1_000
    """How often files whose `file.delete.delay.ms` has passed are unlinked."""


@dataclass(slots=True)
class _Round:
    run: Callable[[], None]
    interval_ms: int
    due_ms: int


class LogMaintenance:
    """Give `events` to the `LogManager`, then `watch` it and `start`."""

    def __init__(self, clock: Clock, intervals: MaintenanceIntervals | None = None) -> None:
        self._clock = clock
        self._intervals = intervals or MaintenanceIntervals()
        self._jobs: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._rounds: list[_Round] = []
        self._thread: threading.Thread | None = None
        self._flushing: set[PartitionLog] = set()

    def events(self, on_fatal: Callable[[FatalDiskError], None]) -> LogEvents:
        """What logs tell: rolls and due flushes come here, a failed sync goes to `on_fatal`."""
        return LogEvents(on_roll=self._on_roll, on_flush_due=self._on_flush_due, on_fatal=on_fatal)

    def _on_roll(self, partition_log: PartitionLog, segment: Segment) -> None:
        self._jobs.put(lambda: partition_log.finish_roll(segment))

    def _on_flush_due(self, partition_log: PartitionLog) -> None:
        if partition_log not in self._flushing:
            self._flushing.add(partition_log)
            self._jobs.put(lambda: self._flush(partition_log))

    def _flush(self, partition_log: PartitionLog) -> None:
        # Before the flush: a batch that comes while it runs has to ask again.
        self._flushing.discard(partition_log)
        partition_log.flush()

    def watch(self, logs: LogManager) -> None:
        """Look after these logs from `start` on."""
        clock, every, now_ms = self._clock, self._intervals, self._clock.monotonic_ms()

        def after(run: Callable[[], None], interval_ms: int) -> _Round:
            return _Round(run, interval_ms, now_ms + interval_ms)

        retention = after(lambda: logs.retention_round(clock.now_ms()), every.retention_ms)
        retention.due_ms = now_ms + every.initial_delay_ms
        self._rounds = [
            after(lambda: logs.flush_round(clock.now_ms()), every.flush_ms),
            after(lambda: logs.delete_retired(clock.now_ms()), every.delete_ms),
            after(logs.checkpoint_high_watermarks, every.high_watermark_ms),
            after(logs.checkpoint, every.checkpoint_ms),
            retention,
        ]

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="moldau-log-maintenance", daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], object]) -> None:
        """Run something of the caller's in this thread."""
        self._jobs.put(job)

    def stop(self) -> None:
        """Finish the jobs that wait, and end the thread."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while True:
            now_ms = self._clock.monotonic_ms()
            for due in [round_ for round_ in self._rounds if round_.due_ms <= now_ms]:
                due.due_ms = now_ms + due.interval_ms
                self._try(due.run)
            next_ms = min((now_ms + _LONGEST_WAIT_MS, *(round_.due_ms for round_ in self._rounds)))
            try:
                job = self._jobs.get(timeout=max(0, next_ms - self._clock.monotonic_ms()) / 1000)
            except queue.Empty:
                continue
            if job is None:
                return
            self._try(job)

    def _try(self, job: Callable[[], object]) -> None:
        try:
            job()
        except FatalDiskError as error:
            log.critical("%s", error)
        except Exception:
            log.exception("log maintenance failed; it will be tried again")
