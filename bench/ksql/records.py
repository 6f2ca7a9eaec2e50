"""The records that every way gets, and how to tell that all results are there.

An order is about 100 bytes of JSON under one of so many keys. A load is written in one transaction, so that all of it
can be read at one moment, and the clock starts with the commit. Start at `Orders`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

__all__ = ["COLUMNS", "PARTITIONS", "Orders", "finished_at", "make_topic"]

PARTITIONS = 4
COLUMNS = "ID STRING KEY, ITEM STRING, PRICE INT, QUANTITY BIGINT, NOTE STRING"
QUIET_S = 4.0


def make_topic(bootstrap: str, name: str, *, is_output: bool = False) -> None:
    """Create a topic; results get the time at which they are appended."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"message.timestamp.type": "LogAppendTime"} if is_output else {}
    for future in admin.create_topics([NewTopic(name, PARTITIONS, 1, config=config)]).values():
        future.result(30)


class Orders:
    """Writes orders to a topic."""

    def __init__(self, bootstrap: str, topic: str, keys: int) -> None:
        self._bootstrap, self._topic, self._keys = bootstrap, topic, keys
        self._number = 0
        self._producer: Producer | None = None

    def write(self, count: int) -> float:
        """Write so many, readable all at once; the time of the commit."""
        producer = self._producer = self._producer or self._ready_producer()
        producer.begin_transaction()
        self._produce(producer, count)
        producer.flush(300)
        began = time.time()
        producer.commit_transaction(60)
        return began

    def _ready_producer(self) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "transactional.id": uuid.uuid4().hex,
                "transaction.timeout.ms": 600_000,
                "linger.ms": 50,
                "queue.buffering.max.messages": 1_000_000,
                "partitioner": "murmur2_random",
            }
        )
        producer.init_transactions(60)
        return producer

    def _produce(self, producer: Producer, count: int) -> None:
        for _ in range(count):
            number = self._number
            self._number += 1
            value = (
                f'{{"ITEM":"item-{number % 997}","PRICE":{number % 1000},"QUANTITY":{number % 17},'
                f'"NOTE":"order number {number} of some customer"}}'
            )
            while True:
                try:
                    producer.produce(self._topic, value, f"key-{number % self._keys:08d}")
                    break
                except BufferError:
                    producer.poll(0.1)

    def write_table(self, topic: str) -> None:
        """A row for each key."""
        producer = Producer({"bootstrap.servers": self._bootstrap, "partitioner": "murmur2_random"})
        for key in range(self._keys):
            producer.produce(topic, f'{{"NAME":"customer {key}","LEVEL":{key % 5}}}', f"key-{key:08d}")
            producer.poll(0)
        producer.flush(60)


def end_offsets(bootstrap: str, topic: str) -> list[int]:
    """How far each partition reaches."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench-offsets"})
    try:
        return [consumer.get_watermark_offsets(TopicPartition(topic, one), 30)[1] for one in range(PARTITIONS)]
    finally:
        consumer.close()


def finished_at(
    bootstrap: str, topic: str, least: int, timeout_s: float, is_alive: Callable[[], bool] = lambda: True
) -> float:
    """When the last result was appended, once there are enough and no more come."""
    deadline = time.monotonic() + timeout_s
    before, since = -1, time.monotonic()
    while time.monotonic() < deadline:
        if not is_alive():
            raise RuntimeError("the program ended by itself")
        now = sum(end_offsets(bootstrap, topic))
        if now != before:
            before, since = now, time.monotonic()
        elif now >= least and time.monotonic() - since > QUIET_S:
            return _last_append_s(bootstrap, topic)
        time.sleep(0.3)
    raise TimeoutError(f"{topic} has {before:,} of {least:,} records after {timeout_s} s")


def _last_append_s(bootstrap: str, topic: str) -> float:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench-last", "enable.auto.commit": False})
    last = 0.0
    try:
        for partition, end in enumerate(end_offsets(bootstrap, topic)):
            consumer.assign([TopicPartition(topic, partition, max(0, end - 50))])
            while end and (record := consumer.poll(2.0)) is not None:
                if record.error() is None:
                    last = max(last, record.timestamp()[1] / 1000)
    finally:
        consumer.close()
    return last
