"""All partitions of a broker's directories: start, stop, creation, deletion, the rounds."""

from __future__ import annotations

import errno
import logging
import os
import uuid
from pathlib import Path

import pytest
from tests.unit.log.batches import NOW_MS, TP, FaultyFiles, append, base_offsets

from moldau.core.errors import StartupError
from moldau.core.ids import TopicPartition, random_uuid
from moldau.log.config import LogConfig
from moldau.log.directories.checkpoints import CLEAN_SHUTDOWN, RECOVERY_POINTS, load_checkpoint
from moldau.log.errors import StorageError
from moldau.log.files import Files
from moldau.log.manager import LogManager, aside_name
from moldau.log.open_files import OPEN_FILES

TOPIC_ID = uuid.UUID("00112233-4455-4677-8899-aabbccddeeff")


class StoppedClock:
    def __init__(self) -> None:
        self.ms = NOW_MS

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


def manager(
    tmp_path: Path, *, dirs: int = 1, clock: StoppedClock | None = None, files: Files | None = None, **config: object
) -> LogManager:
    made = LogManager(
        [str(tmp_path / f"logs{index}") for index in range(dirs)],
        files,
        clock or StoppedClock(),
        lambda topic: LogConfig(**config),  # type: ignore[arg-type]
    )
    made.open()
    return made


def test_partitions_survive_an_orderly_restart(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    created = logs.create(TP, TOPIC_ID)
    for _ in range(3):
        append(created)
    logs.close()
    logs = manager(tmp_path)
    log = logs.get(TP)
    assert log is not None
    assert log.topic_id == TOPIC_ID
    assert (log.log_end_offset, log.high_watermark, log.recovery_point) == (3, 3, 3)
    assert append(log) == 3
    logs.close()


def test_partitions_survive_a_crash(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    for partition in range(3):
        for _ in range(partition):
            append(logs.create(TopicPartition("orders", partition), TOPIC_ID))
    logs.create(TopicPartition("orders", 0))
    logs.abandon()
    logs = manager(tmp_path)
    assert {str(log.topic_partition): log.log_end_offset for log in logs} == {
        "orders-0": 0,
        "orders-1": 1,
        "orders-2": 2,
    }
    logs.close()


def test_recovery_can_use_several_threads(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    for partition in range(8):
        append(logs.create(TopicPartition("orders", partition)))
    logs.abandon()
    again = LogManager([directory.path for directory in logs.directories], recovery_threads=4)
    again.open()
    assert [log.log_end_offset for log in again] == [1] * 8
    again.abandon()


def test_the_marker_is_written_last_and_taken_at_start(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.close()
    assert (tmp_path / "logs0" / CLEAN_SHUTDOWN).exists()
    manager(tmp_path).abandon()
    assert not (tmp_path / "logs0" / CLEAN_SHUTDOWN).exists()


def test_a_second_broker_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    with pytest.raises(StartupError, match=f"{tmp_path}/logs0 is in use"):
        manager(tmp_path)
    logs.close()
    manager(tmp_path).close()


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "logs0").write_text("a file")
    with pytest.raises(StartupError, match="logs0"):
        manager(tmp_path)


def test_topic_names_with_dashes_and_digits_come_back(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.create(TopicPartition("a-1", 2))
    assert (tmp_path / "logs0" / "a-1-2").is_dir()
    logs.close()
    logs = manager(tmp_path)
    assert logs.get(TopicPartition("a-1", 2)) is not None
    assert logs.get(TopicPartition("a", 1)) is None
    logs.close()


def test_partitions_spread_over_directories(tmp_path: Path) -> None:
    logs = manager(tmp_path, dirs=2)
    for partition in range(4):
        append(logs.create(TopicPartition("orders", partition)))
    assert [len(Files().subdirectories(str(tmp_path / name))) for name in ("logs0", "logs1")] == [2, 2]
    logs.close()
    logs = manager(tmp_path, dirs=2)
    assert [log.log_end_offset for log in logs] == [1] * 4
    logs.close()


def test_a_partition_in_two_directories_is_refused(tmp_path: Path) -> None:
    for name in ("logs0", "logs1"):
        (tmp_path / name / "orders-0").mkdir(parents=True)
    with pytest.raises(StartupError, match="two log directories"):
        manager(tmp_path, dirs=2)


def test_what_is_not_a_partition_is_left_alone(tmp_path: Path) -> None:
    for name in ("__cluster_metadata-0", "lost+found", f"orders-0.{'a' * 32}-stray", f"orders-0.{'b' * 32}-future"):
        (tmp_path / "logs0" / name).mkdir(parents=True)
    logs = manager(tmp_path)
    assert len(logs) == 0
    logs.close()


def test_a_deleted_partition_is_renamed_and_removed_later(tmp_path: Path) -> None:
    clock = StoppedClock()
    logs = manager(tmp_path, clock=clock, file_delete_delay_ms=1000)
    log = logs.create(TP, TOPIC_ID)
    append(log)
    part = log.read(0, 100, 1)
    logs.delete(TP)
    assert logs.get(TP) is None
    (aside,) = (tmp_path / "logs0").glob("orders-0.*-delete")
    assert os.pread(part.file.fd, part.length, part.position), "a fetch under way goes on"
    with pytest.raises(StorageError):
        append(log)
    again = logs.create(TP, random_uuid())
    assert append(again) == 0
    clock.ms += 1000
    logs.delete_retired(clock.ms)
    assert not aside.exists()
    logs.close()


def test_a_deletion_cut_short_by_a_crash_is_finished(tmp_path: Path) -> None:
    logs = manager(tmp_path, file_delete_delay_ms=1000)
    append(logs.create(TP))
    logs.delete(TP)
    logs.abandon()
    logs = manager(tmp_path)
    logs.delete_retired(NOW_MS)
    assert not list((tmp_path / "logs0").glob("*-delete"))
    logs.close()


def test_a_stray_partition_is_moved_aside_for_good(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    append(logs.create(TP))
    logs.set_stray_aside(TP)
    logs.close()
    logs = manager(tmp_path)
    logs.delete_retired(NOW_MS + 10**9)
    (stray,) = (tmp_path / "logs0").glob("*-stray")
    assert (stray / f"{0:020d}.log").stat().st_size > 0
    assert logs.get(TP) is None
    logs.close()


def test_names_of_directories_set_aside_fit_the_disk() -> None:
    name = aside_name(TopicPartition("x" * 249, 1234), "-delete")
    assert len(name) == 255
    assert name.endswith("-delete")


def test_retention_deletes_old_segments_and_rolls_when_all_are_old(tmp_path: Path) -> None:
    clock = StoppedClock()
    logs = manager(tmp_path, clock=clock, segment_bytes=100, retention_ms=1000, file_delete_delay_ms=0)
    log = logs.create(TP)
    for index in range(4):
        append(log, timestamp=NOW_MS + index * 400)
    logs.retention_round(NOW_MS + 1500)
    assert base_offsets(log) == [2, 3]
    logs.retention_round(NOW_MS + 10_000)
    assert base_offsets(log) == []
    assert (log.log_start_offset, log.log_end_offset) == (4, 4)
    assert len([name for name in os.listdir(log.directory) if name.endswith(".log")]) == 1
    assert append(log) == 4
    logs.close()
    logs = manager(tmp_path)
    reopened = logs.get(TP)
    assert reopened is not None
    assert (reopened.log_start_offset, reopened.log_end_offset) == (4, 5)
    logs.close()


def test_deleted_records_stay_deleted_over_a_restart(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    log = logs.create(TP)
    for _ in range(5):
        append(log)
    log.advance_log_start(3)
    logs.close()
    logs = manager(tmp_path)
    again = logs.get(TP)
    assert again is not None
    assert again.log_start_offset == 3
    logs.close()


def test_flush_round_flushes_what_is_due(tmp_path: Path) -> None:
    clock = StoppedClock()
    logs = manager(tmp_path, clock=clock, flush_ms=1000)
    log = logs.create(TP)
    append(log)
    logs.flush_round(clock.ms)
    assert log.recovery_point == 0
    clock.ms += 1000
    logs.flush_round(clock.ms)
    assert log.recovery_point == 1
    logs.close()


def test_an_offline_partition_is_recovered_anew_after_an_orderly_end(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    log = logs.create(TP)
    for _ in range(3):
        append(log)
    logs.abandon()
    file = tmp_path / "logs0" / "orders-0" / f"{0:020d}.log"
    data = bytearray(file.read_bytes())
    data[30] ^= 1
    file.write_bytes(data)
    logs = manager(tmp_path)
    broken = logs.get(TP)
    assert broken is not None
    assert broken.offline_error is not None
    logs.close()
    assert TP not in load_checkpoint(Files(), str(tmp_path / "logs0" / RECOVERY_POINTS))
    logs = manager(tmp_path)
    still_broken = logs.get(TP)
    assert still_broken is not None
    assert still_broken.offline_error is not None
    logs.close()


def test_a_full_disk_does_not_stop_the_checkpoints(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = FaultyFiles()
    logs = manager(tmp_path, files=files)
    append(logs.create(TP))
    files.room = 0
    with caplog.at_level(logging.ERROR):
        logs.checkpoint()
    assert "will retry" in caplog.text
    files.room = None
    logs.checkpoint()
    assert TP in load_checkpoint(files, str(tmp_path / "logs0" / RECOVERY_POINTS))
    logs.close()


def test_a_new_configuration_reaches_every_partition_of_the_topic(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    one, two, other = (logs.create(TopicPartition(name, index)) for name, index in (("a", 0), ("a", 1), ("b", 0)))
    logs.update_config("a", LogConfig(retention_ms=5))
    assert [log.config.retention_ms for log in (one, two)] == [5, 5]
    assert other.config.retention_ms != 5
    logs.close()


def test_released_files_come_back_with_the_next_append_or_read(tmp_path: Path) -> None:
    logs = manager(tmp_path, segment_bytes=400, index_interval_bytes=0)
    partitions = [TopicPartition("t", number) for number in range(10)]
    before = len(OPEN_FILES)
    for turn in range(20):
        for partition in partitions:
            assert append(logs.create(partition)) == turn
        logs.release_files(before + turn % 5)
        assert len(OPEN_FILES) <= before + turn % 5
    for partition in partitions:
        log = logs.create(partition)
        assert base_offsets(log) == list(range(20))
        assert len(log.segments) > 2
    logs.close()
    logs = manager(tmp_path)
    assert [base_offsets(log) for log in logs] == [list(range(20))] * 10
    logs.close()


class NoDescriptors(Files):
    """Opens nothing of one partition while `word` is set."""

    word = ""

    def open_existing(self, path: str) -> int:
        if self.word and self.word in path:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
        return super().open_existing(path)


def test_a_log_that_cannot_be_closed_is_recovered_and_the_others_are_not(tmp_path: Path) -> None:
    files = NoDescriptors()
    logs = manager(tmp_path, files=files)
    one, other = TopicPartition("one", 0), TopicPartition("other", 0)
    for partition in (one, other):
        append(logs.create(partition))
    logs.release_files(0)
    files.word = "/one-0"
    logs.close()
    points = load_checkpoint(Files(), str(tmp_path / "logs0" / RECOVERY_POINTS))
    assert points == {other: 1}
    assert (tmp_path / "logs0" / CLEAN_SHUTDOWN).exists()
    logs = manager(tmp_path)
    for partition in (one, other):
        log = logs.get(partition)
        assert log is not None
        assert append(log) == 1
    logs.close()


class NoCheckpoints(Files):
    is_full = False

    def atomic_write(self, path: str, data: bytes, *, sync: bool = True) -> None:
        if self.is_full and path.endswith("checkpoint") and not Path(path).parent.name.endswith("-0"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        super().atomic_write(path, data, sync=sync)


def test_without_checkpoints_there_is_no_clean_end(tmp_path: Path) -> None:
    files = NoCheckpoints()
    logs = manager(tmp_path, files=files)
    append(logs.create(TP))
    logs.checkpoint()
    append(logs.create(TP))
    files.is_full = True
    logs.close()
    assert not (tmp_path / "logs0" / CLEAN_SHUTDOWN).exists()
    logs = manager(tmp_path)
    log = logs.get(TP)
    assert log is not None
    assert log.log_end_offset == 2
    logs.close()
