"""Reading what a job has written: how much, when the last of it came, and whether it is right."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, TopicPartition

__all__ = ["Outputs", "end_offsets", "words_in"]

PARTITIONS = 4
QUIET_S = 2.0


@dataclass
class Outputs:
    """Everything in an output topic, last value per key."""

    count: int
    last: dict[bytes, bytes]
    last_append_ms: int

    def total(self) -> int:
        """The sum of the last counts; 4 or 8 bytes, big-endian."""
        return sum(int.from_bytes(value, "big") for value in self.last.values())


def end_offsets(bootstrap: str, topic: str) -> tuple[int, ...]:
    """The end of each partition."""
    consumer = _consumer(bootstrap)
    try:
        return tuple(consumer.get_watermark_offsets(TopicPartition(topic, p))[1] for p in range(PARTITIONS))
    finally:
        consumer.close()


def read(bootstrap: str, topic: str) -> Outputs:
    """The committed records from the beginning to the present end."""
    result = Outputs(0, {}, 0)

    def take(record: Any) -> None:
        result.count += 1
        result.last[record.key()] = record.value()
        result.last_append_ms = max(result.last_append_ms, record.timestamp()[1])

    _each(bootstrap, topic, take)
    return result


def words_in(bootstrap: str, topic: str) -> int:
    """How many words the records of a topic have."""
    total = 0

    def take(record: Any) -> None:
        nonlocal total
        total += len(record.value().split())

    _each(bootstrap, topic, take)
    return total


def _each(bootstrap: str, topic: str, take: Callable[[Any], None]) -> None:
    consumer = _consumer(bootstrap)
    ends = end_offsets(bootstrap, topic)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    # A partition may end with transaction markers, which are never given out: look at positions, not at records.
    while True:
        for record in consumer.consume(50_000, timeout=0.5):
            if record.error() is None:
                take(record)
        positions = consumer.position([TopicPartition(topic, partition) for partition in range(PARTITIONS)])
        if all(at.offset >= end or end == 0 for at, end in zip(positions, ends, strict=True)):
            consumer.close()
            return


def wait_until_quiet(bootstrap: str, topic: str, at_least: int, timeout_s: float, is_alive: Callable[[], bool]) -> None:
    """Wait until a topic has `at_least` records and gets no more; in vain where the writer is dead."""
    deadline = time.monotonic() + timeout_s
    seen, since = end_offsets(bootstrap, topic), time.monotonic()
    while time.monotonic() < deadline:
        if not is_alive():
            raise RuntimeError("the program ended by itself")
        time.sleep(0.2)
        now = end_offsets(bootstrap, topic)
        if now != seen:
            seen, since = now, time.monotonic()
        elif sum(now) >= at_least and time.monotonic() - since > QUIET_S:
            return
    raise TimeoutError(f"{topic} has {sum(seen):,} records after {timeout_s:.0f} s, {at_least:,} were expected")


def _consumer(bootstrap: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench-reader",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "queued.max.messages.kbytes": 200_000,
        }
    )
