"""A compacted topic in a running broker: older values vanish while clients go on."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.testing import Broker

START_MS = int(time.time() * 1000) - 1_000_000
COMPACTED = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001"}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"log.cleaner.backoff.ms": "50"}) as running:
        yield running


def read_all(bootstrap: str) -> list[tuple[int, bytes, bytes]]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.assign([TopicPartition("salaries", 0, 0)])
        found = []
        while (message := consumer.poll(10)) is not None and message.error() is None:
            found.append((message.offset(), message.key(), message.value()))
        return found
    finally:
        consumer.close()


def test_only_the_newest_salaries_stay(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for created in admin.create_topics([NewTopic("salaries", 1, 1, config=COMPACTED)]).values():
        created.result(30)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "compression.type": "zstd"})
    for number in range(6):
        for name in ("Mark", "Lucy", "Bob"):
            producer.produce("salaries", key=name, value=f"{number}", timestamp=START_MS + number * 1_000)
        producer.flush(30)
    # The last batch lies in the active segment, which is never cleaned, and so stays beside the one before it.
    expected = [
        (number * 3 + index, name, b"%d" % number)
        for number in (4, 5)
        for index, name in enumerate((b"Mark", b"Lucy", b"Bob"))
    ]
    deadline = time.monotonic() + 60
    while (found := read_all(broker.bootstrap_servers)) != expected:
        assert time.monotonic() < deadline, found
