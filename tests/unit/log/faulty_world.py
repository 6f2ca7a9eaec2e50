"""A log that is written to, killed and opened again, beside a model of what it must hold.

`World` does what a broker does with a partition and gives each step a second and a third chance, as clients and the
broker's rounds do. After every error it looks whether the log is as it was; `check` compares everything a reader can
ask for with the model. Start at `World.produce`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.unit.log.batches import NOW_MS, TP, batches_of, data_batch, marker

from moldau.core.errors import StartupError
from moldau.log.config import LogConfig
from moldau.log.errors import FatalDiskError, StorageError
from moldau.log.manager import LogManager
from moldau.log.partition_log import LogEvents, PartitionLog
from moldau.log.producer_state import ProducerState
from moldau.protocol.record_batch import BatchHeader
from moldau.protocol.records import decode_records
from moldau.testing.failing_files import FailingFiles, Fault, KilledError

CHANCES = 4
"""A step fails at most twice on its own account: the failure, and the start after it is another attempt."""


def one_per_call(faults: Iterable[Fault]) -> list[Fault]:
    """For each call one of its errors, another one for the next call."""
    errors: dict[int, list[Fault]] = {}
    for fault in faults:
        errors.setdefault(fault.number, []).append(fault)
    return [some[number % len(some)] for number, some in errors.items()]


@dataclass
class Written:
    """A batch that was acknowledged."""

    base_offset: int
    producer_id: int
    payload: bytes
    epoch: int
    is_transactional: bool = False
    is_marker: bool = False
    is_commit: bool = False


@dataclass
class World:
    directory: Path
    files: FailingFiles
    is_killed_at_failure: bool = False
    """Whether the process dies right after the first error it sees, rather than go on."""
    settings: dict[str, Any] = field(default_factory=dict)
    written: list[Written] = field(default_factory=list)
    sequences: dict[int, int] = field(default_factory=dict)
    log_start_offset: int = 0
    epoch: int = 0
    restarts: int = 0
    jobs: list[Callable[[], None]] = field(default_factory=list)
    may_be_offline: bool = False
    """Whether one failure may be more than the log can work on with; a start must be enough then."""
    _has_been_killed: bool = False
    _is_writing: bool = False
    _was_writing: bool = False
    """Whether the last process ended in the middle of a change."""
    _is_copy_checked: bool = False
    _manager: LogManager | None = None
    _payloads: int = 0

    # --- the process ------------------------------------------------------------------------------------

    @property
    def manager(self) -> LogManager:
        while self._manager is None:
            self._start()
        return self._manager

    @property
    def log(self) -> PartitionLog:
        log = self.manager.get(TP)
        if log is None:
            self.attempt(lambda: self.manager.create(TP))
            log = self.manager.get(TP)
            assert log is not None
            log.begin_leader_epoch(self.epoch)
        return log

    def _start(self) -> None:
        has_to_look = self.files.has_failed and not self._was_writing and not self._is_copy_checked
        if has_to_look and self.directory.exists():
            self._check_copy()
        events = LogEvents(
            on_roll=lambda log, segment: self.jobs.append(lambda: log.finish_roll(segment)),
            on_flush_due=lambda log: self.jobs.append(lambda: log.flush() and None),
        )
        manager = LogManager(
            [str(self.directory)], self.files, None, lambda topic: LogConfig(**self.settings), events=events
        )
        try:
            manager.open()
            for topic_partition in manager.unopened:  # the broker tries again, and one failure is all there is
                manager.restore(manager.reopen(topic_partition, None))
        except (StartupError, KilledError):
            manager.abandon()
            return
        self._manager = manager
        log = manager.get(TP)
        if log is not None:
            assert log.offline_error is None, log.offline_error
            self.epoch += 1
            log.begin_leader_epoch(self.epoch)
            log.high_watermark = log.log_end_offset

    def _check_copy(self) -> None:
        """Open a copy of what the failure left; in the original, looking would read what is not read otherwise."""
        self._is_copy_checked = True
        copy = self.directory.with_suffix(".copy")
        shutil.copytree(self.directory, copy)
        files = FailingFiles(is_counting=False)
        twin = replace(self, directory=copy, files=files, jobs=[], sequences=dict(self.sequences))
        twin._manager = None
        twin._compare()
        twin.kill()
        shutil.rmtree(copy)

    def kill(self) -> None:
        """End the process as kill -9 does: the files stay as they are."""
        if self._manager is not None:
            self._manager.abandon()
            self._was_writing = self._is_writing
        self._manager = None
        self.jobs.clear()
        self.restarts += 1

    def attempt(self, step: Callable[[], Any]) -> Any:
        """Do a step as a broker does, which answers errors and tries again; anything else is a bug."""
        for _ in range(CHANCES):
            try:
                return step()
            except (FatalDiskError, KilledError):
                self.kill()
            except StorageError:
                self._after_error()
        raise AssertionError("still failing, though the fault is gone")

    def change(self, step: Callable[[], Any]) -> Any:
        """Attempt a step that writes or cuts records: until it is done, a start may find it done or not."""
        self._is_writing = True
        try:
            return self.attempt(step)
        finally:
            self._is_writing = False

    def background(self, step: Callable[[], Any]) -> None:
        """Do a step as the maintenance thread does, which logs what goes wrong and lives on."""
        try:
            step()
        except (FatalDiskError, KilledError):
            self.kill()
        except (StorageError, OSError):
            self._after_error()

    def _after_error(self) -> None:
        is_offline = self._manager is not None and any(log.offline_error is not None for log in self._manager)
        assert self.may_be_offline or not is_offline
        if is_offline or (self.is_killed_at_failure and not self._has_been_killed):
            self._has_been_killed = True
            self.kill()

    # --- what a broker does -----------------------------------------------------------------------------

    def produce(self, producer_id: int = -1, *, count: int = 1, is_transactional: bool = False) -> None:
        self._payloads += 1
        payload = b"payload-%04d-" % self._payloads + b"x" * 30
        sequence = self.sequences.get(producer_id, 0)

        def send() -> int:
            batch = data_batch(
                count,
                timestamp=NOW_MS + self._payloads,
                producer_id=producer_id,
                sequence=sequence,
                is_transactional=is_transactional,
                value=payload,
            )
            return self._append(batch)

        base_offset = self.change(send)
        self.sequences[producer_id] = sequence + count
        self.written.append(Written(base_offset, producer_id, payload, self.epoch, is_transactional))

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        def write() -> int:
            producer = self.log.producers.get(producer_id)
            if producer is not None and producer.txn_first_offset is None:
                return self.log.log_end_offset - 1  # there since before a crash
            return self._append(marker(producer_id, commit=is_commit))

        base_offset = self.change(write)
        self.written.append(Written(base_offset, producer_id, b"", self.epoch, True, True, is_commit))

    def _append(self, batch: bytearray) -> int:
        log, header = self.log, BatchHeader.at(batch)
        if header.producer_id >= 0 and not header.is_control:
            duplicate = log.producers.check(tuple(header))
            if duplicate is not None:
                return duplicate.base_offset
        before = state_of(log)
        try:
            base_offset = log.append(memoryview(batch), tuple(header), self.epoch, NOW_MS)
        except StorageError:
            if log.offline_error is None:
                assert _changes(before, state_of(log)) == [], "a failed append left something behind"
            raise
        log.high_watermark = log.log_end_offset
        return base_offset

    def begin_epoch(self) -> None:
        """Another leader epoch, as after an election."""
        log = self.log
        self.epoch += 1
        log.begin_leader_epoch(self.epoch)

    def roll(self) -> None:
        self.attempt(lambda: self.log.roll(NOW_MS))

    def maintain(self) -> None:
        """Do the jobs that rolls and flushes handed over."""
        while self.jobs:
            self.background(self.jobs.pop(0))

    def checkpoint(self) -> None:
        self.background(self.manager.checkpoint)

    def flush(self) -> None:
        self.attempt(lambda: self.log.flush())  # noqa: PLW0108 - another attempt may find another log

    def truncate(self, offset: int) -> None:
        def cut() -> None:
            self.log.truncate_to(offset)

        self.may_be_offline = True
        self.change(cut)
        self.may_be_offline = False
        self.written = [one for one in self.written if one.base_offset < offset]
        producers = [one.producer_id for one in self.written]
        self.sequences = {each: producers.count(each) for each in set(producers)}

    def delete_records(self, offset: int) -> None:
        """What a DeleteRecords request asks for, and the round that removes the files."""
        self.attempt(lambda: self.log.advance_log_start(offset))
        self.log_start_offset = offset
        self.background(lambda: self.manager.retention_round(NOW_MS))

    def stop_and_start(self) -> None:
        """An orderly end."""
        try:
            self.manager.close()
        except (FatalDiskError, KilledError):
            self.kill()
        self._manager, self._was_writing = None, False
        self.jobs.clear()
        _ = self.manager

    # --- looking ----------------------------------------------------------------------------------------

    def check(self) -> None:
        """Compare the log with the model, then kill the process and compare again, then end it in order."""
        self.files.stop()
        self._compare()
        self.kill()
        self._compare()
        self.produce(77)
        self.produce(77)
        self.maintain()
        self.stop_and_start()
        self._compare()
        self.produce(77)
        self._compare()

    def _compare(self) -> None:
        log = self.log
        # A start may find records again that were deleted since the last checkpoint.
        start = log.log_start_offset
        assert start <= self.log_start_offset
        found = [
            (header.base_offset, header.producer_id, header.is_control, b"" if header.is_control else _value(batch))
            for header, batch in batches_of(log)
        ]
        expected = [
            (one.base_offset, one.producer_id, one.is_marker, one.payload)
            for one in self.written
            if one.base_offset >= start
        ]
        assert found == expected
        assert _values_committed(log) == self._committed(start)
        for producer_id, sequence in self.sequences.items():
            producer = log.producers.get(producer_id)
            assert producer_id < 0 or (producer is not None and producer.next_sequence == sequence)
        for one in self.written:
            if not one.is_marker and one.base_offset >= start:
                timestamp = NOW_MS + int(one.payload[8:12])
                assert log.offset_for_timestamp(timestamp)[1] == one.base_offset  # type: ignore[index]
        for segment in log.segments:
            assert self.files.size(segment.path(".log")) == segment.size
        epochs = log.leader_epochs
        for header, _ in batches_of(log):
            assert epochs.epoch_of(header.base_offset) == header.partition_leader_epoch

    def _committed(self, start: int) -> list[bytes]:
        """What a reader of committed data must see."""
        visible = []
        for index, one in enumerate(self.written):
            if one.is_marker or one.base_offset < start:
                continue
            ends = [
                later
                for later in self.written[index:]
                if later.is_marker and later.producer_id == one.producer_id and one.is_transactional
            ]
            if one.is_transactional and not ends:
                break
            if not one.is_transactional or ends[0].is_commit:
                visible.append(one.payload)
        return visible


def _values_committed(log: PartitionLog) -> list[bytes]:
    """What a consumer with `isolation.level=read_committed` makes of the log."""
    end = log.last_stable_offset
    aborted = sorted(log.aborted_transactions(log.log_start_offset, end), key=lambda one: one.first_offset)
    open_aborts: set[int] = set()
    visible = []
    for header, batch in batches_of(log):
        if header.base_offset >= end:
            break
        while aborted and aborted[0].first_offset <= header.last_offset:
            open_aborts.add(aborted.pop(0).producer_id)
        if header.is_control:
            open_aborts.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in open_aborts):
            visible.append(_value(batch))
    return visible


def _value(batch: bytes) -> bytes:
    value = next(decode_records(batch, BatchHeader.at(batch))).value
    assert value is not None
    return value


def state_of(log: PartitionLog) -> list[Any]:
    """All that an append changes, as it is in memory: looking must not read, or it would hide what was not read."""
    filled = [segment for segment in log.segments if segment.size]
    producers = log.loaded_producers
    last = filled[-1] if filled else None
    return [
        log.log_end_offset,
        None if producers is None else [_producer(one) for one in producers],
        None if producers is None else [producers.first_unstable_offset(2**62)],
        None if last is None else (last.base_offset, last.size),
        None if last is None or last._offset_index is None else bytes(last._offset_index.entries),
        None if last is None or last._txn_index is None else bytes(last._txn_index.entries),
        None if last is None else last.max_timestamp,
        [os.path.getsize(segment.path(".log")) for segment in filled],
        log._latest_epoch,
    ]


def _changes(before: list[Any], after: list[Any]) -> list[Any]:
    """What differs; what was only read meanwhile does not count."""
    return [(old, new) for old, new in zip(before, after, strict=True) if old is not None and old != new]


def _producer(state: ProducerState) -> Any:
    return state.producer_id, state.producer_epoch, state.recent, state.next_sequence, state.txn_first_offset
