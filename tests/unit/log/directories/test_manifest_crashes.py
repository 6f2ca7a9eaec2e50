"""A crash at every step of a life with rolls, retention, compaction and restarts: none looks like lost records."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.log.batches import NOW_MS, append, base_offsets, marker
from tests.unit.log.cleaning.test_cleaner_crashes import Crash, InlineWorker

from moldau.core.ids import TopicPartition
from moldau.log.cleaning.cleaner import Cleaner
from moldau.log.config import LogConfig
from moldau.log.directories.manifest import MANIFEST
from moldau.log.files import Files
from moldau.log.manager import LogManager
from moldau.testing import ManualClock
from moldau.testing.power_loss import ForgetfulFiles

STEPS = ("rename", "unlink", "sync", "sync_directory", "write", "open_append", "truncate", "remove_directory")
ORDERS, USERS, DELETED = TopicPartition("orders", 0), TopicPartition("users", 0), TopicPartition("deleted", 0)
IDS = {ORDERS: uuid.UUID(int=1), USERS: uuid.UUID(int=2), DELETED: uuid.UUID(int=3)}
CONFIGS = {
    "orders": LogConfig(segment_bytes=250, retention_bytes=500, index_interval_bytes=50, file_delete_delay_ms=0),
    "users": LogConfig(
        cleanup_policy=frozenset({"compact"}),
        min_cleanable_dirty_ratio=0.01,
        segment_bytes=250,
        index_interval_bytes=50,
        file_delete_delay_ms=0,
    ),
    "deleted": LogConfig(segment_bytes=100, file_delete_delay_ms=0),
}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a place: thousands of small files come and go."""
    shared_memory = Path("/dev/shm")
    if not os.access(shared_memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=shared_memory, prefix="moldau-test-") as name:
        yield Path(name)


class QuickFiles(Files):
    """Nobody pulls a real plug here, so nothing waits for a real disk."""

    def sync(self, fd: int) -> None:
        pass

    def sync_directory(self, path: str) -> None:
        pass


class QuickForgetfulFiles(ForgetfulFiles, QuickFiles):
    pass


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


def opened(directory: Path, files: Files | None = None, started: list[LogManager] | None = None) -> LogManager:
    logs = LogManager([str(directory)], files, ManualClock(NOW_MS), CONFIGS.__getitem__)
    if started is not None:
        started.append(logs)
    logs.open()
    return logs


def log_of(logs: LogManager, partition: TopicPartition) -> Any:
    log = logs.create(partition, IDS[partition])
    log.high_watermark = log.log_end_offset
    return log


def grow(logs: LogManager, count: int = 4) -> None:
    """Batches in both topics, with an aborted transaction among them."""
    for partition in (ORDERS, USERS):
        log = log_of(logs, partition)
        known = log.producers.get(7)
        sequence = 0 if known is None else known.next_sequence
        append(log, producer_id=7, sequence=sequence, is_transactional=True)
        append(log, marker(7, commit=False))
        for _ in range(count):
            append(log)


def life(directory: Path, files: Files, started: list[LogManager]) -> None:
    """All that adds, replaces and removes files, in runs with an orderly end and in one without."""
    logs = opened(directory, files, started)
    for _ in range(3):
        append(log_of(logs, DELETED))
    log_of(logs, DELETED).flush()
    grow(logs)
    logs.manifest_round(NOW_MS)
    logs.retention_round(NOW_MS)
    cleaner = Cleaner(lambda: logs, files=files, make_worker=lambda: InlineWorker(files))
    assert cleaner.run_once(NOW_MS)
    logs.delete(DELETED)
    append(logs.create(DELETED, uuid.uuid4()))
    logs.manifest_round(NOW_MS)
    logs.delete_retired(NOW_MS)
    logs.checkpoint()
    logs.close()

    logs = opened(directory, files, started)
    grow(logs, 2)
    log_of(logs, ORDERS).advance_log_start(log_of(logs, ORDERS).log_end_offset - 1)
    logs.checkpoint()
    logs.retention_round(NOW_MS)
    cleaner = Cleaner(lambda: logs, files=files, make_worker=lambda: InlineWorker(files))
    assert cleaner.run_once(NOW_MS)
    logs.manifest_round(NOW_MS)
    logs.abandon()

    logs = opened(directory, files, started)
    grow(logs, 1)
    logs.close()


def check_after_crash(directory: Path) -> None:
    """The next start accuses nobody, and neither does the one after it."""
    for is_orderly in (False, True):
        logs = opened(directory, QuickFiles())
        assert [each.offline_error for each in logs if each.offline_error is not None] == []
        assert logs.missing().keys() <= {DELETED}, "which the metadata says is deleted"
        logs.take_up_missing([])
        for each in logs:
            assert base_offsets(each) == sorted(base_offsets(each))
        logs.manifest_round(NOW_MS)
        logs.close() if is_orderly else logs.abandon()
    logs = opened(directory, QuickFiles())
    assert all(each.offline_error is None for each in logs)
    logs.abandon()


def crash_at_every_step(
    folder: Path, make_files: Callable[[Path], Files], crash: Callable[[Files], None], stride: int = 1
) -> int:
    for step in range(0, 5_000, stride):
        directory = folder / str(step)
        directory.mkdir()
        files = dying(make_files(directory), step)
        started: list[LogManager] = []
        try:
            life(directory, files, started)
            return step
        except Crash:
            for logs in started:
                logs.abandon()
            for name in STEPS:
                delattr(files, name)
            crash(files)
            check_after_crash(directory)
            shutil.rmtree(directory)
    raise AssertionError("life never came to its end")


def test_a_kill_at_any_step_is_no_loss(folder: Path) -> None:
    assert crash_at_every_step(folder, lambda directory: QuickFiles(), lambda files: None) > 150


def test_a_power_cut_at_any_step_is_no_loss(folder: Path) -> None:
    def cut(files: Files) -> None:
        assert isinstance(files, ForgetfulFiles)
        files.lose_power()
        files.close()

    assert crash_at_every_step(folder, lambda directory: QuickForgetfulFiles(str(directory)), cut) > 150


def test_the_same_life_without_its_manifest_rules_would_raise_false_alarms(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above can fail: files that go before the manifest does are noticed."""
    monkeypatch.setattr("moldau.log.directories.manifest_keeper.ManifestKeeper.save_or_withdraw", lambda *_: True)
    with pytest.raises(AssertionError, match="is offline"):
        crash_at_every_step(folder, lambda directory: QuickFiles(), lambda files: None)


def test_the_manifest_of_a_whole_life_lists_what_is_there(folder: Path) -> None:
    life(folder, Files(), [])
    lines = (folder / MANIFEST).read_text().splitlines()
    assert sorted(line.split(" ")[0] for line in lines[2:-1]) == ["deleted", "orders", "users"]
    for line in lines[2:-1]:
        topic, partition, *_ = line.split(" ")
        listed = {int(word.split(":")[0]) for word in line.split(" ")[4:-1]}
        assert listed == {int(path.stem) for path in (folder / f"{topic}-{partition}").glob("*.log")}
