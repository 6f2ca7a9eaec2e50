"""Appends on one thread, upkeep and reads on others: nobody sees anything torn."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.log.batches import NOW_MS, TP, append, base_offsets, data_batch, marker, new_log

from moldau.core.ids import TopicPartition
from moldau.log.config import LogConfig
from moldau.log.errors import OffsetOutOfRangeError
from moldau.log.files import Files
from moldau.log.manager import LogManager
from moldau.log.partition_log import LogEvents, PartitionLog
from moldau.protocol.records import crc_of, split_batches

BATCHES = 3000


def reader(log: PartitionLog) -> int:
    """Read one slice somewhere in the log and check it; return how many batches it held."""
    start, end = log.log_start_offset, log.log_end_offset
    try:
        part = log.read((start + end) // 2, 2000, end)
    except OffsetOutOfRangeError:
        assert log.log_start_offset > (start + end) // 2, "only retention may overtake a reader"
        return 0
    data = os.pread(part.file.fd, part.length, part.position) if part.length else b""
    batches = list(split_batches(data))
    assert sum(len(batch) for _, batch in batches) == part.length
    assert all(crc_of(batch) == header.crc for header, batch in batches)
    return len(batches)


@pytest.fixture
def _busy_switching() -> Iterator[None]:
    """Let threads take turns after a few steps, so that races show."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_busy_switching")
@pytest.mark.parametrize("lacks_descriptors", [False, True])
def test_upkeep_and_reads_go_on_beside_appends(tmp_path: Path, lacks_descriptors: bool) -> None:
    config = LogConfig(
        segment_bytes=4000, index_interval_bytes=200, retention_bytes=40_000, file_delete_delay_ms=0, flush_messages=50
    )
    logs = LogManager([str(tmp_path)], config_of=lambda topic: config, call_on_loop=lambda function: None)
    logs.open()
    rolled: list[tuple[PartitionLog, object]] = []
    log = logs.create(TP)
    log.events = LogEvents(
        on_roll=lambda which, segment: rolled.append((which, segment)), on_flush_due=lambda which: None
    )
    logs.create(TopicPartition("idle", 0))
    is_done = threading.Event()
    errors: list[BaseException] = []

    def upkeep() -> None:
        while rolled:
            log.finish_roll(rolled.pop(0)[1])  # type: ignore[arg-type]
        log.flush()
        logs.retention_round(NOW_MS)
        logs.checkpoint()

    def read() -> None:
        for _ in range(20):
            reader(log)

    def until_done(work: Callable[[], None]) -> None:
        try:
            while not is_done.is_set():
                work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=until_done, args=(work,)) for work in (upkeep, read)]
    for thread in threads:
        thread.start()
    try:
        for index in range(BATCHES):
            assert append(log, producer_id=7, sequence=index, epoch=index // 500) == index
            if lacks_descriptors and index % 7 == 0:
                logs.release_files(0)
    finally:
        is_done.set()
        for thread in threads:
            thread.join()
    assert errors == []
    logs.retention_round(NOW_MS)
    logs.close()
    again = LogManager([str(tmp_path)], config_of=lambda topic: config)
    again.open()
    found = again.get(TP)
    assert found is not None
    assert base_offsets(found) == list(range(found.log_start_offset, BATCHES))
    assert 0 < found.log_start_offset < BATCHES
    state = found.producers.get(7)
    assert state is not None
    assert state.next_sequence == BATCHES
    again.close()


class HeldFiles(Files):
    """Holds whoever writes an index file until it is let go."""

    def __init__(self) -> None:
        self.is_held = False
        self.arrived, self.go = threading.Event(), threading.Event()

    def write_file(self, path: str, data: bytes, *, sync: bool = False) -> None:
        if self.is_held and path.endswith(".index"):
            self.arrived.set()
            assert self.go.wait(20)
        super().write_file(path, data, sync=sync)


def aborted_log(tmp_path: Path, files: Files) -> PartitionLog:
    """A log of two segments, none of them on disk yet, with an aborted transaction in the first."""
    log = new_log(tmp_path, files, index_interval_bytes=1)
    log.events = LogEvents(on_roll=lambda which, segment: None, on_flush_due=lambda which: None)
    for sequence in range(3):
        append(log, data_batch(1, producer_id=7, sequence=sequence, is_transactional=True))
    append(log, marker(7, commit=False))
    log.roll()
    append(log, data_batch(1))
    return log


def test_files_that_are_idle_are_let_go_only_when_their_indexes_are_saved(tmp_path: Path) -> None:
    """A sync for an acknowledgement saves indexes in one thread while retention lets go of idle files in another."""
    files = HeldFiles()
    log = aborted_log(tmp_path, files)
    closed = log.segments[0]
    entries = len(closed.offset_index)
    files.is_held = True
    syncing = threading.Thread(target=log.flush)
    syncing.start()
    assert files.arrived.wait(20)
    log.release_idle()
    files.go.set()
    syncing.join(20)
    log.release_idle()  # now it may
    assert len(closed.offset_index) == entries > 0
    assert [one.producer_id for one in log.aborted_transactions(0, log.log_end_offset)] == [7]
    log.close()


def test_the_recovery_point_waits_for_indexes_that_another_thread_is_saving(tmp_path: Path) -> None:
    """A checkpoint saves indexes without syncing them; a flush must not take them for saved before they are."""
    files = HeldFiles()
    log = aborted_log(tmp_path, files)
    files.is_held = True
    saving = threading.Thread(target=log.save)
    saving.start()
    assert files.arrived.wait(20)
    syncing = threading.Thread(target=log.flush)
    syncing.start()
    syncing.join(0.2)
    assert log.recovery_point == 0
    files.go.set()
    saving.join(20)
    syncing.join(20)
    assert log.recovery_point == log.log_end_offset
    assert log.segments[0].is_index_synced
    log.close()
