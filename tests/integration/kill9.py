"""Kill a broker again and again under load, and check that it keeps its promises.

Two producers write numbers without pause, one idempotent and one plain, both with acks=all. After the last kill
everything is read back: each acknowledged record is at the offset it was acknowledged with; the idempotent
producer's numbers follow each other without gap or repetition; the plain one's are all there, in the order of their
first appearance. Start at `run`; `scripts/kill9 --kills 100` is the long version.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.killable import START_TIMEOUT_S, KillableBroker

__all__ = ["PARTITIONS", "Report", "Writer", "broken_promises", "run", "wait_until_acknowledged"]

PARTITIONS = 3
BURST = 5
PAYLOAD = b"." * 200
SETTINGS = {
    # Small segments and indexes, so that kills also meet rolls, index writes and producer snapshots.
    "log.segment.bytes": "400000",
    "log.index.interval.bytes": "1024",
    "log.flush.offset.checkpoint.interval.ms": "1000",
}


@dataclass
class Report:
    """What happened, for a person to read."""

    kills: int = 0
    kills_during_start: int = 0
    acknowledged: int = 0
    slowest_start_s: float = 0.0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        line = (
            f"{self.kills} kills ({self.kills_during_start} of them while starting), "
            f"{self.acknowledged} records acknowledged, slowest start {self.slowest_start_s:.2f} s"
        )
        return "\n".join([line, *(self.problems or ["every acknowledged record is there, in order"])])


class Writer:
    """Produces the numbers 0, 1, 2… to each partition of a topic and remembers which were acknowledged, and where."""

    def __init__(
        self, bootstrap: str, topic: str, *, is_idempotent: bool, settings: Mapping[str, object] | None = None
    ) -> None:
        self.topic = topic
        self.sent = [0] * PARTITIONS
        self.acknowledged: list[dict[int, int]] = [{} for _ in range(PARTITIONS)]
        """For each partition: number to offset."""
        self.acknowledged_count = 0
        self.failures: list[str] = []
        self._stop = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": is_idempotent,
                "max.in.flight": 5 if is_idempotent else 1,
                "message.timeout.ms": 300_000,
                "linger.ms": 2,
                "reconnect.backoff.ms": 5,
                "reconnect.backoff.max.ms": 50,
                "retry.backoff.ms": 5,
                "retry.backoff.max.ms": 50,
                "queue.buffering.max.messages": 2000,
                "log_level": 0,
                **(settings or {}),
            },
            error_cb=lambda _error: None,
        )
        self._thread = threading.Thread(target=self._write, name=f"writer-{topic}")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def finish(self) -> None:
        """Send no more, and wait until all that was sent is acknowledged."""
        self.stop()
        left = self._producer.flush(120)
        if left:
            self.failures.append(f"{self.topic}: {left} records are still not acknowledged")

    def _write(self) -> None:
        # A burst and a breath: steady load, and no more records than a test can remember.
        while not self._stop.wait(0.002):
            for partition in range(PARTITIONS):
                for _ in range(BURST):
                    self._send(partition)
            self._producer.poll(0)

    def _send(self, partition: int) -> None:
        number = self.sent[partition]
        delivered = partial(self._delivered, number)
        try:
            self._producer.produce(self.topic, b"%d " % number + PAYLOAD, partition=partition, on_delivery=delivered)
        except BufferError:
            self._producer.poll(0.01)
        else:
            self.sent[partition] += 1

    def _delivered(self, number: int, error: KafkaError | None, message: Any) -> None:
        if error is None:
            self.acknowledged[message.partition()][number] = message.offset()
            self.acknowledged_count += 1
        else:
            self.failures.append(f"{self.topic}-{message.partition()}: number {number} failed: {error}")


def run(*, kills: int, seed: int, folder: Path) -> Report:
    """Kill the broker `kills` times and check what is left; `seed` decides when."""
    chance, report = random.Random(seed), Report()
    broker = KillableBroker(folder, SETTINGS)
    try:
        broker.spawn()
        broker.wait_until_it_answers()
        bootstrap = f"127.0.0.1:{broker.port}"
        _create_topics(bootstrap, ["idempotent", "plain"])
        writers = [
            Writer(bootstrap, "idempotent", is_idempotent=True),
            Writer(bootstrap, "plain", is_idempotent=False),
        ]
        for writer in writers:
            writer.start()
        try:
            for _ in range(kills):
                _kill_once(broker, writers, chance, report)
        except BaseException:
            for writer in writers:
                writer.stop()
            raise
        for writer in writers:
            writer.finish()
        for writer in writers:
            report.acknowledged += sum(map(len, writer.acknowledged))
            report.problems += writer.failures[:5] + broken_promises(bootstrap, writer)
    finally:
        broker.close()
    return report


def _kill_once(broker: KillableBroker, writers: Sequence[Writer], chance: random.Random, report: Report) -> None:
    """One life of the broker, ended at a random moment under load; now and then the next one ends while starting."""
    wait_until_acknowledged(writers, more=chance.randrange(1, 300))
    time.sleep(chance.uniform(0.0, 0.1))
    broker.kill()
    report.kills += 1
    broker.spawn()
    if chance.random() < 0.15:
        time.sleep(chance.uniform(0.0, 0.3))
        broker.kill()
        report.kills_during_start += 1
        broker.spawn()
    report.slowest_start_s = max(report.slowest_start_s, broker.wait_until_it_answers())


def wait_until_acknowledged(writers: Sequence[Writer], *, more: int) -> None:
    """Both producers must have found the broker again, else the kill meets no load."""
    wanted = [writer.acknowledged_count + more for writer in writers]
    deadline = time.monotonic() + START_TIMEOUT_S
    while any(writer.acknowledged_count < count for writer, count in zip(writers, wanted, strict=True)):
        if time.monotonic() > deadline:
            raise RuntimeError(f"no {more} further acknowledgements within {START_TIMEOUT_S} s")
        time.sleep(0.002)


def _create_topics(bootstrap: str, names: Sequence[str]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for future in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names]).values():
        future.result(30)


def broken_promises(bootstrap: str, writer: Writer, *, has_one_leader: bool = True) -> list[str]:
    """What is wrong with what is read. A plain producer keeps one request under way with each broker: where leaders
    change while they live, a record that one refuses may be overtaken by the next one, sent to another."""
    problems = []
    for partition in range(PARTITIONS):
        read = _read_all(bootstrap, writer.topic, partition)
        acknowledged = writer.acknowledged[partition]
        where = f"{writer.topic}-{partition}"
        lost = [(n, offset) for n, offset in acknowledged.items() if read.get(offset) != n]
        if lost:
            problems.append(f"{where}: {len(lost)} acknowledged records are not at their offset: {lost[:5]}")
        if sorted(read) != list(range(len(read))):
            problems.append(f"{where}: offsets are not consecutive")
        numbers = [read[offset] for offset in sorted(read)]
        if writer.topic == "idempotent" and numbers != list(range(writer.sent[partition])):
            problems.append(f"{where}: {_first_disorder(numbers)}, of {writer.sent[partition]} sent")
        first_seen = list(dict.fromkeys(numbers))
        if (first_seen if has_one_leader else sorted(first_seen)) != list(range(writer.sent[partition])):
            problems.append(f"{where}: first appearances are out of order or incomplete")
    return problems


def _first_disorder(numbers: Sequence[int]) -> str:
    for position, number in enumerate(numbers):
        if number != position:
            return f"offset {position} holds number {number}"
    return f"{len(numbers)} records"


def _read_all(bootstrap: str, topic: str, partition: int) -> dict[int, int]:
    """Offset to number, for everything in the partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "kill9", "enable.auto.commit": False})
    found: dict[int, int] = {}
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)
        consumer.assign([TopicPartition(topic, partition, low)])
        deadline = time.monotonic() + 60
        while len(found) < high - low and time.monotonic() < deadline:
            for message in consumer.consume(1000, timeout=0.2):
                if message.error() is None:
                    found[message.offset() or 0] = int(bytes(message.value() or b"").split(b" ", 1)[0])
    finally:
        consumer.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/kill9", description="Kill a broker under load and check its log.")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30), help="repeats a run's moments")
    parser.add_argument("--keep", action="store_true", help="leave the folder for a look")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="moldau-kill9-"))
    report = run(kills=arguments.kills, seed=arguments.seed, folder=folder)
    print(f"seed {arguments.seed}: {report}")
    if arguments.keep:
        print(f"the broker's folder is {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
