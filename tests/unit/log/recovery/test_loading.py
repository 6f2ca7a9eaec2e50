"""Opening a directory: after a clean end, after a crash, with damage, with files missing."""

from __future__ import annotations

import logging
import os
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from tests.unit.log.batches import (
    NOW_MS,
    TP,
    append,
    base_offsets,
    batches_of,
    clean_run,
    data_batch,
    marker,
    new_log,
    reopened,
)

from moldau.log.config import LogConfig
from moldau.log.errors import StorageError
from moldau.log.partition_log import PartitionLog
from moldau.log.producer_state import DuplicateBatch
from moldau.log.recovery.loading import LastRun, open_log
from moldau.protocol.record_batch import BatchHeader

SIZE = len(data_batch())


def filled(tmp_path: Path, count: int = 20, **config: int) -> PartitionLog:
    """Batches of one record each, five to a segment, from one idempotent producer."""
    log = new_log(tmp_path, **{"segment_bytes": 5 * SIZE, "index_interval_bytes": SIZE, **config})
    for index in range(count):
        append(log, producer_id=7, sequence=index, timestamp=NOW_MS + index)
    return log


def path(log: PartitionLog, base_offset: int, extension: str = ".log") -> Path:
    return Path(log.directory) / f"{base_offset:020d}{extension}"


def damage(file: Path, position: int) -> None:
    data = bytearray(file.read_bytes())
    data[position] ^= 0xFF
    file.write_bytes(data)


def index_bytes(log: PartitionLog) -> list[tuple[bytes, bytes, bytes]]:
    return [
        (bytes(s.offset_index.entries), bytes(s.time_index.entries), bytes(s.txn_index.entries)) for s in log.segments
    ]


# --- clean ends -----------------------------------------------------------------------------------------


def test_a_clean_start_reads_no_file(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close()
    again = reopened(log, clean_run(log))
    assert again.log_end_offset == 20
    assert open_files(tmp_path) == set()
    assert base_offsets(again) == list(range(20))


def open_files(folder: Path) -> set[str]:
    """What this process has open in a folder; other tests' clients open and close sockets all the time."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            found.add(os.readlink(f"/proc/self/fd/{number}"))
    return {name for name in found if name.startswith(str(folder))}


def test_a_clean_start_knows_its_producers(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close()
    again = reopened(log, clean_run(log))
    header = tuple(BatchHeader.at(data_batch(producer_id=7, sequence=19)))
    assert again.producers.check(header) == DuplicateBatch(19, pytest.approx(NOW_MS, abs=10))


def test_files_on_disk_are_exact_after_a_clean_end(tmp_path: Path) -> None:
    log = filled(tmp_path)
    expected = index_bytes(log)
    log.close()
    names = set(os.listdir(log.directory))
    for base, (offsets, _, _) in zip((0, 5, 10, 15), expected, strict=True):
        assert path(log, base, ".index").read_bytes() == offsets
        assert path(log, base, ".timeindex").read_bytes()[-12:-4] == (NOW_MS + base + 4).to_bytes(8, "big")
    assert f"{20:020d}.snapshot" in names
    assert "leader-epoch-checkpoint" in names


@pytest.mark.parametrize("is_clean", [True, False])
def test_missing_indexes_are_rebuilt(tmp_path: Path, is_clean: bool) -> None:
    log = filled(tmp_path)
    append(log, producer_id=7, sequence=20, is_transactional=True)
    append(log, marker(7, commit=False))
    log.close()
    expected = index_bytes(log)
    for file in Path(log.directory).glob("*index"):
        file.unlink()
    again = reopened(log, clean_run(log) if is_clean else LastRun(False, 22))
    again.close()
    assert index_bytes(again) == expected
    assert again.aborted_transactions(0, 22) == [(7, 20, 21, 22)]


@pytest.mark.parametrize("extension", [".index", ".timeindex"])
def test_damaged_indexes_are_rebuilt_when_needed(
    tmp_path: Path, extension: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = filled(tmp_path)
    log.close()
    for base in (5, 15):
        path(log, base, extension).write_bytes(b"\1\2\3")
    again = reopened(log, clean_run(log))
    assert base_offsets(again) == list(range(20))
    assert again.offset_for_timestamp(NOW_MS + 7) == (NOW_MS + 7, 7, 0)
    assert append(again, producer_id=7, sequence=20) == 20
    assert "rebuilt" in caplog.text
    again.close()
    assert path(log, 5, extension).stat().st_size != 3


def test_a_damaged_transaction_index_is_rebuilt(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, producer_id=7, is_transactional=True)
    append(log, marker(7, commit=False))
    log.close()
    path(log, 0, ".txnindex").write_bytes(b"123")
    assert reopened(log, clean_run(log)).aborted_transactions(0, 2) == [(7, 0, 1, 2)]


def test_missing_snapshots_are_rebuilt_by_replay(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close()
    for file in Path(log.directory).glob("*.snapshot"):
        file.unlink()
    again = reopened(log, clean_run(log))
    header = tuple(BatchHeader.at(data_batch(producer_id=7, sequence=16)))
    assert again.producers.check(header) == DuplicateBatch(16, NOW_MS + 16)


def test_a_damaged_snapshot_falls_back_to_an_older_one(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close()
    damage(path(log, 20, ".snapshot"), 20)
    again = reopened(log, clean_run(log))
    state = again.producers.get(7)
    assert state is not None
    assert state.next_sequence == 20
    assert not path(log, 20, ".snapshot").exists()


def test_snapshots_without_a_segment_are_removed(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close()
    for offset in (3, 21, 22):
        path(log, offset, ".snapshot").write_bytes(b"")
    reopened(log, clean_run(log))
    left = sorted(int(file.name[:20]) for file in Path(log.directory).glob("*.snapshot"))
    assert left == [5, 10, 15, 22], "one per segment, and the newest above the last"


def test_a_file_changed_while_stopped_is_noticed_before_appending(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close()
    with path(log, 15).open("ab") as file:
        file.write(b"abc")
    again = reopened(log, clean_run(log))
    with pytest.raises(StorageError, match="changed while the broker was stopped"):
        append(again)
    healed = reopened(again, LastRun(True, None))
    assert append(healed, producer_id=7, sequence=20) == 20


def test_a_directory_without_segments_starts_at_the_log_start(tmp_path: Path) -> None:
    directory = tmp_path / str(TP)
    directory.mkdir()
    log = open_log(str(directory), TP, LogConfig(), LastRun(True, 7, 7))
    assert (log.log_start_offset, log.log_end_offset) == (7, 7)
    assert append(log) == 7


# --- crashes --------------------------------------------------------------------------------------------


def test_after_a_crash_everything_is_rebuilt(tmp_path: Path) -> None:
    log = filled(tmp_path)
    append(log, producer_id=7, sequence=20, is_transactional=True, epoch=3)
    append(log, marker(7, commit=False), epoch=3)
    expected = index_bytes(log)
    again = reopened(log, LastRun(False, log.recovery_point))
    assert again.log_end_offset == 22
    assert index_bytes(again) == expected
    assert again.leader_epochs.entries == [(0, 0), (3, 20)]
    state = again.producers.get(7)
    assert state is not None
    assert state.next_sequence == 21
    assert append(again, producer_id=7, sequence=21, epoch=4) == 22


def test_only_segments_beyond_the_recovery_point_are_scanned(tmp_path: Path) -> None:
    log = filled(tmp_path)
    damage(path(log, 5), 70)
    again = reopened(log, LastRun(False, 15))
    assert again.offline_error is None
    assert again.log_end_offset == 20


@pytest.mark.parametrize("cut", [1, 12, 60, SIZE - 1])
def test_a_torn_tail_is_cut_with_a_word(tmp_path: Path, cut: int, caplog: pytest.LogCaptureFixture) -> None:
    log = filled(tmp_path)
    os.truncate(path(log, 15), 4 * SIZE + cut)
    with caplog.at_level(logging.WARNING):
        again = reopened(log)
    assert again.log_end_offset == 19
    assert path(log, 15).stat().st_size == 4 * SIZE
    for fact in (str(path(log, 15)), f"position {4 * SIZE}", f"cutting off {cut} bytes"):
        assert fact in caplog.text
    assert append(again, producer_id=7, sequence=19) == 19


@pytest.mark.parametrize("tail", [bytes(5000), b"\x02" * 5000, bytes(range(256)) * 20, b"\xff" * 300])
def test_rubbish_at_the_end_is_cut(tmp_path: Path, tail: bytes) -> None:
    log = filled(tmp_path)
    with path(log, 15).open("ab") as file:
        file.write(tail)
    again = reopened(log)
    assert again.log_end_offset == 20
    assert path(log, 15).stat().st_size == 5 * SIZE
    assert again.offline_error is None


def test_a_last_batch_with_a_wrong_checksum_is_cut(tmp_path: Path) -> None:
    log = filled(tmp_path)
    damage(path(log, 15), 5 * SIZE - 1)
    assert reopened(log).log_end_offset == 19


@pytest.mark.parametrize("byte", [0, 9, 16, 18, 40, SIZE - 1])
@pytest.mark.parametrize("base", [5, 15])
def test_damage_with_valid_batches_behind_it_takes_the_partition_offline(tmp_path: Path, base: int, byte: int) -> None:
    log = filled(tmp_path)
    damage(path(log, base), 2 * SIZE + byte)
    sizes = {file.name: file.stat().st_size for file in Path(log.directory).glob("*.log")}
    again = reopened(log)
    assert again.offline_error is not None
    assert f"{path(log, base)} at position {2 * SIZE}" in str(again.offline_error)
    assert "moldau.recovery.truncate" in str(again.offline_error)
    assert {file.name: file.stat().st_size for file in Path(log.directory).glob("*.log")} == sizes
    for use in (lambda: append(again), lambda: again.read(0, 100, 20), lambda: again.offset_for_timestamp(0)):
        with pytest.raises(StorageError, match="offline"):
            use()


def test_with_consent_the_log_is_cut_at_the_damage(tmp_path: Path) -> None:
    log = filled(tmp_path)
    damage(path(log, 5), 2 * SIZE + 40)
    again = reopened(log, allow_cut=True)
    assert again.offline_error is None
    assert again.log_end_offset == 7
    assert base_offsets(again) == list(range(7))
    assert not path(log, 10).exists()
    state = again.producers.get(7)
    assert state is not None
    assert state.next_sequence == 7
    assert append(again, producer_id=7, sequence=7) == 7
    assert base_offsets(reopened(again)) == list(range(8))


def test_losing_what_was_synced_is_an_error_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = filled(tmp_path)
    os.truncate(path(log, 15), 2 * SIZE)
    assert reopened(log, LastRun(False, 20)).log_end_offset == 17
    assert "everything below 20 was on disk" in caplog.text


def test_an_empty_segment_behind_a_torn_one_goes(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.roll()
    os.truncate(path(log, 15), 4 * SIZE + 5)
    again = reopened(log)
    assert again.log_end_offset == 19
    assert [segment.base_offset for segment in again.segments] == [0, 5, 10, 15]


def test_old_message_formats_are_refused_and_left_alone(tmp_path: Path) -> None:
    directory = tmp_path / str(TP)
    directory.mkdir()
    body = bytes((1, 0)) + (NOW_MS).to_bytes(8, "big") + b"\xff\xff\xff\xff" + (3).to_bytes(4, "big") + b"abc"
    message = zlib.crc32(body).to_bytes(4, "big") + body
    entry = (0).to_bytes(8, "big") + len(message).to_bytes(4, "big") + message
    data = entry * 5
    (directory / f"{0:020d}.log").write_bytes(data)
    log = open_log(str(directory), TP, LogConfig())
    assert "magic 1" in str(log.offline_error)
    assert (directory / f"{0:020d}.log").read_bytes() == data


def test_a_log_that_ends_before_its_start_begins_anew(tmp_path: Path) -> None:
    log = filled(tmp_path)
    again = reopened(log, LastRun(False, 0, 100, 100))
    assert (again.log_start_offset, again.log_end_offset, again.high_watermark) == (100, 100, 100)
    assert append(again) == 100


@pytest.mark.parametrize(("saved", "expected"), [(None, 3), (1, 3), (10, 10), (99, 20)])
def test_the_high_watermark_stays_within_the_log(tmp_path: Path, saved: int | None, expected: int) -> None:
    log = filled(tmp_path)
    assert reopened(log, LastRun(False, 0, 3, saved)).high_watermark == expected


def test_epochs_beyond_the_end_are_cut(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close()
    (Path(log.directory) / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n9 500\n")
    assert reopened(log, LastRun(False, 15)).leader_epochs.entries == [(0, 0)]


def test_leftovers_of_deletions_and_cleanings_go(tmp_path: Path) -> None:
    log = filled(tmp_path)
    for name in (
        f"{0:020d}.log.deleted",
        f"{5:020d}.log.cleaned",
        f"{5:020d}.index.cleaned",
        "x.tmp",
        f"{77:020d}.index",
    ):
        (Path(log.directory) / name).write_bytes(b"x")
    again = reopened(log)
    assert base_offsets(again) == list(range(20))
    assert not [name for name in os.listdir(log.directory) if name.endswith((".deleted", ".cleaned", ".tmp"))]
    assert not path(log, 77, ".index").exists()


# --- interrupted swaps ----------------------------------------------------------------------------------


def swap_file(log: PartitionLog, suffix: str) -> None:
    """Cleaner output that merges the first two segments and keeps every third batch."""
    kept = [batch for header, batch in batches_of(log) if header.base_offset < 10 and header.base_offset % 3 == 0]
    (Path(log.directory) / f"{0:020d}.log{suffix}").write_bytes(b"".join(kept))
    (Path(log.directory) / f"{0:020d}.index{suffix}").write_bytes(b"")


AFTER_SWAP = [0, 3, 6, 9, *range(10, 20)]


def test_a_complete_swap_takes_the_place_of_the_originals(tmp_path: Path) -> None:
    log = filled(tmp_path)
    swap_file(log, ".swap")
    again = reopened(log)
    assert base_offsets(again) == AFTER_SWAP
    assert [segment.base_offset for segment in again.segments] == [0, 10, 15]


def test_a_swap_with_originals_half_gone_is_completed(tmp_path: Path) -> None:
    log = filled(tmp_path)
    swap_file(log, ".swap")
    for file in Path(log.directory).glob(f"{0:020d}.*"):
        if not file.name.endswith(".swap"):
            file.rename(f"{file}.deleted")
    assert base_offsets(reopened(log)) == AFTER_SWAP


def test_a_swap_that_had_not_begun_is_dropped(tmp_path: Path) -> None:
    log = filled(tmp_path)
    swap_file(log, ".swap")
    (Path(log.directory) / f"{0:020d}.timeindex.cleaned").write_bytes(b"")
    assert base_offsets(reopened(log)) == list(range(20))
    assert not [name for name in os.listdir(log.directory) if name.endswith((".swap", ".cleaned"))]


def test_a_gap_left_by_compaction_is_read_over(tmp_path: Path) -> None:
    log = filled(tmp_path)
    swap_file(log, ".swap")
    again = reopened(log)
    header = next(batches_of(again))[0]
    assert header.base_offset == 0
    part = again.read(1, 10_000, 20)
    assert BatchHeader.at(os.pread(part.file.fd, 61, part.position)).base_offset == 3
