"""What stands in the topics before Spark comes: the same records on every broker, down to offset and timestamp.

Written and checked with librdkafka, so that nothing of Spark's is judged by Spark alone. Start at `records`,
`Topics` and `produce`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count as numbers
from time import monotonic, sleep
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec

__all__ = ["BASE_MS", "QUIET", "STEP_MS", "Record", "Topics", "consumed", "produce", "records"]

BASE_MS = 1_735_689_600_000
"""The timestamp of every first record: the beginning of 2025."""
STEP_MS = 10
WAIT_S = 30
QUIET = {"log_level": 0}
"""Brokers come and go here, and librdkafka would tell of each lost connection."""


class Record(NamedTuple):
    """A record and the place it goes to."""

    partition: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def records(count: int, *, partitions: int = 6, first: int = 0, headers: bool = False) -> list[Record]:
    """Records spread evenly, ten milliseconds apart, some without a key and some without a value."""
    return [
        Record(
            partition=i % partitions,
            timestamp_ms=BASE_MS + STEP_MS * i,
            key=None if i % 7 == 3 else f"key-{i % 100}".encode(),
            value=None if i % 11 == 5 else f"value-{i}-{'x' * (i % 50)}".encode(),
            headers=(("number", str(i).encode()), ("empty", b""), ("none", None), ("number", b"again"))[: i % 5]
            if headers
            else (),
        )
        for i in range(first, first + count)
    ]


def produce(bootstrap: str, topic: str, wanted: Iterable[Record], codec: str = "none", **settings: object) -> None:
    """Send the records in order and return once all are acknowledged."""
    failures: list[object] = []
    producer = Producer(
        {
            **QUIET,
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "linger.ms": 20,
            "batch.num.messages": 500,
            "enable.idempotence": True,
            **settings,
        }
    )
    for record in wanted:
        producer.produce(
            topic,
            partition=record.partition,
            timestamp=record.timestamp_ms,
            key=record.key,
            value=record.value,
            headers=list(record.headers),
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0
    assert not failures


def consumed(bootstrap: str, topic: str, *, partitions: int = 6) -> list[Record]:
    """All records that are there now, partition by partition, each in its order."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
    consumer = Consumer({**QUIET, **settings, "enable.partition.eof": True, "check.crcs": True})
    messages, open_partitions = [], partitions
    try:
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)])
        while open_partitions:
            message = consumer.poll(WAIT_S)
            assert message is not None, "nothing came for a long time"
            if message.error() is None:
                messages.append(message)
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                open_partitions -= 1
    finally:
        consumer.close()
    return [
        Record(m.partition(), m.timestamp()[1], m.key(), m.value(), tuple(m.headers() or ()))
        for m in sorted(messages, key=lambda m: (m.partition(), m.offset()))
    ]


class Topics:
    """Makes, changes and removes the topics of one test; their names begin with the test's.

    They stay when the test ends: what a failed query leaves running in Spark would bring them back at once.
    """

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self._admin = AdminClient({**QUIET, "bootstrap.servers": bootstrap})
        self._numbers = numbers(1)

    def name(self) -> str:
        """A name that no topic has yet."""
        return f"{self.prefix}-{next(self._numbers)}"

    def create(self, *, partitions: int = 6, name: str | None = None, **config: str) -> str:
        """Create a topic that forgets nothing; `segment_bytes="1000"` sets segment.bytes."""
        name = name or self.name()
        settings = {"retention.ms": "-1"} | {key.replace("_", "."): value for key, value in config.items()}
        new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
        self._admin.create_topics([new])[name].result(WAIT_S)
        self._await_leaders(name, partitions)
        return name

    def filled(self, wanted: Sequence[Record], *, partitions: int = 6, codec: str = "none", **config: str) -> str:
        """Create a topic and produce into it."""
        name = self.create(partitions=partitions, **config)
        produce(self.bootstrap, name, wanted, codec)
        return name

    def add_partitions(self, name: str, total: int) -> None:
        self._admin.create_partitions([NewPartitions(name, total)])[name].result(WAIT_S)

    def delete_records(self, name: str, before: Mapping[int, int]) -> None:
        """Delete what lies before an offset, by partition."""
        wanted = [TopicPartition(name, partition, offset) for partition, offset in before.items()]
        for future in self._admin.delete_records(wanted).values():
            future.result(WAIT_S)

    def delete(self, name: str) -> None:
        self._admin.delete_topics([name], operation_timeout=WAIT_S)[name].result(WAIT_S)

    def _await_leaders(self, name: str, partitions: int) -> None:
        """Apache Kafka tells of a new topic a moment before its partitions take records.

        A producer that is refused its first batch, with a second one under way that is taken, never gets the first
        one in: its sequence numbers are out of order from then on.
        """
        wanted = {TopicPartition(name, partition): OffsetSpec.latest() for partition in range(partitions)}
        deadline = monotonic() + WAIT_S
        while not self._have_leaders(wanted):
            assert monotonic() < deadline, f"{name} has no leaders"
            sleep(0.05)

    def _have_leaders(self, wanted: Mapping[TopicPartition, OffsetSpec]) -> bool:
        try:
            for future in self._admin.list_offsets(dict(wanted), request_timeout=WAIT_S).values():
                future.result(WAIT_S)
        except KafkaException:
            return False
        return True
