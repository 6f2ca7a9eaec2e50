"""The log cleaner: each round picks the dirtiest compacted log and cleans it.

Thin: `log.cleaning.compaction` decides, `log.cleaning.cleaning_round` runs the work in a separate process and swaps the
result in. The cleaner's threads mostly wait for that process. Start at `Cleaner.run_once`.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.core.clock import Clock, SystemClock
from moldau.core.config.sections import setting
from moldau.core.errors import MoldauError
from moldau.core.ids import INT64_MAX, TopicPartition
from moldau.log.cleaning.cleaner_checkpoints import CleanerCheckpoints
from moldau.log.cleaning.compaction import CleanableLog, SegmentFacts, cleanable_log, cleanable_range, dirtiest
from moldau.log.errors import CleaningFailedError, CleaningStoppedError, StorageError
from moldau.log.files import Files
from moldau.log.partition_log import PartitionLog
from moldau.log.segments.segment import Segment

if TYPE_CHECKING:
    from moldau.log.cleaning.cleaner_worker import CleanerWorker
    from moldau.log.cleaning.cleaning_job import CleanedGroup, CleaningResult

__all__ = ["Cleaner", "CleanerSettings", "LastRound"]

log = logging.getLogger("moldau.log.cleaning.cleaner")

HAND_OVER_CHECK_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerSettings:
    """Kafka's `log.cleaning.cleaner.*`, resolved."""

    threads: int = setting("log.cleaner.threads")
    backoff_ms: int = setting("log.cleaner.backoff.ms")
    dedupe_buffer_size: int = setting("log.cleaner.dedupe.buffer.size")
    io_max_bytes_per_second: float = setting("log.cleaner.io.max.bytes.per.second")


@dataclass(frozen=True, slots=True)
class LastRound:
    """Figures of the latest round over a partition."""

    bytes_read: int
    bytes_written: int
    seconds: float
    buffer_utilization_percent: float


class Cleaner:
    """Cleans the compacted logs among `logs()`. Metrics are plain attributes, read from any thread."""

    def __init__(
        self,
        logs: Callable[[], Iterable[PartitionLog]],
        *,
        settings: Callable[[], CleanerSettings] = CleanerSettings,
        hand_over: Callable[[Callable[[], None]], None] | None = None,
        files: Files | None = None,
        clock: Clock | None = None,
        make_worker: Callable[[], CleanerWorker] | None = None,
    ) -> None:
        """`hand_over` runs a swap in the thread that also deletes segments, so that the two never overlap; without it
        the cleaner's own thread swaps."""
        self._logs = logs
        self._hand_over = hand_over
        self._settings = settings
        self._files = files or Files()
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._make_worker = make_worker or _new_worker
        self._workers: dict[int, CleanerWorker] = {}
        """By thread; present only while that thread has work."""
        self._checkpoints = CleanerCheckpoints(self._files)
        self._in_progress: set[TopicPartition] = set()
        self._last_looked_ms: int | None = None
        self.uncleanable: dict[TopicPartition, str] = {}
        """Partitions that are not cleaned until the next start, each with the reason."""
        self.last_rounds: dict[TopicPartition, LastRound] = {}
        self.rounds = 0
        self.max_dirty_percent = 0
        self.max_compaction_delay_secs = 0

    # --- lifecycle -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start cleaning in the background."""
        for number in range(max(0, self._settings().threads)):
            thread = threading.Thread(target=self._run, name=f"log-cleaner-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Stop at once. A running round is abandoned; only its work is lost."""
        with self._lock:
            self._stopping.set()
            workers = list(self._workers.values())
        for worker in workers:
            worker.close()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            if not self.run_once(self._clock.now_ms()):
                # Nothing is due: an idle broker should not keep an idle process.
                self.release_worker()
                self._stopping.wait(self._settings().backoff_ms / 1000)
        self.release_worker()

    def _worker(self) -> CleanerWorker:
        with self._lock:
            if self._stopping.is_set():
                raise CleaningStoppedError("the cleaner is stopped")
            number = threading.get_ident()
            if number not in self._workers:
                self._workers[number] = self._make_worker()
            return self._workers[number]

    def release_worker(self) -> None:
        """Stop the process that cleaned for this thread, if there is one."""
        with self._lock:
            worker = self._workers.pop(threading.get_ident(), None)
        if worker is not None:
            worker.release()

    # --- one round --------------------------------------------------------------------------------------

    def run_once(self, now_ms: int) -> bool:
        """Clean the log that needs it most; false when none does, or when the round failed."""
        try:
            chosen = self._take_dirtiest(now_ms)
        except OSError as error:
            log.warning("cannot determine which log to clean, will retry: %s", error)
            return False
        if chosen is None:
            return False
        target, found = chosen
        try:
            self._clean(target, found, now_ms)
        except CleaningStoppedError:
            return False
        except (MoldauError, OSError) as error:
            self._give_up(target, error)
            return False
        except Exception as error:
            log.exception("%s: cleaning failed with an unhandled exception", target.topic_partition)
            self._give_up(target, error)
            return False
        finally:
            with self._lock:
                self._in_progress.discard(target.topic_partition)
        return True

    def _take_dirtiest(self, now_ms: int) -> tuple[PartitionLog, CleanableLog] | None:
        with self._lock:
            self._last_looked_ms = now_ms
            logs = {each.topic_partition: each for each in self._logs()}
            for partition in self._checkpoints.note_logs(logs):
                self.uncleanable.pop(partition, None)
                self.last_rounds.pop(partition, None)
            waiting = [
                each
                for partition, each in logs.items()
                if _is_cleanable(each) and partition not in self.uncleanable and partition not in self._in_progress
            ]
            candidates = [found for each in waiting if (found := self._measure_or_skip(each, now_ms)) is not None]
            self.max_dirty_percent = int(100 * max((found.dirty_ratio for found in candidates), default=0.0))
            self.max_compaction_delay_secs = max((found.overdue_ms for found in candidates), default=0) // 1000
            found = dirtiest(candidates)
            if found is None:
                return None
            self._in_progress.add(found.partition)
            return logs[found.partition], found

    def _measure_or_skip(self, target: PartitionLog, now_ms: int) -> CleanableLog | None:
        """Measure one log. A log that cannot be read is skipped, so that the others are still cleaned."""
        try:
            return self._measure(target, now_ms)
        except (MoldauError, OSError) as error:
            log.warning("%s: cannot determine how dirty the log is: %s", target.topic_partition, error)
            return None

    def _measure(self, target: PartitionLog, now_ms: int) -> CleanableLog:
        config, segments = target.config, target.segments
        facts = [
            _segment_facts(segment, config.min_compaction_lag_ms, config.max_compaction_lag_ms) for segment in segments
        ]
        span = cleanable_range(
            facts,
            checkpoint=self._checkpoints.offset_of(target),
            log_start_offset=target.log_start_offset,
            log_end_offset=target.log_end_offset,
            # A log with one segment has nothing to clean: skip loading its producer state.
            last_stable_offset=_stable_offset(target) if len(segments) > 1 else target.log_start_offset,
            min_compaction_lag_ms=config.min_compaction_lag_ms,
            now_ms=now_ms,
        )
        return cleanable_log(target.topic_partition, facts, span, config, now_ms=now_ms)

    def _clean(self, target: PartitionLog, found: CleanableLog, now_ms: int) -> None:
        # Imported here: a broker without compacted topics never needs it.
        from moldau.log.cleaning.cleaning_round import CleaningRound

        started = time.monotonic()
        cleaning = CleaningRound(
            target=target,
            span=found.range,
            settings=self._settings(),
            files=self._files,
            clock=self._clock,
            exclusively=self._run_in_deleting_thread,
        )
        result = cleaning.run(self._worker(), now_ms)
        with self._lock:
            self._checkpoints.save(target, result.end_offset)
            self._note_round(target, result, cleaning.groups, time.monotonic() - started)

    def _run_in_deleting_thread(self, job: Callable[[], None]) -> None:
        """Run `job` in the thread that deletes segments, and wait for it."""
        if self._hand_over is None:
            job()
            return
        outcome: Future[None] = Future()

        def run() -> None:
            try:
                job()
                outcome.set_result(None)
            except Exception as error:
                outcome.set_exception(error)

        self._hand_over(run)
        while not wait([outcome], HAND_OVER_CHECK_S).done:
            if self._stopping.is_set():
                raise CleaningStoppedError("the cleaner is stopped")
        outcome.result()

    def _give_up(self, target: PartitionLog, error: Exception) -> None:
        """Retry transient failures; others would recur in every round, so the partition is marked uncleanable."""
        partition = target.topic_partition
        is_transient = isinstance(error, OSError | StorageError) or (
            isinstance(error, CleaningFailedError) and error.is_transient
        )
        if target.is_closed:
            log.info("%s: cleaning stopped, the log is closed", partition)
        elif is_transient:
            log.warning("%s: cleaning failed, will retry: %s", partition, error)
        else:
            self.uncleanable[partition] = str(error)
            log.error("%s: marked uncleanable until the next start: %s", partition, error)

    # --- metrics ----------------------------------------------------------------------------------------

    def _note_round(
        self, target: PartitionLog, result: CleaningResult, groups: Sequence[CleanedGroup], seconds: float
    ) -> None:
        done = LastRound(
            result.map_bytes_read + sum(group.bytes_read for group in groups),
            sum(group.bytes_written for group in groups),
            seconds,
            100 * result.keys / result.map_capacity,
        )
        self.rounds += 1
        self.last_rounds[target.topic_partition] = done
        log.info(
            "%s: cleaned up to offset %d in %.1f s, %d of %d records kept, %d bytes read, %d written",
            target.topic_partition,
            result.end_offset,
            seconds,
            result.records_kept,
            result.records_read,
            done.bytes_read,
            done.bytes_written,
        )

    @property
    def dead_thread_count(self) -> int:
        return 0 if self._stopping.is_set() else sum(not thread.is_alive() for thread in self._threads)

    @property
    def max_clean_time_secs(self) -> int:
        return int(max((done.seconds for done in self._latest()), default=0))

    @property
    def max_buffer_utilization_percent(self) -> int:
        return int(max((done.buffer_utilization_percent for done in self._latest()), default=0))

    @property
    def cleaner_recopy_percent(self) -> int:
        """Bytes written per hundred bytes read, over the latest rounds."""
        read = sum(done.bytes_read for done in self._latest())
        return int(100 * sum(done.bytes_written for done in self._latest()) / max(1, read))

    def _latest(self) -> list[LastRound]:
        return list(self.last_rounds.values())

    def time_since_last_run_ms(self, now_ms: int) -> int:
        return 0 if self._last_looked_ms is None else max(0, now_ms - self._last_looked_ms)

    def uncleanable_partitions_count(self, log_dir: str) -> int:
        return len(self._uncleanable_in(log_dir))

    def uncleanable_bytes(self, log_dir: str) -> int:
        """Bytes of closed segments of uncleanable partitions in this log directory."""
        return sum(segment.size for each in self._uncleanable_in(log_dir) for segment in each.segments[:-1])

    def _uncleanable_in(self, log_dir: str) -> list[PartitionLog]:
        return [
            each
            for each in self._logs()
            if each.topic_partition in self.uncleanable and os.path.dirname(each.directory) == log_dir
        ]


def _is_cleanable(target: PartitionLog) -> bool:
    return target.config.is_compacted and not target.is_closed and target.offline_error is None


def _segment_facts(segment: Segment, min_lag_ms: int, max_lag_ms: int) -> SegmentFacts:
    """Timestamps are filled in only where a compaction lag needs them, since they may cost a disk read."""
    first_ms = newest_ms = -1
    if max_lag_ms < INT64_MAX and segment.size:
        first_ms = next((header.max_timestamp for _, header in segment.headers()), -1)
    if min_lag_ms > 0 and segment.size:
        newest_ms = segment.newest_timestamp().timestamp
    return SegmentFacts(segment.base_offset, segment.size, first_ms, newest_ms)


def _stable_offset(target: PartitionLog) -> int:
    """The last stable offset, read while the loop thread appends.

    Reading the open transactions while one of them ends may fail, so it is retried.
    """
    for _ in range(10):
        try:
            return min(target.last_stable_offset, target.high_watermark)
        except (IndexError, RuntimeError):
            continue
    return target.log_start_offset


def _new_worker() -> CleanerWorker:
    from moldau.log.cleaning.cleaner_worker import CleanerWorker

    return CleanerWorker()
