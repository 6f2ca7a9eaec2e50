"""The topic behind a `TopicLog`: created where it is missing, checked, read and written with librdkafka.

A topic with a `transactional_id` is exclusive: each new writer fences the one before, every write is a transaction, and
readers see only committed records. Without one, writers are idempotent and may write concurrently: the service elects
the one that does. A topic is compacted where the last record of a key is all that counts, and kept whole where the
order of all records does. Start at `StateTopic`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from moldau.client.admin import Admin
from moldau.client.connection import build
from moldau.client.coordination.outages import Outage, report_to
from moldau.client.coordination.topic_log import (
    LogReader,
    LogRecord,
    LogWrite,
    LogWriter,
    Offsets,
    ReadBatch,
    RecordTooLargeError,
    TopicFacts,
    TopicLogError,
    TopicLogTimeoutError,
    WriteOutcome,
)
from moldau.client.errors import ClientError, FencedError, UnreachableError, client_error
from moldau.client.transactions import Transactions
from moldau.core.errors import ErrorCode, StartupError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, Producer

__all__ = ["StateTopic"]

RETRY_S: Final = 0.2
QUESTION_MS: Final = 5000
"""How long one request to the brokers may take."""
DELIVERY_POLL_S: Final = 0.2
READ_AT_ONCE: Final = 500
MAX_RECORD_BYTES: Final = 1024 * 1024
"""The Java producer's default `max.request.size`, just below what brokers accept."""
RECORD_OVERHEAD_BYTES: Final = 1024
BY_KEY: Final = -1
"""librdkafka's value for "choose the partition by key"."""


@dataclass(frozen=True, kw_only=True)
class StateTopic:
    name: str
    servers: str
    client_id: str
    """Identifies the service in the brokers' logs and in ours."""
    logger: logging.Logger
    timeout_ms: int
    """How long one write may take."""
    partitions: int = 1
    """Used when the topic is created. 1 means that the order of all records matters: then it may not have more."""
    replication_factor: int = 3
    """Replicas of a new topic; fewer where there are fewer brokers."""
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Security settings of every client, by Java's names."""
    transactional_id: str | None = None
    is_compacted: bool = True
    """Whether the last record of each key is all that counts; else no record is ever deleted."""

    holds_transactions: bool = False
    """Whether others write it in transactions: only what they have committed is read."""

    @property
    def is_exclusive(self) -> bool:
        return self.transactional_id is not None

    @property
    def _needed_configs(self) -> Mapping[str, str]:
        return (
            {"cleanup.policy": "compact"} if self.is_compacted else {"cleanup.policy": "delete", "retention.ms": "-1"}
        )

    # Before the start

    def prepare(self, deadline: float, is_stopping: Callable[[], bool]) -> TopicFacts:
        timeout_ms = max(1, min(QUESTION_MS, round(1000 * (deadline - time.monotonic()))))
        properties = {**self.properties, "client.id": self.client_id}
        admin = Admin(self.servers, properties, timeout_ms=timeout_ms, is_over=is_stopping)
        outage = Outage(f"topic {self.name} at {self.servers}")
        while True:
            try:
                if self.name not in admin.topic_names():
                    self._create(admin)
                facts = TopicFacts(admin.describe_cluster().cluster_id, self._checked_partitions(admin))
            except ClientError as error:
                if is_stopping() or time.monotonic() > deadline:
                    raise StartupError(f"topic {self.name} at {self.servers}: {error}") from None
                if not isinstance(error, UnreachableError):  # `log_while_waiting` logs that no broker answers
                    self._log(outage.failure_line(str(error), time.monotonic()))
                time.sleep(RETRY_S)
            else:
                self._log(outage.recovery_line(time.monotonic()))
                return facts

    def _create(self, admin: Admin) -> None:
        replicas = min(self.replication_factor, admin.broker_count())
        if replicas < self.replication_factor:
            wanted = self.replication_factor
            self.logger.warning(
                "topic %s is created with %d of %d replicas: there are no more brokers", self.name, replicas, wanted
            )
        configs = dict(self._needed_configs)
        try:
            admin.create_topic(self.name, partitions=self.partitions, replication_factor=replicas, configs=configs)
        except ClientError as error:
            if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    def _checked_partitions(self, admin: Admin) -> int:
        partitions = len(admin.describe_topics([self.name])[0].partitions)
        if self.partitions == 1 and partitions != 1:
            raise StartupError(
                f"topic {self.name} has {partitions} partitions; the order of its records counts, so it must have one"
            )
        entries = admin.describe_configs("topic", [self.name])[self.name]
        for name, needed in self._needed_configs.items():
            found = next((entry.value for entry in entries if entry.name == name), None)
            if found != needed:
                raise StartupError(
                    f"topic {self.name} has {name}={found}, which would delete records that still count; change that "
                    f"with: kafka-configs --alter --entity-type topics --entity-name {self.name} "
                    f"--add-config {name}={needed}"
                )
        return partitions

    def _log(self, line: str | None) -> None:
        if line is not None:
            self.logger.warning("%s", line)

    # Clients

    def open_reader(self, positions: Offsets) -> LogReader:
        from confluent_kafka import Consumer, TopicPartition

        properties = {
            **self.properties,
            "bootstrap.servers": self.servers,
            "client.id": f"{self.client_id}-reader",
            "group.id": f"{self.client_id}-reader",  # librdkafka requires one; nothing is ever committed
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": "true",
            "allow.auto.create.topics": "false",
            "isolation.level": "read_committed" if self.is_exclusive or self.holds_transactions else "read_uncommitted",
        }
        title = f"{self.client_id} reader"
        consumer: Consumer
        consumer, _ = build(Consumer, "consumer", properties, report=report_to(self.logger), title=title)
        consumer.assign([TopicPartition(self.name, partition, offset) for partition, offset in positions.items()])
        return _Reader(consumer, self.name, tuple(positions))

    def open_writer(self) -> LogWriter:
        from confluent_kafka import Producer

        properties = {
            **self.properties,
            "bootstrap.servers": self.servers,
            "client.id": f"{self.client_id}-writer",
            "acks": "all",
            "enable.idempotence": "true",
            "linger.ms": "0",
            "max.request.size": str(MAX_RECORD_BYTES),
            "delivery.timeout.ms": str(self.timeout_ms),
            "request.timeout.ms": str(self.timeout_ms),
            **({"transactional.id": self.transactional_id} if self.transactional_id is not None else {}),
        }
        title = f"{self.client_id} writer"
        producer: Producer
        producer, _ = build(Producer, "producer", properties, report=report_to(self.logger), title=title)
        if self.transactional_id is None:
            return _IdempotentWriter(producer, self.name)
        return _TransactionalWriter(producer, self.name, self.timeout_ms / 1000)


class _Reader:
    def __init__(self, consumer: Consumer, topic: str, partitions: Sequence[int]) -> None:
        self._consumer = consumer
        self._topic = topic
        self._partitions = partitions

    def end_offsets(self) -> Offsets:
        from confluent_kafka import OFFSET_END, KafkaException, TopicPartition

        # One request for all partitions: on the reader's connection each waits behind the fetch that is parked there.
        places = [TopicPartition(self._topic, partition, OFFSET_END) for partition in self._partitions]
        try:
            found = self._consumer.offsets_for_times(places, timeout=QUESTION_MS / 1000)
        except KafkaException as error:
            raise client_error(error.args[0], about=f"topic {self._topic}") from None
        for place in found:
            if place.error is not None:
                raise client_error(place.error, about=f"topic {self._topic}")
        return {place.partition: place.offset for place in found}

    def read(self, timeout_s: float) -> ReadBatch | None:
        from confluent_kafka import KafkaError, KafkaException

        try:
            first = self._consumer.poll(timeout_s)
            others = [] if first is None else self._consumer.consume(READ_AT_ONCE, 0)
        except KafkaException as error:
            raise client_error(error.args[0], about=f"topic {self._topic}") from None
        if first is None:
            return None
        records: list[LogRecord] = []
        positions: dict[int, int] = {}
        at_end: set[int] = set()
        for message in (first, *others):
            refusal, partition, offset = message.error(), message.partition(), message.offset()
            if refusal is None and partition is not None and offset is not None:
                records.append(_record(message, partition, offset))
                positions[partition] = offset + 1
            elif refusal is not None and refusal.code() == KafkaError._PARTITION_EOF and partition is not None:
                at_end.add(partition)
                if offset is not None and offset >= 0:
                    positions[partition] = offset
            elif refusal is not None:
                failure = client_error(refusal, about=f"topic {self._topic}")
                if not isinstance(failure, UnreachableError):  # reading resumes by itself when the broker is back
                    raise failure
        return ReadBatch(records, positions, frozenset(at_end))

    def close(self) -> None:
        self._consumer.close()


def _record(message: Message, partition: int, offset: int) -> LogRecord:
    kind, timestamp_ms = message.timestamp()
    key, value = message.key(), message.value()
    return LogRecord(partition, offset, _bytes(key), _bytes(value), timestamp_ms if kind else None)


def _bytes(content: str | bytes | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content


class _Writer:
    """Common to both kinds of writers: pass records to librdkafka, and wait for delivery reports."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self.is_usable = True

    def serve(self) -> None:
        try:
            self._poll(0)
        except ClientError:
            self.is_usable = False  # the next write reports it

    def close(self, timeout_s: float) -> None:
        from confluent_kafka import KafkaException

        try:
            self._producer.flush(timeout_s)
        except KafkaException:
            pass  # fenced, or failed otherwise: nothing is left to send

    def _poll(self, timeout_s: float) -> None:
        """Process delivery reports; raises where this producer has failed fatally."""
        from confluent_kafka import KafkaException

        try:
            self._producer.poll(timeout_s)
        except KafkaException as error:
            error.__traceback__ = None  # see `_TransactionalWriter.write`
            raise client_error(error.args[0], about=f"topic {self._topic}") from None


class _IdempotentWriter(_Writer):
    def write(self, groups: Sequence[Sequence[LogWrite]], is_over: Callable[[], bool]) -> Sequence[WriteOutcome]:
        deliveries = [_Deliveries() for _ in groups]
        for group, delivery in zip(groups, deliveries, strict=True):
            delivery.failure = _too_large(group)
            if delivery.failure is None:
                delivery.send(self._producer, self._topic, group)
        try:
            while any(delivery.awaited for delivery in deliveries) and not is_over():
                self._poll(DELIVERY_POLL_S)
        except ClientError as error:
            self.is_usable = False
            return [delivery.failure or TopicLogError(str(error)) for delivery in deliveries]
        self.is_usable = not any(delivery.is_fatal for delivery in deliveries)
        return [delivery.outcome() for delivery in deliveries]


class _TransactionalWriter(_Writer):
    """All groups of one call are one transaction: all are stored, or none."""

    def __init__(self, producer: Producer, topic: str, timeout_s: float) -> None:
        """Takes over the transactional id: its previous owner is fenced, and its open transaction aborted."""
        super().__init__(producer, topic)
        self._deliveries: list[_Deliveries] = []
        self._transactions = Transactions(producer, self._flush, lambda: None, timeout_s)
        self._transactions.start()

    def write(self, groups: Sequence[Sequence[LogWrite]], is_over: Callable[[], bool]) -> Sequence[WriteOutcome]:
        refusals = [_too_large(group) for group in groups]
        self._deliveries = deliveries = [_Deliveries() for _ in groups]
        try:
            with self._transactions.begin():
                for group, delivery, refusal in zip(groups, deliveries, refusals, strict=True):
                    if refusal is None:
                        delivery.send(self._producer, self._topic, group)
        except ClientError as error:
            # If abort is called while an exception is handled, the binding leaks that exception and everything its
            # traceback refers to, such as this writer's client.
            error.__traceback__ = None
            # If the transaction cannot be aborted, its outcome is unknown: only a new writer can find out.
            self.is_usable = error.requires_abort and not any(delivery.is_fatal for delivery in deliveries)
            if isinstance(error, FencedError):
                return [FencedError(str(error), error.error_code) for _ in groups]
            failure = TopicLogError(f"The transaction failed: {error}")
            failures = zip(refusals, deliveries, strict=True)
            return [refusal or delivery.failure or failure for refusal, delivery in failures]
        return [refusal or delivery.outcome() for refusal, delivery in zip(refusals, deliveries, strict=True)]

    def _flush(self) -> None:
        while any(delivery.awaited for delivery in self._deliveries):
            self._poll(DELIVERY_POLL_S)
        for delivery in self._deliveries:
            if delivery.failure is not None:
                raise delivery.failure


class _Deliveries:
    """Delivery reports of the records of one group."""

    def __init__(self) -> None:
        self.awaited = 0
        self.offsets: dict[int, int] = {}
        self.failure: ClientError | None = None
        self.is_fatal = False

    def send(self, producer: Producer, topic: str, group: Sequence[LogWrite]) -> None:
        from confluent_kafka import KafkaException

        for write in group:
            partition = BY_KEY if write.partition is None else write.partition
            self.awaited += 1
            try:
                producer.produce(topic, write.value, write.key, partition, on_delivery=self._on_delivery)
            except KafkaException as error:
                self.awaited -= 1
                self._fail(error.args[0])
                return
            except BufferError:
                self.awaited -= 1
                self.failure = TopicLogError("The topic could not be written: too many writes are waiting")
                return

    def outcome(self) -> WriteOutcome:
        if self.failure is not None:
            return self.failure
        if self.awaited:
            return TopicLogError(
                "The log was stopped before the brokers answered; the write may or may not have succeeded"
            )
        return self.offsets

    def _on_delivery(self, error: Any, message: Any) -> None:
        self.awaited -= 1
        if error is not None:
            self._fail(error)
        elif message.offset() > self.offsets.get(message.partition(), -1):
            self.offsets[message.partition()] = message.offset()

    def _fail(self, error: Any) -> None:
        self.is_fatal = self.is_fatal or error.fatal()
        name, text = error.name(), error.str()
        translated = client_error(error)
        if isinstance(translated, FencedError):
            self.failure = translated
        elif "MSG_SIZE_TOO_LARGE" in name or "RECORD_LIST_TOO_LARGE" in name:
            self.failure = RecordTooLargeError(f"The record is larger than the topic accepts: {text}")
        elif "TIMED_OUT" in name:
            self.failure = TopicLogTimeoutError(f"The topic could not be written in time: {text}")
        else:
            self.failure = TopicLogError(f"The topic could not be written: {text}")


def _too_large(group: Sequence[LogWrite]) -> RecordTooLargeError | None:
    largest = max(len(write.key or b"") + len(write.value or b"") for write in group)
    most = MAX_RECORD_BYTES - RECORD_OVERHEAD_BYTES
    return RecordTooLargeError(f"The record has {largest} bytes; the topic takes {most}") if largest > most else None
