"""A consumer to be run as a process of its own, so that it can be killed: prints every value it reads.

python group_member.py CLIENT BOOTSTRAP CLIENT_ID ASSIGNOR
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

SESSION_MS, HEARTBEAT_MS = 1500, 200


def librdkafka(bootstrap: str, client_id: str, assignor: str) -> tuple[Iterator[bytes | None], Callable[[], None]]:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "g",
            "client.id": client_id,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": assignor,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "log_level": 0,
        }
    )
    consumer.subscribe(["t"])

    def values() -> Iterator[bytes | None]:
        while True:
            message = consumer.poll(0.1)
            yield None if message is None or message.error() else message.value()

    return values(), consumer.close


def kafka_python(bootstrap: str, client_id: str, assignor: str) -> tuple[Iterator[bytes | None], Callable[[], None]]:
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors import cooperative_sticky, range, roundrobin
    from kafka.coordinator.assignors.sticky import sticky_assignor

    assignors: list[Any] = [
        getattr(module, name)
        for module in (range, roundrobin, sticky_assignor, cooperative_sticky)
        for name in dir(module)
        if getattr(getattr(module, name), "name", None) == assignor
    ]
    consumer = KafkaConsumer(
        "t",
        bootstrap_servers=bootstrap,
        group_id="g",
        client_id=client_id,
        auto_offset_reset="earliest",
        partition_assignment_strategy=assignors[:1],
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )

    def values() -> Iterator[bytes | None]:
        while True:
            yield None
            for records in consumer.poll(1000).values():
                for record in records:
                    yield record.value

    return values(), consumer.close


def main() -> None:
    client, bootstrap, client_id, assignor = sys.argv[1:]
    is_wanted = True

    def stop(*_: object) -> None:
        nonlocal is_wanted
        is_wanted = False

    signal.signal(signal.SIGTERM, stop)
    values, close = {"librdkafka": librdkafka, "kafka-python": kafka_python}[client](bootstrap, client_id, assignor)
    while is_wanted:
        value = next(values)
        if value is not None:
            sys.stdout.write(value.decode() + "\n")
            sys.stdout.flush()
    close()


if __name__ == "__main__":
    main()
