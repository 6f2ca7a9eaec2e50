"""One partition's log in normal running: appends, rolls, reads, truncation, deletion, failing disks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.unit.log.batches import (
    NOW_MS,
    FaultyFiles,
    append,
    base_offsets,
    batches_of,
    clean_run,
    data_batch,
    marker,
    new_log,
    reopened,
)

from moldau.log.errors import FatalDiskError, OffsetOutOfRangeError, StorageError
from moldau.log.partition_log import LogEvents, PartitionLog
from moldau.protocol.record_batch import BatchHeader
from moldau.protocol.records import crc_of


def log_file(log: PartitionLog, base_offset: int = 0) -> Path:
    return Path(log.directory) / f"{base_offset:020d}.log"


def file_names(log: PartitionLog) -> set[str]:
    return set(os.listdir(log.directory))


# --- appending ------------------------------------------------------------------------------------------


def test_append_stamps_offset_and_epoch_and_keeps_the_crc(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    assert append(log, data_batch(3), epoch=4) == 0
    assert append(log, data_batch(2), epoch=4) == 3
    headers = [header for header, batch in batches_of(log) if crc_of(batch) == header.crc]
    assert [(header.base_offset, header.partition_leader_epoch) for header in headers] == [(0, 4), (3, 4)]
    assert log.log_end_offset == 5


def test_append_notes_each_leader_epoch_once(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for epoch in (1, 1, 4, 4):
        append(log, epoch=epoch)
    assert log.leader_epochs.entries == [(1, 0), (4, 2)]
    assert log.end_offset_for_epoch(1) == (1, 2)


def test_an_epoch_begins_before_its_first_record(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, epoch=1)
    log.begin_leader_epoch(2)
    assert log.end_offset_for_epoch(1) == (1, 1)
    assert log.end_offset_for_epoch(2) == (2, 1)


def test_index_entries_follow_the_interval(tmp_path: Path) -> None:
    log = new_log(tmp_path, index_interval_bytes=100)
    size = len(data_batch())
    for index in range(6):
        append(log, timestamp=NOW_MS + index)
    segment = log.segments[0]
    per_entry = 100 // size + 1
    expected = [(n, n * size) for n in range(per_entry, 6, per_entry)]
    assert [tuple(segment.offset_index[i]) for i in range(len(segment.offset_index))] == expected
    times = [tuple(segment.time_index[i]) for i in range(len(segment.time_index))]
    assert times == [(NOW_MS + n, n) for n, _ in expected]


# --- rolling --------------------------------------------------------------------------------------------


def test_roll_by_size(tmp_path: Path) -> None:
    size = len(data_batch())
    log = new_log(tmp_path, segment_bytes=2 * size)
    for _ in range(5):
        append(log)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]
    assert base_offsets(log) == [0, 1, 2, 3, 4]


def test_roll_by_time_counts_from_the_first_batch(tmp_path: Path) -> None:
    log = new_log(tmp_path, segment_ms=1000)
    for offset_ms in (0, 500, 1000, 1001, 1500):
        append(log, timestamp=NOW_MS + offset_ms)
    assert [segment.base_offset for segment in log.segments] == [0, 3]


def test_roll_by_time_without_timestamps_uses_the_clock(tmp_path: Path) -> None:
    log = new_log(tmp_path, segment_ms=1000)
    append(log, timestamp=-1, now_ms=NOW_MS)
    created_ms = log.segments[-1].created_ms
    append(log, timestamp=-1, now_ms=created_ms + 1000)
    assert len(log.segments) == 1
    append(log, timestamp=-1, now_ms=created_ms + 1001)
    assert len(log.segments) == 2


def test_roll_when_an_index_is_full(tmp_path: Path) -> None:
    log = new_log(tmp_path, index_interval_bytes=0, segment_index_bytes=36)
    for index in range(12):
        append(log, timestamp=NOW_MS + index)
    assert len(log.segments) > 2
    assert all(len(segment.time_index) * 12 <= 36 and len(segment.offset_index) * 8 <= 36 for segment in log.segments)


def test_roll_before_a_relative_offset_overflows(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log)
    log.log_end_offset = 2**31
    append(log)
    assert [segment.base_offset for segment in log.segments] == [0, 2**31]


def test_a_changed_configuration_counts_for_the_segment_in_use(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log)
    log.config = new_log(tmp_path / "other", segment_bytes=len(data_batch())).config
    append(log)
    assert len(log.segments) == 2


def test_a_batch_larger_than_a_segment_gets_one_of_its_own(tmp_path: Path) -> None:
    log = new_log(tmp_path, segment_bytes=50)
    append(log)
    append(log)
    assert [segment.base_offset for segment in log.segments] == [0, 1]


def test_a_roll_leaves_everything_of_the_old_segment_on_disk(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = new_log(tmp_path, files, index_interval_bytes=50)
    for index in range(3):
        append(log, producer_id=7, sequence=index, timestamp=NOW_MS + index)
    log.roll()
    assert {f"{0:020d}.log", f"{0:020d}.index", f"{0:020d}.timeindex", f"{3:020d}.snapshot"} <= set(files.syncs)
    assert log.recovery_point == 3
    assert log.segments[0].time_index.last == (NOW_MS + 2, 2)


def test_a_roll_is_reported_and_not_awaited(tmp_path: Path) -> None:
    log, rolled = new_log(tmp_path), []
    log.events = LogEvents(on_roll=lambda which, segment: rolled.append((which, segment)))
    append(log)
    old = log.segments[0]
    log.roll()
    assert rolled == [(log, old)]
    assert log.recovery_point == 0
    log.finish_roll(old)
    assert log.recovery_point == 1


# --- reading --------------------------------------------------------------------------------------------


def filled(tmp_path: Path, **config: int) -> PartitionLog:
    """Forty batches of three records each, in several segments."""
    log = new_log(tmp_path, **{"segment_bytes": 1000, "index_interval_bytes": 150, **config})
    for _ in range(40):
        append(log, data_batch(3))
    return log


def test_every_offset_finds_the_batch_that_holds_it(tmp_path: Path) -> None:
    log = filled(tmp_path)
    for offset in range(log.log_end_offset):
        part = log.read(offset, 1, log.log_end_offset)
        header = BatchHeader.at(os.pread(part.file.fd, 61, part.position))
        assert header.base_offset == offset - offset % 3
        assert part.length == header.size_in_bytes, "one byte was allowed, so one whole batch"
        assert part.first_offset == offset


@pytest.mark.parametrize("max_bytes", [1, 150, 400, 999, 10_000])
def test_reading_on_and_on_sees_everything_once(tmp_path: Path, max_bytes: int) -> None:
    log = filled(tmp_path)
    assert base_offsets(log, max_bytes=max_bytes) == list(range(0, 120, 3))
    log = reopened(log)
    assert base_offsets(log, max_bytes=max_bytes) == list(range(0, 120, 3))


def test_slices_keep_to_the_limit_in_whole_batches(tmp_path: Path) -> None:
    log = filled(tmp_path)
    size = len(data_batch(3))
    for offset in range(0, 120, 3):
        part = log.read(offset, 3 * size + 10, log.log_end_offset)
        assert part.length <= 3 * size + 10
        assert part.length % size == 0
        assert part.length > 0


def test_without_room_for_a_batch_nothing_comes(tmp_path: Path) -> None:
    log = filled(tmp_path)
    assert log.read(0, 10, log.log_end_offset, at_least_one_batch=False).length == 0


@pytest.mark.parametrize("was_reopened", [False, True])
def test_reads_stop_at_the_upper_bound(tmp_path: Path, was_reopened: bool) -> None:
    log = filled(tmp_path, segment_bytes=1_000_000)
    if was_reopened:
        log = reopened(log)
    size = len(data_batch(3))
    for upper_bound in range(3, 121, 3):
        assert log.read(0, 1_000_000, upper_bound).length == upper_bound // 3 * size
    assert log.read(60, 1_000_000, 60).length == 0
    assert log.read(60, 1_000_000, 50).length == 0


def test_the_end_is_empty_and_beyond_is_out_of_range(tmp_path: Path) -> None:
    log = filled(tmp_path)
    assert log.read(120, 1000, 120).length == 0
    for offset in (121, -1):
        with pytest.raises(OffsetOutOfRangeError):
            log.read(offset, 1000, 120)


def test_a_slice_outlives_the_deletion_of_its_segment(tmp_path: Path) -> None:
    log = filled(tmp_path, file_delete_delay_ms=0)
    part = log.read(0, 200, log.log_end_offset)
    before = os.pread(part.file.fd, part.length, part.position)
    log.delete_segments(2, NOW_MS)
    assert log.delete_retired(NOW_MS) == 2
    assert not log_file(log).exists()
    assert os.pread(part.file.fd, part.length, part.position) == before


def test_a_descriptor_is_closed_with_its_last_holder(tmp_path: Path) -> None:
    log = filled(tmp_path)
    part = log.read(0, 200, log.log_end_offset)
    fd = part.file.fd
    log.release_idle()
    os.fstat(fd)
    del part
    with pytest.raises(OSError):
        os.fstat(fd)


# --- transactions ---------------------------------------------------------------------------------------


def test_aborted_transactions_are_indexed_and_reported(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, producer_id=7, is_transactional=True)
    append(log, producer_id=8, is_transactional=True)
    assert log.last_stable_offset == 0
    append(log, marker(7, commit=False))
    assert log.last_stable_offset == 1
    append(log, marker(8, commit=True))
    assert log.last_stable_offset == 4
    assert log.aborted_transactions(0, 4) == [(7, 0, 2, 1)]
    assert log.aborted_transactions(3, 4) == []
    log = reopened(log)
    assert log.aborted_transactions(0, 4) == [(7, 0, 2, 1)]


# --- truncating -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0, 3, 57, 60, 117])
def test_truncation_removes_everything_from_an_offset_on(tmp_path: Path, offset: int) -> None:
    log = filled(tmp_path)
    log.truncate_to(offset)
    assert log.log_end_offset == offset
    assert log.high_watermark == offset
    assert base_offsets(log) == list(range(0, offset, 3))
    assert append(log, data_batch(3), epoch=9) == offset
    assert base_offsets(log) == list(range(0, offset + 3, 3))
    assert base_offsets(reopened(log)) == list(range(0, offset + 3, 3))


def test_truncation_takes_back_producers_and_epochs(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for index, epoch in enumerate((1, 1, 2, 3)):
        append(log, producer_id=7, sequence=index, epoch=epoch)
    log.truncate_to(2)
    assert log.leader_epochs.entries == [(1, 0)]
    state = log.producers.get(7)
    assert state is not None
    assert state.next_sequence == 2


def test_a_flush_that_a_truncation_overtook_does_not_move_the_recovery_point(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for _ in range(4):
        append(log)

    class SlowFiles(FaultyFiles):
        def sync(self, fd: int) -> None:
            super().sync(fd)
            log.truncate_to(1)

    log.segments[0].files = SlowFiles()
    log.flush()
    assert log.recovery_point <= 1


def test_starting_over_at_an_offset(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.truncate_fully_and_start_at(500)
    assert (log.log_start_offset, log.log_end_offset) == (500, 500)
    assert append(log) == 500
    assert base_offsets(log) == [500]
    assert base_offsets(reopened(log)) == [500]


# --- deleting -------------------------------------------------------------------------------------------


def test_deleted_segments_are_renamed_then_unlinked(tmp_path: Path) -> None:
    log = filled(tmp_path, file_delete_delay_ms=1000)
    second = log.segments[1].base_offset
    log.delete_segments(1, NOW_MS)
    assert log.log_start_offset == second
    assert f"{0:020d}.log.deleted" in file_names(log)
    assert log.delete_retired(NOW_MS + 999) == 0
    assert log.delete_retired(NOW_MS + 1000) == 1
    assert not [name for name in file_names(log) if name.startswith(f"{0:020d}")]
    with pytest.raises(OffsetOutOfRangeError):
        log.read(0, 100, log.log_end_offset)


def test_a_segment_deleted_while_it_is_opened_is_out_of_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = filled(tmp_path, file_delete_delay_ms=0)
    first = log.segments[0]
    first.release()

    def delete_first(path: str) -> int:
        if log.segments[0] is first:
            log.delete_segments(1, NOW_MS)
            log.delete_retired(NOW_MS)
        return os.open(path, os.O_RDONLY)

    monkeypatch.setattr(first.files, "open_existing", delete_first)
    with pytest.raises(OffsetOutOfRangeError, match="offset 0 is not within"):
        log.read(0, 100, log.log_end_offset)


def test_log_start_never_passes_the_high_watermark(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.advance_log_start(7)
    assert log.log_start_offset == 7
    log.advance_log_start(5)
    assert log.log_start_offset == 7
    with pytest.raises(OffsetOutOfRangeError):
        log.advance_log_start(121)


# --- failing disks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [0, 1, 30, 70])
def test_a_full_disk_loses_nothing_and_is_survived(tmp_path: Path, room: int) -> None:
    files = FaultyFiles()
    log = new_log(tmp_path, files)
    append(log)
    size = log.size_in_bytes
    files.room = room
    with pytest.raises(StorageError, match="No space left"):
        append(log, data_batch())
    assert log_file(log).stat().st_size == size
    assert log.log_end_offset == 1
    files.room = None
    assert append(log) == 1
    assert base_offsets(reopened(log)) == [0, 1]


def test_a_write_in_parts_is_completed(tmp_path: Path) -> None:
    class ShortWrites(FaultyFiles):
        def write(self, fd: int, data: memoryview) -> int:  # type: ignore[override]
            return os.write(fd, memoryview(data)[:7])

    log = new_log(tmp_path, ShortWrites())
    append(log)
    append(log)
    assert base_offsets(log) == [0, 1]


def test_a_partial_write_that_stays_takes_the_partition_offline(tmp_path: Path) -> None:
    class Stubborn(FaultyFiles):
        def truncate(self, fd: int, size: int) -> None:
            raise OSError(5, "Input/output error")

    files = Stubborn()
    log = new_log(tmp_path, files)
    files.room = 10
    with pytest.raises(StorageError):
        append(log)
    assert log.offline_error is not None
    with pytest.raises(StorageError, match="offline"):
        append(log)


def test_no_room_for_a_new_segment_is_survived(tmp_path: Path) -> None:
    class NoNewFiles(FaultyFiles):
        is_full = False

        def open_append(self, path: str) -> int:
            if self.is_full:
                raise OSError(28, "No space left on device")
            return super().open_append(path)

    files = NoNewFiles()
    log = new_log(tmp_path, files, segment_bytes=50)
    append(log)
    files.is_full = True
    with pytest.raises(StorageError):
        append(log)
    files.is_full = False
    assert append(log) == 1
    assert base_offsets(log) == [0, 1]


def test_a_failed_sync_is_fatal(tmp_path: Path) -> None:
    files, told = FaultyFiles(), []
    log = new_log(tmp_path, files)
    log.events = LogEvents(on_fatal=told.append)
    append(log)
    files.is_sync_broken = True
    with pytest.raises(FatalDiskError):
        log.flush()
    assert len(told) == 1
    assert log.recovery_point == 0


def test_flush_messages_asks_for_a_flush(tmp_path: Path) -> None:
    log = new_log(tmp_path, flush_messages=3)
    for expected in (0, 0, 3, 3, 3, 6):
        append(log)
        assert log.recovery_point == expected


def test_a_closed_log_takes_no_batch(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log)
    log.close()
    with pytest.raises(StorageError, match="closed"):
        append(log)


def test_closing_twice_and_reopening_clean(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close()
    log.close()
    again = reopened(log, clean_run(log))
    assert base_offsets(again) == list(range(0, 120, 3))
    assert append(again, data_batch(3)) == 120


def test_preallocation_reserves_room_and_gives_it_back(tmp_path: Path) -> None:
    log = new_log(tmp_path, preallocate=True, segment_bytes=1 << 20)
    append(log)
    reserved = log_file(log).stat()
    assert reserved.st_size == log.size_in_bytes
    if reserved.st_blocks * 512 < 1 << 20:
        pytest.skip("this file system does not preallocate")
    log.roll()
    assert log_file(log).stat().st_blocks * 512 < 1 << 20
    append(log)
    log.close()
    assert log_file(log, 1).stat().st_blocks * 512 < 1 << 20
    assert base_offsets(reopened(log)) == [0, 1]
