"""Disks that are full, read-only or taken, and clocks that jump: one clear answer, and nothing acknowledged is lost."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.stranger import Stranger, batch_of

from moldau.core.errors import ErrorCode, MoldauError
from moldau.log.files import Files
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message
from moldau.testing import Broker, ManualClock

DAY_MS = 86_400_000


class FullDisk(Files):
    """Has room for `room_bytes` more; like a real disk it takes what fits of a write before it refuses."""

    def __init__(self) -> None:
        self.room_bytes: int | None = None

    def write(self, fd: int, data: Any) -> int:
        if self.room_bytes is None:
            return os.write(fd, data)
        if self.room_bytes <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = os.write(fd, memoryview(data)[: self.room_bytes])
        self.room_bytes -= written
        return written


@pytest.mark.parametrize("room_bytes", [0, 30, 100, 5000])
def test_full_disk_refuses_new_records_and_keeps_the_old(tmp_path: Path, room_bytes: int) -> None:
    disk, acknowledged = FullDisk(), []
    with Broker(data=tmp_path, files=disk) as broker, Stranger(broker.port) as stranger:
        stranger.create_topic("full")
        for number in range(10):
            value = b"before %d" % number
            assert stranger.produce("full", batch_of(value)).error_code == 0
            acknowledged.append(value)
        disk.room_bytes = room_bytes
        try:
            for number in range(100):
                value = b"while full %d" % number
                code = stranger.produce("full", batch_of(value)).error_code
                if code:
                    assert code == ErrorCode.KAFKA_STORAGE_ERROR
                    break
                acknowledged.append(value)
            else:
                pytest.fail("a full disk took every record")
        except ConnectionError:
            # A node whose only data folder fails may stop; what it may not do is to acknowledge.
            assert broker.fatal_error is not None
        disk.room_bytes = None
    with Broker(data=tmp_path) as broker, Stranger(broker.port) as stranger:
        assert stranger.values("full") == acknowledged
        assert stranger.produce("full", batch_of(b"after")).error_code == 0
        assert stranger.values("full") == [*acknowledged, b"after"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 3 MB, where we may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_real_disk_that_fills_up_keeps_what_was_acknowledged(small_disk: Path) -> None:
    acknowledged: list[bytes] = []
    with Broker(data=small_disk) as broker, Stranger(broker.port) as stranger:
        stranger.create_topic("full")
        codes = set()
        for number in range(60):
            value = b"%d " % number + b"." * 100_000
            code = stranger.produce("full", batch_of(value)).error_code
            codes.add(code)
            if not code:
                acknowledged.append(value)
        assert codes == {0, ErrorCode.KAFKA_STORAGE_ERROR}
        assert stranger.values("full") == acknowledged
        assert stranger.is_served()
    assert_does_not_start(Broker(data=small_disk), small_disk)
    subprocess.run(["mount", "-o", "remount,size=9m", str(small_disk)], check=True)
    with Broker(data=small_disk) as broker, Stranger(broker.port) as stranger:
        assert stranger.values("full") == acknowledged


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_real_read_only_disk_stops_the_start_with_a_clear_line(small_disk: Path) -> None:
    with Broker(data=small_disk):
        pass
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert_does_not_start(Broker(data=small_disk), small_disk)


class FailingSync(Files):
    """A disk that says, from some moment on, that it could not keep what it was given."""

    def __init__(self) -> None:
        self.is_failing = False

    def sync(self, fd: int) -> None:
        if self.is_failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync(fd)


def test_failed_sync_stops_the_broker_and_acknowledges_nothing(tmp_path: Path) -> None:
    disk = FailingSync()
    with Broker({"moldau.flush.on.ack": "true"}, data=tmp_path, files=disk) as broker:
        with Stranger(broker.port) as stranger:
            stranger.create_topic("synced")
            assert stranger.produce("synced", batch_of(b"kept")).error_code == 0
            disk.is_failing = True
            assert not _is_acknowledged(stranger, "synced", b"unsure")
        assert broker.fatal_error is not None
        disk.is_failing = False


def _is_acknowledged(stranger: Stranger, topic: str, value: bytes) -> bool:
    try:
        return int(stranger.produce(topic, batch_of(value)).error_code) == 0
    except ConnectionError:
        return False


class ReadOnlyDisk(Files):
    """Every change is refused, as on a file system mounted read-only."""

    def _refuse(self, path: object) -> OSError:
        return OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    def open_append(self, path: str) -> int:
        raise self._refuse(path)

    def write_file(self, path: str, data: bytes, *, sync: bool = False) -> None:
        raise self._refuse(path)

    def atomic_write(self, path: str, data: bytes, *, sync: bool = True) -> None:
        raise self._refuse(path)

    def rename(self, old: str, new: str) -> None:
        raise self._refuse(old)

    def make_directory(self, path: str) -> None:
        if not os.path.isdir(path):
            raise self._refuse(path)

    def lock(self, path: str) -> Any:
        raise self._refuse(path)


def assert_does_not_start(broker: Broker, folder: Path) -> None:
    """The start ends with one line that names the folder."""
    with pytest.raises(MoldauError) as caught:
        broker.start()
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("is_new", [True, False], ids=["new", "used before"])
def test_read_only_folder_stops_the_start_with_a_clear_line(tmp_path: Path, is_new: bool) -> None:
    if not is_new:
        with Broker(data=tmp_path):
            pass
    assert_does_not_start(Broker(data=tmp_path, files=ReadOnlyDisk()), tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write where others may not")
def test_folder_without_permission_stops_the_start_with_a_clear_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        assert_does_not_start(Broker(data=tmp_path), tmp_path)
    finally:
        tmp_path.chmod(0o700)


def test_file_where_the_folder_should_be_stops_the_start_with_a_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("not a folder")
    assert_does_not_start(Broker(data=path), path)


def test_second_broker_on_the_same_folder_does_not_start_and_leaves_the_first_alone(tmp_path: Path) -> None:
    with Broker(data=tmp_path) as first, Stranger(first.port) as stranger:
        stranger.create_topic("taken")
        assert stranger.produce("taken", batch_of(b"before")).error_code == 0
        assert_does_not_start(Broker(data=tmp_path), tmp_path)
        assert stranger.produce("taken", batch_of(b"after")).error_code == 0
        assert stranger.values("taken") == [b"before", b"after"]
    with Broker(data=tmp_path) as again, Stranger(again.port) as stranger:
        assert stranger.values("taken") == [b"before", b"after"]


def test_records_survive_a_clock_that_jumps(tmp_path: Path) -> None:
    clock = ManualClock()
    start_ms = clock.now_ms()
    with Broker(data=tmp_path, clock=clock) as broker, Stranger(broker.port) as stranger:
        stranger.create_topic("jumps", message_timestamp_type="LogAppendTime")
        for days, value in ((0, b"now"), (1, b"tomorrow"), (-2, b"yesterday"), (300, b"next year"), (-299, b"now")):
            clock.jump(days * DAY_MS)
            assert stranger.produce("jumps", batch_of(value, timestamp_ms=start_ms)).error_code == 0
        expected = [b"now", b"tomorrow", b"yesterday", b"next year", b"now"]
        assert stranger.values("jumps") == expected
        assert _offset_at(stranger, "jumps", start_ms + DAY_MS) == 1
        assert _offset_at(stranger, "jumps", start_ms + 2 * DAY_MS) == 3
    with Broker(data=tmp_path, clock=clock) as broker, Stranger(broker.port) as stranger:
        assert stranger.values("jumps") == expected
        assert _offset_at(stranger, "jumps", start_ms + DAY_MS) == 1


def test_clock_set_back_does_not_hold_up_a_waiting_fetch() -> None:
    clock = ManualClock()
    with Broker(clock=clock) as broker, Stranger(broker.port) as stranger, Stranger(broker.port) as other:
        stranger.create_topic("waits")
        sent = stranger.send_fetch("waits", 0, max_wait_ms=8000)
        clock.jump(-DAY_MS)
        assert other.produce("waits", batch_of(b"wakes", timestamp_ms=clock.now_ms())).error_code == 0
        assert stranger.answer(ApiKey.FETCH, 11, sent).responses[0].partitions[0].high_watermark == 1


def test_clock_behind_the_producers_refuses_their_timestamps_and_recovers() -> None:
    clock = ManualClock()
    sent_ms = clock.now_ms()
    with Broker(clock=clock) as broker, Stranger(broker.port) as stranger:
        stranger.create_topic("behind")
        clock.jump(-DAY_MS)
        refused = stranger.produce("behind", batch_of(b"x", timestamp_ms=sent_ms))
        assert refused.error_code == ErrorCode.INVALID_TIMESTAMP
        clock.jump(DAY_MS)
        assert stranger.produce("behind", batch_of(b"x", timestamp_ms=sent_ms)).error_code == 0


def _offset_at(stranger: Stranger, topic: str, timestamp_ms: int) -> int:
    partition = Message(partition_index=0, current_leader_epoch=-1, timestamp_ms=timestamp_ms, timestamp=timestamp_ms)
    asked = [Message(name=topic, partitions=[partition])]
    answer = stranger.ask(ApiKey.LIST_OFFSETS, 5, replica_id=-1, isolation_level=0, topics=asked)
    offset: int = answer.topics[0].partitions[0].offset
    return offset
