"""A client that takes notes, to be killed by `random_history`: a transactional writer, a plain one, or a reader.

Arguments: role, name, bootstrap servers, the file for the notes. A note is appended with one system call, before a step
and after it, so that a kill loses at most what was not known yet.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from moldau.client import STRING, ClientError, Consumer, Delivery, FencedError, Producer, TopicPartition
from moldau.testing.history import Outcome

__all__ = ["FENCED", "PARTITIONS", "TOPICS", "Notes"]

TOPICS, PARTITIONS = ("left", "right"), 2
FENCED = 3
IMPATIENT = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100, "retry.backoff.ms": 10}
stopping = threading.Event()


class Notes:
    """Appends calls of `History`'s methods to a file, for `History.replay`."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def take(self, method: str, *arguments: object, **options: object) -> None:
        os.write(self._file, json.dumps([method, arguments, options]).encode() + b"\n")


class AbortedOnPurposeError(Exception):
    """A transaction that its writer did not want after all."""


class Writer:
    """Sends unique values to random partitions."""

    def __init__(self, name: str, notes: Notes, producer: Producer[str, str]) -> None:
        # Each life is a producer of its own: its predecessor's last words are nothing it can answer for.
        self.name = f"{name}.{os.getpid()}"
        self.notes = notes
        self.producer = producer
        self.chance = random.Random()
        self._count = 0

    def send(self, transaction: int | None = None) -> None:
        topic, partition = self.chance.choice(TOPICS), self.chance.randrange(PARTITIONS)
        value = f"{self.name}:{self._count}"
        self._count += 1
        self.notes.take("sent", self.name, topic, partition, value, transaction=transaction)
        self.producer.send(topic, value, partition=partition, on_delivery=self._delivered(value))

    def _delivered(self, value: str) -> Callable[[ClientError | None, Delivery], None]:
        def told(error: ClientError | None, delivery: Delivery) -> None:
            if error is None:
                self.notes.take("acknowledged", self.name, value, offset=delivery.offset)

        return told


def write_plain(servers: str, name: str, notes: Notes) -> None:
    with Producer(servers, IMPATIENT, value_serializer=STRING) as producer:
        writer = Writer(name, notes, producer)
        while not stopping.wait(0.01):
            for _ in range(writer.chance.randrange(1, 10)):
                writer.send()
            producer.flush()


def write_transactions(servers: str, name: str, notes: Notes) -> None:
    properties = {**IMPATIENT, "transactional.id": name, "transaction.timeout.ms": 10_000}
    producer: Producer[str, str] = Producer(servers, properties, value_serializer=STRING)
    producer.transactions.start()
    writer, number = Writer(name, notes, producer), 0
    while not stopping.wait(0.01):
        number += 1
        notes.take("ended", writer.name, number, _outcome_of_one(writer, number))
    producer.close()


def _outcome_of_one(writer: Writer, number: int) -> Outcome:
    try:
        with writer.producer.transactions.begin():
            for _ in range(writer.chance.randrange(1, 8)):
                writer.send(number)
            if writer.chance.random() < 0.5:
                writer.producer.flush()
            if writer.chance.random() < 0.3:
                raise AbortedOnPurposeError
    except AbortedOnPurposeError:
        return Outcome.ABORTED
    except ClientError as error:
        if not error.requires_abort:
            raise
        print(f"{writer.name}: {error}", flush=True)
        return Outcome.ABORTED
    return Outcome.COMMITTED


def read(servers: str, name: str, notes: Notes, isolation: str) -> None:
    """From the beginning, in every life anew."""
    name = f"{name}.{os.getpid()}"
    places = [TopicPartition(topic, partition) for topic in TOPICS for partition in range(PARTITIONS)]
    properties = {**IMPATIENT, "isolation.level": isolation, "auto.offset.reset": "earliest"}
    is_committed = isolation == "read_committed"
    consumer: Consumer[str, str] = Consumer(servers, properties, value_deserializer=STRING)
    with consumer:
        consumer.assign(dict.fromkeys(places, 0))
        while not stopping.is_set():
            for record in consumer.poll_batch(500, 0.1):
                notes.take(
                    *("read", name, record.topic, record.partition),
                    offset=record.offset,
                    value=record.value,
                    is_committed=is_committed,
                )


def main() -> int:
    role, name, servers, path = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    notes = Notes(Path(path))
    try:
        if role == "transactions":
            write_transactions(servers, name, notes)
        elif role == "plain":
            write_plain(servers, name, notes)
        else:
            read(servers, name, notes, isolation=role)
    except FencedError as error:
        print(f"{name}: {error}", flush=True)
        return FENCED
    return 0


if __name__ == "__main__":
    sys.exit(main())
