"""Reads that retention and compaction overtake: the segment they began with is gone before they reach its files."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.log.batches import NOW_MS, append, data_batch, marker, new_log

from moldau.log.errors import OffsetOutOfRangeError, StorageError
from moldau.log.files import Files
from moldau.log.partition_log import READ_ATTEMPTS, PartitionLog
from moldau.log.segments.segment import DELETED_SUFFIX, Segment


class OvertakenFiles(Files):
    """Calls something just before the next file is opened, as another thread might."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[str], None] | None = None

    def _let_others_run(self, path: str) -> None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile(path)

    def open_existing(self, path: str) -> int:
        self._let_others_run(path)
        return super().open_existing(path)

    def read_file(self, path: str) -> bytes:
        self._let_others_run(path)
        return super().read_file(path)


class RenamingFiles(Files):
    """Calls something just before the first file is renamed, as another thread might that waits for no lock."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], None] | None = None

    def rename(self, old: str, new: str) -> None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        super().rename(old, new)


def log_of_segments(tmp_path: Path, files: Files) -> PartitionLog:
    """Ten segments of one batch each; every second batch belongs to an aborted transaction."""
    log = new_log(tmp_path, files, file_delete_delay_ms=0)
    for index in range(10):
        append(log, data_batch(producer_id=7, is_transactional=True, sequence=index))
        append(log, marker(7, commit=False))
        log.roll(NOW_MS)
    log.flush()
    log.release_idle()
    return log


def retire(log: PartitionLog, count: int) -> None:
    log.delete_segments(count, NOW_MS)
    log.delete_retired(NOW_MS)


def replace_first_segment(log: PartitionLog) -> None:
    """What compaction does: the first segment's batches again, in a file of their own."""
    replaced = log.segments[0]
    cleaned = Segment.create(Files(), log.directory, replaced.base_offset, now_ms=NOW_MS, suffix=".cleaned")
    with open(replaced.path(".log"), "rb") as old:
        os.write(cleaned.fd, old.read())
    cleaned.size = replaced.size
    for aborted in (replaced.txn_index[at] for at in range(len(replaced.txn_index))):
        cleaned.txn_index.add(aborted)
    log.replace_segments(cleaned, [replaced], NOW_MS)
    log.delete_retired(NOW_MS)


def test_a_read_that_retention_overtakes_is_out_of_range(tmp_path: Path) -> None:
    files = OvertakenFiles()
    log = log_of_segments(tmp_path, files)
    files.meanwhile = lambda _: retire(log, 3)
    with pytest.raises(OffsetOutOfRangeError):
        log.read(2, 10_000, log.log_end_offset)
    assert log.offline_error is None


def test_a_read_that_compaction_overtakes_reads_the_compacted_segment(tmp_path: Path) -> None:
    files = OvertakenFiles()
    log = log_of_segments(tmp_path, files)
    expected = os.path.getsize(log.segments[0].path(".log"))
    files.meanwhile = lambda _: replace_first_segment(log)
    found = log.read(0, 10_000, log.log_end_offset)
    assert found.length == expected
    assert found.file is log.segments[0].file


def test_a_file_that_cannot_be_read_is_an_error_although_the_log_rolls(tmp_path: Path) -> None:
    files = OvertakenFiles()
    log = log_of_segments(tmp_path, files)

    def roll_and_fail(path: str) -> None:
        append(log)
        log.roll(NOW_MS)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    append(log)
    files.meanwhile = roll_and_fail
    with pytest.raises(StorageError, match="cannot read"):
        log.read(0, 10_000, log.log_end_offset)


def test_a_read_that_is_overtaken_for_ever_ends(tmp_path: Path) -> None:
    files = OvertakenFiles()
    log = log_of_segments(tmp_path, files)
    tries = []

    def replaced_again(path: str) -> None:
        tries.append(path)
        files.meanwhile = None
        replace_first_segment(log)
        log.segments[0].release()
        files.meanwhile = replaced_again
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    files.meanwhile = replaced_again
    # The compacted segments are made with the log's own files here, so that each is overtaken in turn.
    original = Segment.create
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Segment, "create", lambda _files, *rest, **named: original(files, *rest, **named))
        with pytest.raises(StorageError, match=f"removed {READ_ATTEMPTS} times"):
            log.read(0, 10_000, log.log_end_offset)
    assert len(tries) >= READ_ATTEMPTS


def test_aborted_transactions_are_those_of_the_segments_that_are_left(tmp_path: Path) -> None:
    files = OvertakenFiles()
    log = log_of_segments(tmp_path, files)
    assert len(log.aborted_transactions(0, log.log_end_offset)) == 10
    log.release_idle()
    files.meanwhile = lambda _: replace_first_segment(log)
    assert len(log.aborted_transactions(0, log.log_end_offset)) == 10, (
        "an index that was moved away is not an empty one"
    )
    log.release_idle()
    files.meanwhile = lambda _: retire(log, 3)
    assert len(log.aborted_transactions(0, log.log_end_offset)) == 7


@pytest.mark.parametrize("suffix", [DELETED_SUFFIX, ".swap"])
def test_a_segment_is_read_while_its_files_are_renamed(tmp_path: Path, suffix: str) -> None:
    files = RenamingFiles()
    log = log_of_segments(tmp_path, files)
    segment, seen = log.segments[0], []
    segment.release()

    def read() -> None:
        seen.append((segment.read(0, segment.size), len(segment.txn_index)))

    files.meanwhile = read
    segment.rename(suffix)
    segment.release()
    assert len(seen) == 1
    assert seen == [(segment.read(0, segment.size), len(segment.txn_index))]
    assert seen[0][1] == 1


def test_a_name_that_another_file_has_taken_is_not_mistaken_for_the_old_one(tmp_path: Path) -> None:
    files = OvertakenFiles()
    log = log_of_segments(tmp_path, files)
    segment = log.segments[0]
    content = segment.read(0, segment.size)
    segment.release()

    def rename_and_replace(path: str) -> None:
        segment.rename(DELETED_SUFFIX)
        Path(path).write_bytes(b"the compacted segment")

    files.meanwhile = rename_and_replace
    assert segment.read(0, segment.size) == content
