"""A crash at every step of a cleaning round: the next start finds each key's newest value, whatever happened."""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.log.faulty_world import one_per_call

from moldau.core.ids import TopicPartition
from moldau.log.cleaning.cleaner import Cleaner
from moldau.log.cleaning.cleaner_worker import CleanerWorker
from moldau.log.cleaning.cleaning_job import CleanedGroup, CleaningJob, CleaningResult
from moldau.log.cleaning.segment_cleaner import clean
from moldau.log.config import LogConfig
from moldau.log.files import Files
from moldau.log.partition_log import PartitionLog
from moldau.log.recovery.loading import LastRun, create_log, open_log
from moldau.protocol.record_batch import TRANSACTIONAL_BIT, BatchHeader
from moldau.protocol.records import (
    ControlType,
    Record,
    decode_records,
    encode_batch,
    end_transaction_marker,
    split_batches,
)
from moldau.testing.failing_files import FailingFiles, KilledError
from moldau.testing.power_loss import ForgetfulFiles

PARTITION = TopicPartition("users", 0)
NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    min_cleanable_dirty_ratio=0.01,
    segment_bytes=400,
    index_interval_bytes=10,
    file_delete_delay_ms=0,
)
STEPS = ("rename", "unlink", "sync", "sync_directory", "write_file")

Contents = list[tuple[int, bytes | None, bytes | None]]


class Crash(BaseException):
    """Nobody catches this, as nobody survives a kill."""


def dying(files: Files, steps_left: int) -> Files:
    """Let `files` do so many steps that change the disk, then end the process it belongs to."""
    left = [steps_left]

    def counted(step: Callable[..., Any]) -> Callable[..., Any]:
        def take(*arguments: Any, **options: Any) -> Any:
            if left[0] == 0:
                raise Crash
            left[0] -= 1
            return step(*arguments, **options)

        return take

    for name in STEPS:
        setattr(files, name, counted(getattr(files, name)))
    return files


class InlineWorker(CleanerWorker):
    def __init__(self, files: Files) -> None:
        super().__init__()
        self._own_files = files

    def run(self, job: CleaningJob, on_group: Callable[[CleanedGroup], None]) -> CleaningResult:
        return clean(job, on_group, files=self._own_files)


def written(directory: Path) -> Contents:
    """Several segments that fall into more than one group, one of which is emptied at its end."""
    log = create_log(str(directory / "users-0"), PARTITION, CONFIG)
    for number in range(12):
        pairs = [(b"k%d" % (number % 3), b"%d" % number), (b"only-%d" % number, b"x" * 30)]
        batch = encode_batch([Record(i, 0, *pair) for i, pair in enumerate(pairs)], base_timestamp=NOW_MS)
        log.append(bytearray(batch), BatchHeader.at(batch), 0, NOW_MS)
        if number % 2:
            log.roll(NOW_MS)
    found = contents(log)
    log.close()
    return found


def opened(directory: Path, files: Files | None = None) -> PartitionLog:
    log = open_log(str(directory / "users-0"), PARTITION, CONFIG, LastRun(False, 0), files=files)
    assert log.offline_error is None
    log.high_watermark = log.log_end_offset
    return log


def contents(log: PartitionLog) -> Contents:
    found: Contents = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        part = log.read(offset, 1_000_000, log.log_end_offset)
        if part.length == 0:
            break
        for header, batch in split_batches(Files().pread(part.file.fileno(), part.length, part.position)):
            found += [(header.base_offset + r.offset_delta, r.key, r.value) for r in decode_records(batch, header)]
            offset = header.last_offset + 1
    return found


def cleaned(log: PartitionLog, files: Files) -> bool:
    cleaner = Cleaner(lambda: [log], files=files, make_worker=lambda: InlineWorker(files))
    did = cleaner.run_once(NOW_MS)
    log.delete_retired(NOW_MS + 60_000)
    return did


def newest(found: Contents) -> dict[bytes | None, tuple[int, bytes | None]]:
    return {key: (offset, value) for offset, key, value in found}


def check_after_crash(directory: Path, before: Contents) -> None:
    log = opened(directory)
    after = contents(log)
    assert newest(after) == newest(before)
    assert after == [record for record in before if record in after], "order, offsets and values are those written"
    assert log.log_end_offset == before[-1][0] + 1
    names = {path.suffix for path in Path(log.directory).iterdir()}
    assert not names & {".cleaned", ".swap", ".deleted"}
    cleaned(log, Files())
    closed_end = log.segments[-1].base_offset
    final = [record for record in contents(log) if record[0] < closed_end]
    assert [record[1] for record in final] == list(dict.fromkeys(record[1] for record in final)), "each key once"
    log.abandon()


def crash_at_every_step(tmp_path: Path, make_files: Callable[[Path], Files], crash: Callable[[Files], None]) -> int:
    for step in range(1_000):
        directory = tmp_path / str(step)
        directory.mkdir()
        before = written(directory)
        files = make_files(directory)
        log = opened(directory, files)
        dying(files, step)
        try:
            assert cleaned(log, files)
            return step
        except Crash:
            log.abandon()
            crash(files)
            check_after_crash(directory, before)
        log.abandon()
    raise AssertionError("cleaning never came to its end")


def test_a_kill_at_any_step_of_a_round_loses_nothing(tmp_path: Path) -> None:
    steps = crash_at_every_step(tmp_path, lambda directory: Files(), lambda files: None)
    assert steps > 40


def test_a_power_cut_at_any_step_of_a_round_loses_nothing(tmp_path: Path) -> None:
    def cut(files: Files) -> None:
        assert isinstance(files, ForgetfulFiles)
        for name in STEPS:
            delattr(files, name)
        files.lose_power()
        files.close()

    steps = crash_at_every_step(tmp_path, lambda directory: ForgetfulFiles(str(directory)), cut)
    assert steps > 40


def with_transactions(directory: Path) -> Contents:
    """Every third batch is of an aborted transaction that the cleaner may not reach yet."""
    log = create_log(str(directory / "users-0"), PARTITION, CONFIG)
    for number in range(12):
        pairs = [(b"k%d" % (number % 3), b"%d" % number), (b"only-%d" % number, b"x" * 30)]
        is_aborted = number % 3 == 1
        batch = encode_batch(
            [Record(i, 0, *pair) for i, pair in enumerate(pairs)],
            base_timestamp=NOW_MS,
            attributes=TRANSACTIONAL_BIT if is_aborted else 0,
            producer_id=5 if is_aborted else -1,
            producer_epoch=0 if is_aborted else -1,
        )
        log.append(bytearray(batch), BatchHeader.at(batch), 0, NOW_MS)
        if is_aborted:
            end = end_transaction_marker(
                ControlType.ABORT, timestamp=NOW_MS, producer_id=5, producer_epoch=0, coordinator_epoch=0
            )
            log.append(bytearray(end), BatchHeader.at(end), 0, NOW_MS)
        if number % 2:
            log.roll(NOW_MS)
    log.high_watermark = log.log_end_offset
    found = committed(log)
    log.close()
    return found


def committed(log: PartitionLog) -> Contents:
    """What a reader of committed data sees; the aborted transactions here are never open side by side."""
    aborted = log.aborted_transactions(log.log_start_offset, log.log_end_offset)
    ranges = [range(one.first_offset, one.last_offset + 1) for one in aborted]
    return [record for record in contents(log) if not any(record[0] in each for each in ranges)]


def test_a_round_with_one_failed_call_leaves_the_log_as_it_was_or_cleaned(
    scratch: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each call that cleans and swaps fails with each of its errors, or is the last before a kill.

    Then the log is read, cleaned again and restarted.
    """
    caplog.set_level(logging.CRITICAL, "moldau.log")  # records would keep the errors and with them open files
    template = scratch / "template"
    template.mkdir()
    before = with_transactions(template)

    def round_of(directory: Path, files: FailingFiles) -> None:
        shutil.copytree(template, directory)
        log = opened(directory, files)
        try:
            for _ in range(2):
                files.start()
                cleaned_once(log, files)
                files.stop()
                assert newest(values(committed(log))) == newest(values(before))
        except KilledError:
            files.stop()
        assert log.offline_error is None
        check_as_restarted(directory, log)

    def check_as_restarted(directory: Path, log: PartitionLog) -> None:
        log.abandon()
        for _ in range(2):
            again = opened(directory)
            assert newest(values(committed(again))) == newest(values(before))
            assert again.log_end_offset == log.log_end_offset
            cleaned(again, Files())
            again.abandon()

    counting = FailingFiles(is_counting=False)
    round_of(scratch / "counting", counting)
    faults = [*one_per_call(counting.possible_faults()), *counting.possible_deaths()]
    assert len(faults) > 200
    for fault in faults:
        try:
            round_of(scratch / str(fault), FailingFiles(fault, is_counting=False))
        except AssertionError as error:
            raise AssertionError(f"after {fault}, {counting.calls[fault.number - 1]}: {error}") from error
        shutil.rmtree(scratch / str(fault))


def cleaned_once(log: PartitionLog, files: Files) -> None:
    """A round that may fail, as the cleaner's thread lets it fail, and the deletions after it."""
    cleaner = Cleaner(lambda: [log], files=files, make_worker=lambda: InlineWorker(files))
    cleaner.run_once(NOW_MS)
    assert not cleaner.uncleanable
    with contextlib.suppress(OSError):
        log.delete_retired(NOW_MS + 60_000)


def values(found: Contents) -> Contents:
    """Without control records."""
    return [record for record in found if record[1] is not None and not record[1].startswith(b"\0")]


@pytest.mark.parametrize("suffix", [".cleaned", ".swap"])
def test_an_index_without_its_log_is_dropped_whatever_its_suffix(tmp_path: Path, suffix: str) -> None:
    before = written(tmp_path)
    (tmp_path / "users-0" / f"{0:020d}.index{suffix}").write_bytes(b"")
    check_after_crash(tmp_path, before)
