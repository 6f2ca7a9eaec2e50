"""With `moldau.flush.on.ack=true` an acknowledgement means "on disk": the power may go at any moment.

The disk is one that forgets what was not synced (`moldau.testing.power_loss`), which no kill of a process can show.
"""

from __future__ import annotations

import errno
import itertools
import os
import random
import threading
from pathlib import Path

import pytest
from tests.integration.server_process import wait_until
from tests.integration.stranger import Stranger, batch_of

from moldau.protocol.messages import Message
from moldau.testing import Broker
from moldau.testing.power_loss import ForgetfulFiles

WRITERS = 4
SETTINGS = {
    "moldau.flush.on.ack": "true",
    # Small segments, so that the power also goes while a log rolls and while indexes and snapshots are saved.
    "log.segment.bytes": "20000",
    "log.index.interval.bytes": "200",
    "log.flush.offset.checkpoint.interval.ms": "200",
}


class PowerSwitch(ForgetfulFiles):
    """A forgetful disk whose power goes at a moment of our choice: no sync counts, or succeeds, after it."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self._switch = threading.Lock()
        self._is_off = False

    def cut(self) -> None:
        with self._switch:
            self._is_off = True

    def sync(self, fd: int) -> None:
        with self._switch:
            self._refuse_without_power()
            super().sync(fd)

    def sync_directory(self, path: str) -> None:
        with self._switch:
            self._refuse_without_power()
            super().sync_directory(path)

    def _refuse_without_power(self) -> None:
        if self._is_off:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


class Writer(threading.Thread):
    """Produces to a topic of its own until the broker is gone; remembers what was acknowledged, and where."""

    def __init__(self, port: int, topic: str, known: dict[int, bytes], chance: random.Random) -> None:
        super().__init__(name=f"writer-{topic}")
        self._port, self._topic, self._known, self._chance = port, topic, known, chance

    def run(self) -> None:
        try:
            with Stranger(self._port, timeout_s=60) as stranger:
                for number in itertools.count():
                    value = b"%d " % number + b"." * self._chance.randrange(1, 400)
                    answer = stranger.produce(self._topic, batch_of(value))
                    if answer.error_code:
                        return
                    self._known[answer.base_offset] = value
        except (OSError, TimeoutError):
            return


def missing(known: dict[int, bytes], values: list[bytes | None]) -> dict[int, bytes]:
    """Acknowledged records that are not at their offset."""
    return {offset: value for offset, value in known.items() if offset >= len(values) or values[offset] != value}


def live_until_the_power_goes(folder: Path, known: dict[str, dict[int, bytes]], chance: random.Random) -> int:
    """One life of the broker under load; returns how many records were acknowledged in all lives."""
    disk = PowerSwitch(str(folder))
    broker = Broker(SETTINGS, data=folder, files=disk)
    broker.start()
    with Stranger(broker.port) as stranger:
        for topic, acknowledged in known.items():
            assert missing(acknowledged, stranger.values(topic)) == {}
        newest = f"topic-{len(known)}"
        stranger.create_topic(newest)
        known[newest] = {}
    topics = [newest, *chance.sample(sorted(known), k=min(WRITERS, len(known)))][:WRITERS]
    writers = [Writer(broker.port, topic, known[topic], random.Random(chance.random())) for topic in set(topics)]
    for writer in writers:
        writer.start()
    enough = sum(map(len, known.values())) + chance.randrange(1, 400)
    wait_until(lambda: sum(map(len, known.values())) >= enough, what="acknowledged records")
    disk.cut()
    broker.stop()
    for writer in writers:
        writer.join()
    disk.lose_power(chance if chance.random() < 0.7 else None)
    disk.close()
    return sum(map(len, known.values()))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_acknowledged_record_is_there_after_power_losses(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    known: dict[str, dict[int, bytes]] = {}
    counts = [live_until_the_power_goes(tmp_path, known, chance) for _ in range(5)]
    assert counts == sorted(set(counts)), "some life acknowledged nothing"
    with Broker(SETTINGS, data=tmp_path) as broker, Stranger(broker.port) as stranger:
        for topic, acknowledged in known.items():
            assert missing(acknowledged, stranger.values(topic)) == {}


def test_without_flushing_the_same_disk_forgets(tmp_path: Path) -> None:
    """The test above can fail: acknowledgements that did not wait for the disk do not survive."""
    disk = PowerSwitch(str(tmp_path))
    broker = Broker({}, data=tmp_path, files=disk)
    broker.start()
    with Stranger(broker.port) as stranger:
        stranger.create_topic("volatile")
        for number in range(50):
            assert stranger.produce("volatile", batch_of(b"%d" % number)).error_code == 0
    disk.cut()
    broker.stop()
    disk.lose_power()
    disk.close()
    with Broker({}, data=tmp_path) as broker, Stranger(broker.port) as stranger:
        assert stranger.values("volatile") == []


def test_topic_that_was_acknowledged_survives_a_power_loss(tmp_path: Path) -> None:
    disk = PowerSwitch(str(tmp_path))
    broker = Broker({}, data=tmp_path, files=disk)
    broker.start()
    with Stranger(broker.port) as stranger:
        stranger.create_topic("remembered", partitions=3, retention_ms=1234567)
    disk.cut()
    broker.stop()
    disk.lose_power()
    disk.close()
    with Broker({}, data=tmp_path) as broker, Stranger(broker.port) as stranger:
        answer = stranger.ask(3, 8, topics=[Message(name="remembered")], allow_auto_topic_creation=False)
        assert answer.topics[0].error_code == 0
        assert len(answer.topics[0].partitions) == 3
