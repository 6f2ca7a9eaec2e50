"""The orders that every way copies, and topics with them. Start at `write_orders`."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

__all__ = [
    "COLUMN_TYPES",
    "SCHEMA",
    "SPARK_SCHEMA",
    "count_of",
    "line",
    "make_topic",
    "wait_until",
    "write_lines",
    "write_orders",
]

COLUMN_TYPES = "id bigint, customer int, item text, price double precision, quantity int, paid boolean, note text"
SPARK_SCHEMA = "id bigint, customer int, item string, price double, quantity int, paid boolean, note string"
SCHEMA = json.dumps(
    {
        "type": "struct",
        "name": "order",
        "fields": [
            {"field": "id", "type": "int64"},
            *(
                {"field": name, "type": kind, "optional": True}
                for name, kind in (
                    ("customer", "int32"),
                    ("item", "string"),
                    ("price", "double"),
                    ("quantity", "int32"),
                    ("paid", "boolean"),
                    ("note", "string"),
                )
            ),
        ],
    }
)
"""For `schema.content` of the JSON converter: values come without an envelope."""


def make_topic(bootstrap: str, name: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        future.result(30)


def count_of(bootstrap: str, topic: str, partitions: int = 1) -> int:
    """How many offsets a topic has used: transactions' markers count, too."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench-offsets"})
    try:
        return sum(consumer.get_watermark_offsets(TopicPartition(topic, one), 30)[1] for one in range(partitions))
    finally:
        consumer.close()


def write_orders(bootstrap: str, topic: str, count: int, partitions: int, first: int = 0) -> None:
    """Orders as JSON without schema, as many in each partition."""
    _write(
        bootstrap,
        topic,
        count,
        partitions,
        lambda n: (
            f'{{"id":{first + n},"customer":{n % 9973},"item":"item-{n % 997}","price":{n % 1000 / 4},'
            f'"quantity":{n % 17},"paid":{"true" if n % 2 else "false"},'
            f'"note":"order number {first + n} of some customer"}}'
        ),
    )


def write_lines(bootstrap: str, topic: str, count: int) -> None:
    """Lines of text, readable all at once."""
    _write(bootstrap, topic, count, 1, line)


def line(number: int) -> str:
    """About 100 bytes, as of a log."""
    moment = f"2026-11-18T12:00:00.{number % 1000:03d}Z"
    return f"{moment} INFO worker-{number % 7} handled request {number:010d} for customer {number % 9973} in 12 ms"


def _write(bootstrap: str, topic: str, count: int, partitions: int, value: Callable[[int], str]) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": uuid.uuid4().hex,
            "transaction.timeout.ms": 600_000,
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    producer.init_transactions(60)
    producer.begin_transaction()
    for start in range(0, count, 10_000):
        for partition in range(partitions):
            messages = [
                {"value": value(n)} for n in range(start, min(start + 10_000, count)) if n % partitions == partition
            ]
            while messages:
                try:
                    producer.produce_batch(topic, messages, partition=partition)
                except BufferError:
                    pass
                messages = [one for one in messages if "_error" in one]
                for one in messages:
                    del one["_error"]
                producer.poll(0.1 if messages else 0)
    producer.flush(600)
    producer.commit_transaction(60)


def wait_until(is_done: Callable[[], bool], what: str, timeout_s: float, pause_s: float = 0.05) -> float:
    """Wait; the time at which it was so."""
    deadline = time.monotonic() + timeout_s
    while not is_done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not come about within {timeout_s:g} s")
        time.sleep(pause_s)
    return time.monotonic()
