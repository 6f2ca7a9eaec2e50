"""A producer that writes one transaction after another, commits most and aborts some, and knows what became of each.

What is promised: a committed transaction is there whole, once, and in order; an aborted one is not there at all; one
of which the producer did not hear is one or the other, on all partitions. Start at `TransactionWriter`.
"""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from enum import Enum

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

__all__ = ["Outcome", "TransactionWriter", "broken_transactions"]

RECORDS = 4
"""Records of a transaction on each partition."""
WAIT_S = 30.0


class Outcome(Enum):
    COMMITTED = 1
    ABORTED = 2
    UNKNOWN = 3


class TransactionWriter:
    def __init__(self, bootstrap: str, topic: str, partitions: int, *, seed: int) -> None:
        self.topic = topic
        self.partitions = partitions
        self.outcomes: list[Outcome] = []
        """By the transactions' numbers."""
        self.acknowledged_count = 0
        self.fatal_errors: list[str] = []
        """Errors after which a new producer took over, as an application would do."""
        self._chance = random.Random(seed)
        self._settings = {
            "bootstrap.servers": bootstrap,
            "transactional.id": f"writer-of-{topic}",
            "transaction.timeout.ms": 60_000,
            "reconnect.backoff.ms": 5,
            "reconnect.backoff.max.ms": 100,
            "retry.backoff.ms": 10,
            "retry.backoff.max.ms": 100,
            "linger.ms": 1,
            "request.timeout.ms": 4000,
            "topic.metadata.refresh.interval.ms": 1000,
            "log_level": 0,
        }
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"transactions-{topic}")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    finish = stop

    def _run(self) -> None:
        producer: Producer | None = None
        while not self._stop.wait(0.002):
            try:
                producer = producer or self._new_producer()
                self.outcomes.append(Outcome.UNKNOWN)
                self.outcomes[-1] = self._transact(producer, len(self.outcomes) - 1)
                if self.outcomes[-1] is Outcome.COMMITTED:
                    self.acknowledged_count += RECORDS * self.partitions
            except KafkaException as error:
                self.fatal_errors.append(str(error.args[0]))
                producer = None

    def _new_producer(self) -> Producer:
        """One that has ended what its predecessor left open."""
        producer = Producer(self._settings, error_cb=lambda _error: None)
        _insist(lambda: producer.init_transactions(WAIT_S))
        return producer

    def _transact(self, producer: Producer, number: int) -> Outcome:
        producer.begin_transaction()
        try:
            for place in range(RECORDS):
                for partition in range(self.partitions):
                    producer.produce(self.topic, b"%d %d" % (number, place), partition=partition)
            if self._chance.random() < 0.2:
                producer.flush(self._chance.choice((0.0, 0.05)))
                _insist(lambda: producer.abort_transaction(WAIT_S))
                return Outcome.ABORTED
            _insist(lambda: producer.commit_transaction(WAIT_S))
            return Outcome.COMMITTED
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            _insist(lambda: producer.abort_transaction(WAIT_S))
            return Outcome.ABORTED


def _insist(call: Callable[[], object]) -> None:
    """As the client's documentation asks: what may be repeated is repeated."""
    deadline = time.monotonic() + 4 * WAIT_S
    while True:
        try:
            call()
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise
        else:
            return


def broken_transactions(bootstrap: str, writer: TransactionWriter) -> list[str]:
    """What a reader of committed records sees, compared with what the producer was told."""
    problems: list[str] = []
    seen: dict[int, int] = defaultdict(int)
    for partition in range(writer.partitions):
        where = f"{writer.topic}-{partition}"
        read = _read_committed(bootstrap, writer.topic, partition)
        if read != sorted(set(read)):
            problems.append(f"{where}: records are out of order or there twice")
        for number, _ in read:
            seen[number] += 1
    whole = RECORDS * writer.partitions
    for number, outcome in enumerate(writer.outcomes):
        allowed = {Outcome.COMMITTED: (whole,), Outcome.ABORTED: (0,), Outcome.UNKNOWN: (0, whole)}[outcome]
        if seen[number] not in allowed:
            problems.append(
                f"{writer.topic}: transaction {number} is {outcome.name}, {seen[number]} of {whole} records are there"
            )
    return problems[:10]


def _read_committed(bootstrap: str, topic: str, partition: int) -> list[tuple[int, int]]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "transactions",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    found: list[tuple[int, int]] = []
    place = TopicPartition(topic, partition)
    try:
        _, high = consumer.get_watermark_offsets(place, timeout=30)
        consumer.assign([TopicPartition(topic, partition, 0)])
        deadline = time.monotonic() + 90
        while consumer.position([place])[0].offset < high and time.monotonic() < deadline:
            for message in consumer.consume(1000, timeout=0.2):
                error = message.error()
                if error is None:
                    number, inside = (message.value() or b"").split()
                    found.append((int(number), int(inside)))
                elif error.code() == KafkaError._PARTITION_EOF and message.offset() >= high:
                    return found
    finally:
        consumer.close()
    return found
