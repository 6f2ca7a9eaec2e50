"""A file system that is really frozen, under a broker of its own: what hangs, what does not, what survives a kill.

Needs root and a loop device; elsewhere `test_stalled_disk` shows the same with a disk that only pretends.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.group_members import commit, coordinator_is_ready, fetch_offsets
from tests.integration.killable import KillableBroker
from tests.integration.raw_client import RawClient, batch_of

from moldau.client.wire import UnreachableError, WireClient
from moldau.protocol.messages import Message
from moldau.protocol.records import decode_records, split_batches

METADATA = 3
IMAGE_BYTES = 128 * 1024 * 1024


class FileSystem:
    """An ext4 of its own in a file, mounted."""

    def __init__(self, folder: Path) -> None:
        self.mount_point = folder / "mounted"
        self._image = folder / "image"

    def mount(self) -> None:
        self.mount_point.mkdir()
        with self._image.open("wb") as image:
            image.truncate(IMAGE_BYTES)
        for command in (["mkfs.ext4", "-q", self._image], ["mount", "-o", "loop", self._image, self.mount_point]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"{command[0]} is not permitted here: {done.stderr.strip()}")

    def unmount(self) -> None:
        if os.path.ismount(self.mount_point):
            subprocess.run(["umount", self.mount_point], check=True)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        done = subprocess.run(["fsfreeze", "-f", self.mount_point], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"fsfreeze is not permitted here: {done.stderr.strip()}")
        try:
            yield
        finally:
            self.thaw()

    def thaw(self) -> None:
        """Freezing twice is an error, thawing twice is none of ours."""
        subprocess.run(["fsfreeze", "-u", self.mount_point], capture_output=True, check=False)


@pytest.fixture
def file_system(tmp_path: Path) -> Iterator[FileSystem]:
    missing = [name for name in ("mkfs.ext4", "mount", "fsfreeze") if shutil.which(name) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"only root can mount and freeze a file system (missing: {', '.join(missing) or 'root'})")
    file_system = FileSystem(tmp_path)
    try:
        file_system.mount()
        yield file_system
    finally:
        file_system.unmount()


@contextmanager
def broker_on(file_system: FileSystem, tmp_path: Path, **settings: str) -> Iterator[KillableBroker]:
    """Its data on the file system, its output elsewhere."""
    data = file_system.mount_point / "data"
    data.mkdir()
    (tmp_path / "data").symlink_to(data)
    broker = KillableBroker(tmp_path, {key.replace("_", "."): value for key, value in settings.items()})
    broker.start()
    try:
        with RawClient(broker.port) as admin, WireClient("127.0.0.1", broker.port) as client:
            admin.create_topic("slow")
            admin.create_topic("other")
            assert admin.produce("other", batch_of(b"cached")).error_code == 0
            coordinator_is_ready(client, "g")
        yield broker
    finally:
        broker.close()


def produce(broker: KillableBroker, value: bytes) -> int:
    with RawClient(broker.port) as client:
        return int(client.produce("slow", batch_of(value)).error_code)


def values(broker: KillableBroker) -> list[bytes | None]:
    with RawClient(broker.port) as client:
        records = client.fetch("slow", 0).records
    return [one.value for header, batch in split_batches(records) for one in decode_records(batch, header)]


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_kill_while_the_file_system_is_frozen_loses_nothing_acknowledged(
    file_system: FileSystem, tmp_path: Path
) -> None:
    with (
        broker_on(file_system, tmp_path, moldau_append_thread="true") as broker,
        WireClient("127.0.0.1", broker.port) as first,
        WireClient("127.0.0.1", broker.port) as second,
        ThreadPoolExecutor(4) as people,
    ):
        acknowledged = [b"%d" % number for number in range(50)]
        assert [produce(broker, value) for value in acknowledged] == [0] * 50
        assert commit(first, "g", "slow", 50) == 0
        with file_system.frozen():
            hanging = [people.submit(produce, broker, b"not acknowledged")]
            until(lambda: "an append has hung for" in broker.last_words)
            hanging.append(people.submit(commit, second, "g", "slow", 51))
            with RawClient(broker.port) as other:
                for _ in range(100):
                    other.ask(METADATA, 9, Message(topics=None, allow_auto_topic_creation=False))
                    assert other.fetch("other", 0).records
            assert not any(one.done() for one in hanging)
            assert "the event loop has hung" not in broker.last_words
            # A process in a frozen write ends when the file system is thawed, not before.
            broker.signal(signal.SIGKILL)
            file_system.thaw()
        for one in hanging:
            with pytest.raises((ConnectionError, UnreachableError)):
                one.result(20)
        broker.close()
        broker.start()
        assert values(broker)[:50] == acknowledged
        assert set(values(broker)[50:]) <= {b"not acknowledged"}
        with WireClient("127.0.0.1", broker.port) as client:
            coordinator_is_ready(client, "g")
            group = fetch_offsets(client, "g", "slow", [0])
        assert group.topics[0].partitions[0].committed_offset in (50, 51)


def test_a_loop_in_a_frozen_write_is_told_and_everything_goes_on_afterwards(
    file_system: FileSystem, tmp_path: Path
) -> None:
    with broker_on(file_system, tmp_path) as broker, ThreadPoolExecutor(2) as people:
        assert produce(broker, b"0") == 0
        with file_system.frozen():
            hanging = people.submit(produce, broker, b"1")
            until(lambda: "the event loop has hung for" in broker.last_words)
            assert "PartitionLog.append on slow-0" in broker.last_words
            assert not hanging.done()
        assert hanging.result(20) == 0
        until(lambda: "the event loop goes on after" in broker.last_words)
        with file_system.frozen():
            hanging = people.submit(produce, broker, b"2")
            until(lambda: "an append has hung for" in broker.last_words)
            with RawClient(broker.port) as other:
                assert other.fetch("other", 0).records
            assert not hanging.done()
        assert hanging.result(20) == 0
        assert values(broker) == [b"0", b"1", b"2"]
