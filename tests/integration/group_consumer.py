"""A member of a group to be killed: prints the value of every record it gets, and commits after each batch.

Arguments: library (`librdkafka` or `kafka-python`), bootstrap servers, group, topic, assignor (`consumer` stands for
the consumer protocol, whose assignor is the broker's).
"""

from __future__ import annotations

import os
import signal
import sys
import threading

SESSION_MS = 1500
HEARTBEAT_MS = 300
stopping = threading.Event()


def say(values: list[str]) -> None:
    """At once, so that what is committed has been printed even by a process killed right then."""
    os.write(1, "".join(f"{value}\n" for value in values).encode())


def with_librdkafka(servers: str, group: str, topic: str, assignor: str) -> None:
    from confluent_kafka import Consumer

    settings: dict[str, str | int | bool] = {"group.protocol": "consumer"}
    if assignor != "consumer":
        settings = {
            "partition.assignment.strategy": assignor,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
        }
    common = {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**common, **settings, "enable.auto.commit": False, "log_level": 0})
    consumer.subscribe([topic])
    while not stopping.is_set():
        records = [one for one in consumer.consume(100, timeout=0.1) if one.error() is None]
        if records:
            say([bytes(one.value() or b"").decode() for one in records])
            consumer.commit(asynchronous=True)
    consumer.close()


def with_kafka_python(servers: str, group: str, topic: str, assignor: str) -> None:
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    assignors = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        partition_assignment_strategy=[assignors[assignor]],
    )
    while not stopping.is_set():
        # A poll that ends in the middle of a join makes kafka-python 3.0.12 forget to send heartbeats, for good.
        batches = consumer.poll(timeout_ms=5_000)
        for records in batches.values():
            say([one.value.decode() for one in records])
        if batches:
            consumer.commit_async()
    consumer.close()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    library, *arguments = sys.argv[1:]
    (with_librdkafka if library == "librdkafka" else with_kafka_python)(*arguments)
