"""Consume, process, produce: in transactions, so that every input has its effect exactly once.

The consumed offsets are committed by the transaction that holds the outputs. Whatever ends it early (a crash, a
rebalance, an error) undoes both, and the input is read again. Readers of the outputs need
`isolation.level=read_committed`. Start at `ExactlyOnce.run`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, TypeVar

from moldau.client.connection import Report, log_report
from moldau.client.consumer import Consumer
from moldau.client.errors import ClientError, noted_on
from moldau.client.producer import Producer
from moldau.client.rebalancing import RebalanceListener
from moldau.client.records import ProducerRecord, Record
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.serdes.serde import Deserializer, Serializer

__all__ = ["ExactlyOnce"]

KIn = TypeVar("KIn")
VIn = TypeVar("VIn")
KOut = TypeVar("KOut")
VOut = TypeVar("VOut")

INTERRUPTED_S = 1.0

logger = logging.getLogger("moldau.client")

_PERMANENT = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
"""Errors that a retry would run into again."""


class ExactlyOnce(Generic[KIn, VIn, KOut, VOut]):
    """Reads topics, turns each record into others, and sends those, exactly once.

        def shout(record):
            yield ProducerRecord(topic="loud", key=record.key, value=record.value.upper())

        with ExactlyOnce(shout, ["quiet"], group="shouting", transactional_id="shouting-1",
                         servers="localhost:9092") as shouting:
            shouting.run()

    process: returns the records to send for one record read; a generator, a list, or nothing. It must have no effect of
        its own, since a record may be processed again after an abort. An exception aborts the transaction and ends
        `run`, as a record does that cannot be deserialized.
    topics, group: what to read, and the group that shares the work.
    transactional_id: names this instance, and stays the same when it restarts: the new one fences the old one and
        aborts what it left open. Instances that run at the same time need different ids.
    on_error: if given, is called with the record and the exception instead of ending `run`: what it returns (for
        example a dead letter) is sent with the transaction.
    consumer_properties, producer_properties: Java's keys, as for `Consumer` and `Producer`, on top of `properties`.
        `transaction.timeout.ms` must leave time for processing one batch.
    max_records: the most records in one transaction. More give throughput, fewer give latency.

    Rebalances are safe: no transaction is open while they happen, and one whose partitions were taken away (a stall,
    a lost session) is refused by the coordinator and aborted.
    """

    def __init__(
        self,
        process: Callable[[Record[KIn, VIn]], Iterable[ProducerRecord[KOut, VOut]] | None],
        topics: Sequence[str],
        *,
        group: str,
        transactional_id: str,
        servers: str | None = None,
        properties: Mapping[str, object] | None = None,
        consumer_properties: Mapping[str, object] | None = None,
        producer_properties: Mapping[str, object] | None = None,
        key_deserializer: Deserializer[KIn] | None = None,
        value_deserializer: Deserializer[VIn] | None = None,
        key_serializer: Serializer[KOut] | None = None,
        value_serializer: Serializer[VOut] | None = None,
        on_error: Callable[[Record[KIn, VIn], Exception], Iterable[ProducerRecord[KOut, VOut]]] | None = None,
        listener: RebalanceListener | None = None,
        max_records: int = 500,
        report: Report = log_report,
    ) -> None:
        self._process = process
        self._on_error = on_error
        self._max_records = max_records
        self._stopping = threading.Event()
        self.producer: Producer[KOut, VOut] = Producer(
            servers,
            {**(properties or {}), **(producer_properties or {}), "transactional.id": transactional_id},
            key_serializer=key_serializer,
            value_serializer=value_serializer,
            report=report,
        )
        self.consumer: Consumer[KIn, VIn] = Consumer(
            servers,
            {
                "auto.offset.reset": "earliest",
                **(properties or {}),
                **(consumer_properties or {}),
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            },
            group=group,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            report=report,
        )
        self._topics = list(topics)
        self._listener = listener
        self._is_started = False

    def run(self) -> None:
        """Work until `stop` is called. What was polled by then is finished first.

        Raises what `process` raises, and `FencedError` where another instance has taken the transactional id over;
        both after aborting.
        """
        while not self._stopping.is_set():
            self.run_once()

    def run_once(self, timeout_s: float = 1.0) -> int:
        """One batch, in one transaction; returns how many records were read. 0 means that there were none in time,
        or that the transaction was aborted and its records will come again.
        """
        self._start()
        records = self.consumer.poll_batch(self._max_records, timeout_s)
        if not records:
            return 0
        # Taken now: a later generation of the group may have assigned these partitions to another member.
        membership = self.consumer.group_membership()
        try:
            with self.producer.transactions.begin():
                for record in records:
                    for output in self._outputs(record):
                        self.producer.send_record(output)
                self.producer.transactions.add_offsets(_next_offsets(records), membership)
        except ClientError as error:
            self._rewind(records)
            if not error.requires_abort or error.error_code in _PERMANENT:
                raise
            logger.warning("%s; the transaction was aborted and %d records will be read again", error, len(records))
            return 0
        except Exception:
            self._rewind(records)
            raise
        return len(records)

    def stop(self) -> None:
        """Make `run` return after the current batch. May be called from any thread and by signal handlers."""
        self._stopping.set()
        self.consumer.wakeup()

    def close(self) -> None:
        """Leave the group. `run` must have ended."""
        self.consumer.close()
        self.producer.close()

    def _close_soon(self) -> None:
        """After Ctrl-C or an exit: close without waiting for the broker."""
        self.producer.abandon()
        self.consumer.close(INTERRUPTED_S)

    def __enter__(self) -> ExactlyOnce[KIn, VIn, KOut, VOut]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, Exception):
            self._close_soon()
            return
        with noted_on(error, "closing"):
            self.close()

    def _start(self) -> None:
        if not self._is_started:
            # Take over the id first: a predecessor's open transaction would block reading the offsets to start from.
            self.producer.transactions.start()
            self.consumer.subscribe(self._topics, listener=self._listener)
            self._is_started = True

    def _outputs(self, record: Record[KIn, VIn]) -> list[ProducerRecord[KOut, VOut]]:
        """All outputs of a record, collected before any is sent: a record that fails half-way produces none."""
        try:
            return list(self._process(record) or ())
        except Exception as error:
            if self._on_error is None:
                raise
            return list(self._on_error(record, error))

    def _rewind(self, records: Sequence[Record[Any, Any]]) -> None:
        """Seek to the group's committed offsets, or to the start of the batch where there are none."""
        first: dict[TopicPartition, int] = {}
        for record in records:
            first.setdefault(record.topic_partition, record.offset)
        try:
            mine = first.keys() & self.consumer.assignment()
            starts = {at: first[at] for at in mine} | self.consumer.committed(mine)
            for partition, offset in starts.items():
                self.consumer.seek(partition, offset)
        except ClientError as error:
            # Reading further would skip these records: leave the group, and restart from the committed offsets.
            logger.warning("%s; rejoining the group", error)
            self.consumer.unsubscribe()
            self.consumer.subscribe(self._topics, listener=self._listener)


def _next_offsets(records: Iterable[Record[Any, Any]]) -> dict[TopicPartition, int]:
    return {record.topic_partition: record.offset + 1 for record in records}
