"""When the manifest is written, and what waits for it."""

from __future__ import annotations

import errno
import logging
import os
import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.unit.log.batches import NOW_MS, TP, append, base_offsets

from moldau.core.ids import TopicPartition
from moldau.log.config import LogConfig
from moldau.log.directories.manifest import MANIFEST, Manifest, parse_manifest
from moldau.log.directories.manifest_keeper import MetadataMark
from moldau.log.errors import DamagedLogError, StorageError
from moldau.log.files import Files
from moldau.log.manager import LogManager

TOPIC_ID = uuid.UUID(int=5)
CONFIG = LogConfig(segment_bytes=200, retention_bytes=400, file_delete_delay_ms=0)


class StubbornFiles(Files):
    """Refuses to write the manifest, with a code of choice; and counts how often it was written."""

    def __init__(self) -> None:
        self.error: int | None = None
        self.written = 0

    def atomic_write(self, path: str, data: bytes, *, sync: bool = True) -> None:
        if path.endswith(MANIFEST):
            if self.error is not None:
                raise OSError(self.error, os.strerror(self.error))
            self.written += 1
        super().atomic_write(path, data, sync=sync)


def opened(folder: Path, files: Files | None = None, config: LogConfig = CONFIG, **options: Any) -> LogManager:
    logs = LogManager([str(folder)], files, None, lambda topic: config, **options)
    logs.open()
    return logs


def filled(logs: LogManager, count: int = 8, partition: TopicPartition = TP) -> Any:
    log = logs.create(partition, TOPIC_ID)
    for _ in range(count):
        append(log)
    return log


def manifest_in(folder: Path) -> Manifest:
    return parse_manifest((folder / MANIFEST).read_text())


def bases_of(folder: Path) -> list[int]:
    return [segment.base_offset for segment in manifest_in(folder).partitions[TP].segments]


def log_files(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in (folder / str(TP)).glob("*.log"))


def test_a_first_start_writes_the_manifest_of_what_it_finds(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    filled(logs)
    logs.close()
    (tmp_path / MANIFEST).unlink()
    logs = opened(tmp_path)
    assert bases_of(tmp_path) == log_files(tmp_path)
    logs.abandon()


def test_a_round_writes_only_when_something_has_changed(tmp_path: Path) -> None:
    files = StubbornFiles()
    logs = opened(tmp_path, files)
    log = filled(logs, 1)
    log.flush()
    logs.manifest_round(NOW_MS)
    before = files.written
    for _ in range(3):
        logs.manifest_round(NOW_MS)
    append(log)
    log.flush()
    logs.manifest_round(NOW_MS)
    assert files.written == before, "appends to the last segment are no change"
    filled(logs)
    logs.manifest_round(NOW_MS)
    assert files.written == before + 1
    logs.abandon()


def test_only_what_is_on_disk_is_listed(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    log = logs.create(TP, TOPIC_ID)
    log.events.on_roll = lambda which, segment: None
    filled(logs)
    logs.manifest_round(NOW_MS)
    assert manifest_in(tmp_path).partitions == {}
    log.flush(before=log.segments[2].base_offset)
    logs.manifest_round(NOW_MS)
    assert bases_of(tmp_path) == [segment.base_offset for segment in log.segments[:2]]
    logs.abandon()


def test_many_deletions_share_one_manifest_and_wait_for_it(tmp_path: Path) -> None:
    files = StubbornFiles()
    logs = opened(tmp_path, files)
    for partition in range(5):
        filled(logs, partition=TopicPartition("orders", partition))
    logs.manifest_round(NOW_MS)
    before = files.written
    listed = bases_of(tmp_path)
    files.error = errno.EIO
    logs.retention_round(NOW_MS)
    assert log_files(tmp_path)[: len(listed)] == listed, "nothing goes while the manifest asks for it"
    assert [each.leaving for each in logs] == [each.leaving for each in logs if each.leaving]
    files.error = None
    logs.retention_round(NOW_MS)
    assert files.written == before + 1
    assert log_files(tmp_path)[0] > listed[0]
    logs.abandon()


def test_a_full_disk_loses_its_manifest_rather_than_its_room(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = StubbornFiles()
    logs = opened(tmp_path, files)
    log = filled(logs)
    logs.manifest_round(NOW_MS)
    files.error = errno.ENOSPC
    append(log)
    log.roll(NOW_MS)
    append(log)
    logs.retention_round(NOW_MS)
    assert not (tmp_path / MANIFEST).exists()
    assert log_files(tmp_path)[0] > 0, "there is room again"
    assert [one for one in caplog.messages if "was removed until it can be written again" in one]
    files.error = None
    logs.manifest_round(NOW_MS)
    assert bases_of(tmp_path)[0] == log_files(tmp_path)[0]
    logs.abandon()


def test_a_start_on_a_full_disk_works_without_a_manifest(tmp_path: Path) -> None:
    files = StubbornFiles()
    files.error = errno.ENOSPC
    logs = opened(tmp_path, files)
    filled(logs)
    logs.close()
    logs = opened(tmp_path)
    found = logs.get(TP)
    assert found is not None
    assert found.offline_error is None
    logs.abandon()


def test_segments_are_not_replaced_while_the_manifest_cannot_be_written(tmp_path: Path) -> None:
    files = StubbornFiles()
    logs = opened(tmp_path, files)
    log = filled(logs)
    logs.manifest_round(NOW_MS)
    files.error = errno.EIO
    before = log_files(tmp_path)
    with pytest.raises(StorageError, match="no segment may be replaced"):
        log.truncate_to(2)
    assert log_files(tmp_path) == before
    assert log.log_end_offset == 8
    files.error = None
    log.truncate_to(2)
    logs.manifest_round(NOW_MS)
    logs.abandon()
    again = opened(tmp_path)
    assert base_offsets(again.get(TP)) == [0, 1]  # type: ignore[arg-type]
    again.abandon()


def test_a_partition_that_moved_to_another_directory_is_found_there(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    logs = LogManager([str(folder) for folder in folders], None, None, lambda topic: CONFIG)
    logs.open()
    filled(logs)
    logs.close()
    home = next(folder for folder in folders if (folder / str(TP)).exists())
    (other,) = (folder for folder in folders if folder != home)
    (home / str(TP)).rename(other / str(TP))
    logs = LogManager([str(folder) for folder in folders], None, None, lambda topic: CONFIG)
    logs.open()
    found = logs.get(TP)
    assert found is not None
    assert found.offline_error is None
    assert logs.missing() == {}
    logs.close()
    assert TP not in manifest_in(home).partitions
    assert TP in manifest_in(other).partitions


@pytest.mark.parametrize(("epoch", "is_noticed"), [(6, True), (7, True), (8, False)])
def test_what_another_broker_has_done_since_is_no_loss(tmp_path: Path, epoch: int, is_noticed: bool) -> None:
    logs = opened(tmp_path)
    logs.metadata_mark = lambda: MetadataMark(7, 40)
    filled(logs)
    logs.close()
    (tmp_path / str(TP) / f"{0:020d}.log").unlink()
    logs = LogManager([str(tmp_path)], None, None, lambda topic: CONFIG)
    logs.open(epoch)
    found = logs.get(TP)
    assert found is not None
    assert isinstance(found.offline_error, DamagedLogError) is is_noticed
    assert (found.offline_error is None) is not is_noticed
    logs.abandon()


def test_a_missing_folder_is_offline_and_asked_for_until_its_topic_goes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logs = opened(tmp_path)
    filled(logs)
    logs.close()
    (tmp_path / str(TP)).rename(tmp_path / "backup")
    for _ in range(2):
        logs = opened(tmp_path)
        assert logs.missing() == {TP: TOPIC_ID}
        logs.take_up_missing([TP])
        log = logs.get(TP)
        assert log is not None
        assert isinstance(log.offline_error, DamagedLogError)
        assert not (tmp_path / str(TP)).exists()
        with pytest.raises(DamagedLogError, match="the folder is missing"):
            append(log)
        logs.close()
    (tmp_path / "backup").rename(tmp_path / str(TP))
    logs = opened(tmp_path)
    assert base_offsets(logs.get(TP)) == list(range(8))  # type: ignore[arg-type]
    logs.close()
    (tmp_path / str(TP)).rename(tmp_path / "backup")
    logs = opened(tmp_path)
    logs.take_up_missing([TP])
    logs.delete(TP)
    logs.manifest_round(NOW_MS)
    assert manifest_in(tmp_path).partitions == {}
    logs.abandon()
    assert not [
        one for one in caplog.records if one.levelno >= logging.ERROR and "folder is missing" not in one.message
    ]


def test_a_crash_does_not_hide_that_flushed_records_are_gone(tmp_path: Path) -> None:
    """After a crash the log is recovered, and has to reach its recovery point."""
    logs = opened(tmp_path)
    log = filled(logs)
    log.flush()
    logs.manifest_round(NOW_MS)
    logs.checkpoint()
    logs.abandon()
    last = tmp_path / str(TP) / f"{log.segments[-1].base_offset:020d}.log"
    content = last.read_bytes()
    last.write_bytes(content[: len(content) - 10])
    logs = opened(tmp_path)
    found = logs.get(TP)
    assert found is not None
    assert "everything below offset 8 was on disk" in str(found.offline_error)
    assert last.read_bytes() == content[: len(content) - 10], "nothing was cut"
    logs.close()
    last.write_bytes(content)
    logs = opened(tmp_path)
    assert base_offsets(logs.get(TP)) == list(range(8))  # type: ignore[arg-type]
    logs.abandon()
