"""The producer: typed keys and values, a partitioner in Python, and failures that are never silent.

librdkafka does batching, retries, compression and idempotence. Transactions are in `client.transactions`.
Start at `Producer.send`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import finalize

from moldau.client.connection import Report, build, log_report, rendered_properties
from moldau.client.connection_log import ConnectionLog
from moldau.client.errors import ClientError, UnreachableError, client_error, noted_on
from moldau.client.partitioners import PartitionCounts, Partitioner, checked_partition
from moldau.client.records import Delivery, Headers, ProducerRecord
from moldau.client.serialization import PartWriter, without_serde_settings
from moldau.client.transactions import Transactions
from moldau.client.unsent_records import UnsentRecords, drop_records, end_producer
from moldau.client.waiting import GivenUpError, never, served
from moldau.serdes.serde import Serializer

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message
    from confluent_kafka import Producer as RdkafkaProducer

__all__ = ["OnDelivery", "Producer"]

K = TypeVar("K")
V = TypeVar("V")

OnDelivery = Callable[[ClientError | None, Delivery], None]
"""Called once per record, with the error or `None`, and where the record was stored (offset -1 if it was not)."""

DEFAULT_MAX_BLOCK_MS = 60_000
WAIT_SLICE_S = 0.1
INTERRUPTED_S = 1.0
"""How long unsent records may still be sent after Ctrl-C or an exit; without a broker they are dropped at once."""


class Producer(Generic[K, V]):
    """Sends records to topics.

        with Producer("localhost:9092", key_serializer=STRING, value_serializer=JSON) as producer:
            producer.send("payments", {"amount": 3}, key="alice")

    Leaving the `with` block waits until everything sent is acknowledged or has failed, and closes the producer. Ctrl-C
    ends every wait: records that are not sent within a second are then dropped, and their number is logged for each
    topic. May be shared by threads.

    servers: `host:port`, several with commas between; may be left out where `properties` has `bootstrap.servers`.
    properties: the Java producer's keys, with the Java producer's defaults (`acks=all`, idempotence, `linger.ms=5`).
        Values may be text, numbers or truth values. librdkafka's own keys pass too; keys neither knows are logged.
        `max.block.ms` bounds how long `send` waits for room in the buffer and for a topic's metadata.
    key_serializer, value_serializer: serdes such as `STRING`, `JSON` or `AvroSerde(schema)`, or serializers of
        `confluent_kafka`. Without one, the class named by the properties `key.serializer` and `value.serializer`
        counts, and without that `STRING`. Serdes with a schema use `schema.registry.url` of the properties.
    partitioner: chooses the partition of records sent without one; see `Partitioner`.
    on_delivery: called for each record whose `send` names no callback of its own.
    report: gets the level and text of the client's own log lines; by default they go to the logger `moldau.client`.

    Raises `InvalidConfigError` for invalid settings. Does not wait for the cluster.
    """

    def __init__(
        self,
        servers: str | None = None,
        properties: Mapping[str, object] | None = None,
        *,
        key_serializer: Serializer[K] | None = None,
        value_serializer: Serializer[V] | None = None,
        partitioner: Partitioner | None = None,
        on_delivery: OnDelivery | None = None,
        report: Report = log_report,
    ) -> None:
        from confluent_kafka import Producer as RdkafkaProducer

        given = rendered_properties(servers, properties)
        self._key: PartWriter[K] = PartWriter(key_serializer, given, "key")
        self._value: PartWriter[V] = PartWriter(value_serializer, given, "value")
        self._partitioner = partitioner
        self._on_delivery = on_delivery
        title = f"Producer clientId={given.get('client.id', 'producer-1')}"
        self._rdkafka, translated = build(
            RdkafkaProducer, "producer", without_serde_settings(given), report=report, title=title
        )
        self._max_block_s = int(translated.own.get("max.block.ms", DEFAULT_MAX_BLOCK_MS)) / 1000
        self._counts = PartitionCounts(self._rdkafka, self._max_block_s)
        self._failures: list[ClientError] = []
        self._lock = threading.Lock()
        self._unsent = UnsentRecords()
        end = partial(
            _end_soon, self._rdkafka, self._unsent, ConnectionLog.to(report), report, given["bootstrap.servers"]
        )
        # Runs once: when the producer is closed, else when it is garbage-collected or the program exits.
        self._end = finalize(self, _unless_forked(end))
        self.transactions = Transactions(self._rdkafka, self.flush, self._discard_failures, self._max_block_s)
        """Present in every producer, but usable only with a `transactional.id`."""

    # Sending

    def send(
        self,
        topic: str,
        value: V | None,
        *,
        key: K | None = None,
        partition: int | None = None,
        headers: Mapping[str, bytes | None] | Iterable[tuple[str, bytes | None]] = (),
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> None:
        """Enqueue a record and return; it is sent with the next batch.

        `on_delivery` is called when the record is stored or has failed for good, from inside a later `send`, `poll` or
        `flush` of any thread; it must not raise. Without a callback, a failure is raised by the next
        `flush`.

        Waits only while the buffer is full or, with a partitioner, until the topic is known; no longer than
        `max.block.ms`, then `UnreachableError` is raised. Raises `SerializationError` for a key or value the serializer
        rejects, `SchemaRegistryError` where a registry cannot be reached or rejects the schema, and `ClientError` for a
        record that cannot be sent at all, for example when the producer is closed; in all cases nothing was sent.
        """
        pairs: Headers = tuple(headers.items()) if isinstance(headers, Mapping) else tuple(headers)
        key_bytes = self._key.write(topic, key, pairs)
        value_bytes = self._value.write(topic, value, pairs)
        if partition is not None:
            target = partition
        elif self._partitioner is not None:
            count = self._counts.of(topic)
            target = checked_partition(
                topic, self._partitioner(topic, key, key_bytes, value, value_bytes, count), count
            )
        else:
            target = -1
        self._hand_over(
            topic,
            {"value": value_bytes, "key": key_bytes, "partition": target}
            | ({"headers": list(pairs)} if pairs else {})
            | ({"timestamp": timestamp_ms} if timestamp_ms is not None else {}),
            on_delivery or self._on_delivery or self._remember_failure,
        )

    def send_record(self, record: ProducerRecord[K, V], *, on_delivery: OnDelivery | None = None) -> None:
        """`send` for a `ProducerRecord`."""
        self.send(
            record.topic,
            record.value,
            key=record.key,
            partition=record.partition,
            headers=record.headers,
            timestamp_ms=record.timestamp_ms,
            on_delivery=on_delivery,
        )

    def send_and_wait(
        self,
        topic: str,
        value: V | None,
        *,
        key: K | None = None,
        partition: int | None = None,
        headers: Mapping[str, bytes | None] | Iterable[tuple[str, bytes | None]] = (),
        timestamp_ms: int | None = None,
        is_over: Callable[[], bool] = never,
    ) -> Delivery:
        """Send one record and wait until it is stored; raises the error where it is not.

        Each call costs a round trip: for many records, `send` them all and `flush` once. When `is_over()` becomes true
        the wait ends with `GivenUpError`; whether the record will be stored is then unknown.
        """
        outcome: list[tuple[ClientError | None, Delivery]] = []
        self.send(
            topic,
            value,
            key=key,
            partition=partition,
            headers=headers,
            timestamp_ms=timestamp_ms,
            on_delivery=lambda error, delivery: outcome.append((error, delivery)),
        )
        # librdkafka fails every record after delivery.timeout.ms at the latest, so this ends. Flushing skips linger.ms.
        while not outcome:
            self._poll_rdkafka(self._rdkafka.flush, WAIT_SLICE_S)
            if not outcome and is_over():
                raise GivenUpError(f"Topic {topic}: the program ended before the record was acknowledged")
        error, delivery = outcome[0]
        if error is not None:
            raise error
        return delivery

    # Waiting

    def poll(self, timeout_s: float = 0.0) -> None:
        """Run delivery callbacks; call it from time to time in an application that pauses between sends."""
        self._poll_rdkafka(self._rdkafka.poll, timeout_s)

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until all records sent so far are stored or have failed.

        Raises the first failure that was not passed to a callback, and `UnreachableError` when records are still
        unacknowledged after `timeout_s`. Without a timeout, `delivery.timeout.ms` is what ends the wait.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        # In slices, so that Ctrl-C works.
        while left := self._poll_rdkafka(self._rdkafka.flush, _slice_s(deadline)):
            if deadline is not None and time.monotonic() >= deadline:
                raise UnreachableError(f"{left} records were not acknowledged within {timeout_s} s")
        self._raise_failures()

    def close(self) -> None:
        """Flush and close the client: nothing can be sent afterwards. May be called again.

        Raises what `flush` raises. Ctrl-C ends the wait: what is not sent within a second is dropped, and logged.
        """
        try:
            if self._end.alive:
                self.flush()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close soon: what is not sent within a second, or at once where no broker answers, is dropped, and logged."""
        self._end()

    def __enter__(self) -> Producer[K, V]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, Exception):
            # Ctrl-C or an exit: the program ends without waiting for the broker.
            self.abandon()
            return
        with noted_on(error, "closing the producer"):
            if error is not None:
                self.transactions.abort_if_open()
            # Records sent before the error are still delivered.
            self.close()

    # Internals

    def _hand_over(self, topic: str, fields: dict[str, Any], on_delivery: OnDelivery) -> None:
        from confluent_kafka import KafkaError, KafkaException

        self._check_open()
        deadline = time.monotonic() + self._max_block_s
        callback = _rdkafka_callback(on_delivery, self._unsent)
        while True:
            try:
                self._rdkafka.produce(topic, on_delivery=callback, **fields)
                break
            except BufferError:
                if time.monotonic() >= deadline:
                    raise UnreachableError(
                        f"Topic {topic}: the buffer stayed full for {self._max_block_s:g} s (max.block.ms)"
                    ) from None
                self._poll_rdkafka(self._rdkafka.poll, WAIT_SLICE_S)
            except KafkaException as error:
                refusal = client_error(error.args[0], about=f"Topic {topic}")
                # Inside a transaction this state means that an earlier record has failed.
                is_spoilt = self.transactions.is_open and error.args[0].code() == KafkaError._STATE
                refusal.requires_abort = refusal.requires_abort or is_spoilt
                raise refusal from None
            except RuntimeError:
                self._check_open()
                raise
        self._poll_rdkafka(self._rdkafka.poll, 0.0)

    def _check_open(self) -> None:
        if not self._end.alive:
            raise ClientError("the producer is closed")

    def _poll_rdkafka(self, call: Callable[[float], int], timeout_s: float) -> int:
        """Call librdkafka, which runs callbacks inside; raises where the producer has failed fatally."""
        from confluent_kafka import KafkaException

        self._check_open()
        try:
            return served(call, timeout_s)
        except KafkaException as error:
            raise client_error(error.args[0]) from None
        except RuntimeError:
            # Raised by the binding where another thread has closed the producer meanwhile.
            self._check_open()
            raise

    def _remember_failure(self, error: ClientError | None, delivery: Delivery) -> None:
        if error is not None:
            with self._lock:
                self._failures.append(error)

    def _discard_failures(self) -> None:
        """Drop the failures of an aborted transaction: its records are not expected to be stored."""
        drop_records(self._rdkafka)
        self._unsent.clear()
        with self._lock:
            self._failures.clear()

    def _raise_failures(self) -> None:
        with self._lock:
            failures, self._failures = self._failures, []
        if failures:
            if len(failures) > 1:
                failures[0].add_note(f"and {len(failures) - 1} more records failed")
            raise failures[0]


def _slice_s(deadline: float | None) -> float:
    return WAIT_SLICE_S if deadline is None else max(0.0, min(WAIT_SLICE_S, deadline - time.monotonic()))


def _unless_forked(end: Callable[[], None]) -> Callable[[], None]:
    """A forked process has a copy of the producer, but not its threads, so it must not close it."""
    owner = os.getpid()
    return lambda: end() if os.getpid() == owner else None


def _end_soon(
    rdkafka: RdkafkaProducer, unsent: UnsentRecords, log: ConnectionLog, report: Report, servers: str
) -> None:
    """Close a producer within moments and log the dropped records. Not a method, so as not to keep it alive."""
    end_producer(rdkafka, 0.0 if log.is_cut_off else INTERRUPTED_S)
    for line in unsent.drain_lines(servers):
        report("WARN", line)


def _rdkafka_callback(on_delivery: OnDelivery, unsent: UnsentRecords) -> Callable[[KafkaError | None, Message], None]:
    def on_report(error: KafkaError | None, message: Message) -> None:
        topic, partition = message.topic() or "", message.partition()
        place = -1 if partition is None else partition
        if error is not None:
            unsent.notes(error, topic)
            on_delivery(client_error(error, about=f"Topic {topic}"), Delivery(topic, place, -1, -1))
            return
        offset, (_, timestamp_ms) = message.offset(), message.timestamp()
        on_delivery(None, Delivery(topic, place, -1 if offset is None else offset, timestamp_ms))

    return on_report
