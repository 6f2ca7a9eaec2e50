"""Logs that could not be made or opened: what stands in for them keeps what is known, and makes way."""

from __future__ import annotations

import errno
import os
import uuid
from pathlib import Path

import pytest
from tests.unit.log.batches import TP, append
from tests.unit.log.test_manager import manager

from moldau.core.errors import StartupError
from moldau.core.ids import TopicPartition
from moldau.log.errors import StorageError
from moldau.log.files import Files
from moldau.log.manager import LogManager
from moldau.log.partition_log import PartitionLog

TOPIC_ID = uuid.UUID("00112233-4455-4677-8899-aabbccddeeff")


class Refusing(Files):
    """Lists and opens nothing of the partition while `code` is set, from the `nth` call on."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.nth = 0

    def _check(self, path: str) -> None:
        if self.code is not None and str(TP) in path:
            self.nth -= 1
            if self.nth < 0:
                raise OSError(self.code, os.strerror(self.code), path)

    def make_directory(self, path: str) -> None:
        self._check(path)
        super().make_directory(path)

    def names(self, path: str) -> list[str]:
        self._check(path)
        return super().names(path)

    def open_append(self, path: str) -> int:
        self._check(path)
        return super().open_append(path)

    def write_file(self, path: str, data: bytes, *, sync: bool = False) -> None:
        self._check(path)
        super().write_file(path, data, sync=sync)


def made_before(tmp_path: Path, *, ends_in_order: bool = True) -> None:
    """Five records, the first two deleted."""
    logs = manager(tmp_path)
    created = logs.create(TP, TOPIC_ID)
    for _ in range(5):
        append(created)
    created.high_watermark = 5
    created.advance_log_start(2)
    logs.close()
    if not ends_in_order:
        (tmp_path / "logs0/.kafka_cleanshutdown").unlink()


def reopen(logs: LogManager) -> PartitionLog:
    reopened = logs.reopen(TP, TOPIC_ID)
    logs.restore(reopened)
    return reopened


@pytest.mark.parametrize("ends_in_order", [True, False])
@pytest.mark.parametrize("starts", [1, 3])
def test_checkpoints_outlive_starts_that_never_open_the_log(tmp_path: Path, ends_in_order: bool, starts: int) -> None:
    made_before(tmp_path, ends_in_order=ends_in_order)
    files = Refusing()
    for _ in range(starts):
        files.code = errno.EMFILE
        logs = manager(tmp_path, files=files)
        stand_in = logs.get(TP)
        assert stand_in is not None
        assert stand_in.offline_error is not None
        logs.checkpoint()
        logs.close()
    files.code = None
    logs = manager(tmp_path, files=files)
    log = logs.get(TP)
    assert log is not None
    assert (log.log_start_offset, log.log_end_offset) == (2, 5)
    assert append(log) == 5
    logs.close()


def test_a_stand_in_refuses_everything_with_its_reason(tmp_path: Path) -> None:
    made_before(tmp_path)
    files = Refusing()
    files.code = errno.ENFILE
    logs = manager(tmp_path, files=files)
    stand_in = logs.get(TP)
    assert stand_in is not None
    with pytest.raises(StorageError, match="Too many open files in system"):
        append(stand_in)
    with pytest.raises(StorageError):
        stand_in.read(3, 1000, 5)
    logs.retention_round(0)
    logs.flush_round(0)
    logs.close()


@pytest.mark.parametrize("ends_in_order", [True, False])
def test_the_log_takes_its_place_back(tmp_path: Path, ends_in_order: bool) -> None:
    made_before(tmp_path, ends_in_order=ends_in_order)
    files = Refusing()
    files.code = errno.EMFILE
    logs = manager(tmp_path, files=files)
    with pytest.raises(StorageError, match="cannot open"):
        logs.reopen(TP, TOPIC_ID)
    assert logs.unopened == [TP]
    files.code = None
    # The checkpoints of this run are written before the log is opened: they must not change what it finds.
    logs.checkpoint()
    log = reopen(logs)
    assert logs.unopened == []
    assert logs.get(TP) is log
    assert (log.log_start_offset, log.log_end_offset) == (2, 5)
    assert append(log) == 5
    logs.close()


def test_an_error_that_will_not_pass_stops_the_start(tmp_path: Path) -> None:
    made_before(tmp_path)
    files = Refusing()
    files.code = errno.EIO
    with pytest.raises(StartupError, match="cannot open"):
        manager(tmp_path, files=files)


@pytest.mark.parametrize("nth", range(3))
@pytest.mark.parametrize("dirs", [1, 2])
def test_a_partition_half_made_is_finished(tmp_path: Path, nth: int, dirs: int) -> None:
    files = Refusing()
    logs = manager(tmp_path, files=files, dirs=dirs)
    logs.create(TopicPartition("other", 0))
    files.code, files.nth = errno.ENOSPC, nth
    with pytest.raises(StorageError, match="No space left on device"):
        logs.create(TP, TOPIC_ID)
    logs.stand_in(TP, "no room")
    assert logs.unopened == [TP]
    files.code = None
    log = reopen(logs)
    assert log.topic_id == TOPIC_ID
    assert append(log) == 0
    logs.close()
    assert len(list(tmp_path.glob(f"*/{TP}"))) == 1
    logs = manager(tmp_path, dirs=dirs)
    found = logs.get(TP)
    assert found is not None
    assert (found.topic_id, found.log_end_offset) == (TOPIC_ID, 1)
    logs.close()


@pytest.mark.parametrize("nth", range(3))
def test_a_partition_deleted_before_it_was_made_leaves_nothing(tmp_path: Path, nth: int) -> None:
    files = Refusing()
    logs = manager(tmp_path, files=files)
    files.code, files.nth = errno.ENOSPC, nth
    with pytest.raises(StorageError):
        logs.create(TP, TOPIC_ID)
    logs.stand_in(TP, "no room")
    logs.delete(TP)
    assert logs.unopened == []
    assert logs.get(TP) is None
    logs.delete_retired(1 << 60)
    assert not list(tmp_path.glob(f"logs0/{TP}*"))
    logs.close()


def test_a_folder_with_records_but_without_an_id_is_adopted_whole(tmp_path: Path) -> None:
    made_before(tmp_path)
    folder = tmp_path / "logs0" / str(TP)
    (folder / "partition.metadata").unlink()
    kept = folder.rename(tmp_path / "kept")
    logs = manager(tmp_path)
    kept.rename(folder)
    log = logs.create(TP, TOPIC_ID)
    assert (log.log_end_offset, log.topic_id) == (5, TOPIC_ID)
    assert append(log) == 5
    logs.close()


def test_a_folder_of_another_topic_is_set_aside(tmp_path: Path) -> None:
    made_before(tmp_path)
    folder = tmp_path / "logs0" / str(TP)
    kept = folder.rename(tmp_path / "kept")
    logs = manager(tmp_path)
    kept.rename(folder)
    log = logs.create(TP, uuid.uuid4())
    assert log.log_end_offset == 0
    assert len(list(tmp_path.glob("logs0/*-stray/*.log"))) == 1
    logs.close()


def test_a_full_directory_is_passed_over_where_there_is_another(tmp_path: Path) -> None:
    class OneFull(Files):
        def space(self, path: str) -> tuple[int, int]:
            return (1 << 30, 0) if path.endswith("logs0") else (1 << 30, 1 << 30)

    logs = manager(tmp_path, files=OneFull(), dirs=2)
    for number in range(3):
        assert "/logs1/" in logs.create(TopicPartition("t", number)).directory
    logs.close()


def test_those_that_fail_are_tried_last(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    for one in (first, second):
        logs.stand_in(one, "no room")
    logs.postpone(first, StorageError("still none"))
    assert logs.unopened == [second, first]
    found = logs.get(first)
    assert found is not None
    assert str(found.offline_error) == "still none"
    logs.close()
