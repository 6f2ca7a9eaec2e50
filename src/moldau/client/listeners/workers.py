"""The worker thread of a listener: one consumer, one record at a time; failed records go to retry topics.

A record counts as done when its listener has returned, or when a retry topic or the dead-letter topic has
acknowledged it; otherwise it is read again. Start at `Worker.run`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from moldau.client.connection import Report
from moldau.client.consumer import Consumer
from moldau.client.errors import ClientError, FencedError, SchemaRegistryError
from moldau.client.listeners.retries import Failure, Origin, RetryPolicy, due_ms, failure_headers, failure_of, next_stop
from moldau.client.producer import Producer
from moldau.client.rebalancing import RebalanceListener
from moldau.client.records import Record
from moldau.client.serialization import PartReader
from moldau.client.waiting import GivenUpError
from moldau.core.ids import TopicPartition
from moldau.serdes.plain import BYTES

__all__ = ["Handler", "Received", "Worker", "WorkerPlan"]

K = TypeVar("K")
V = TypeVar("V")

POLL_S = 0.5
PAUSE_AFTER_FAILURE_S = 1.0
END_S = 2.0
"""How long a stop waits for a broker: to acknowledge a failed record, and to close the consumer."""

logger = logging.getLogger("moldau.client")


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Received(Record[K, V], Generic[K, V]):
    """A record as a listener gets it."""

    origin: Origin = field(default=Origin("", -1, -1, -1))
    """The original place. Differs from `topic`, `partition` and `offset` when this is a retry."""
    attempt: int = 1
    """1 for the first call, 2 for the first retry, and so on."""
    acknowledge: Callable[[], None] = field(default=_nothing, repr=False, compare=False)
    """With manual commits: this record, and all before it in its partition, are done. Commits follow at once, or with
    the next record. Any thread may call it. With automatic commits it does nothing."""


Handler = Callable[[Received[K, V]], None]


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """The settings of a worker, as its listener was declared."""

    handler: Handler[Any, Any]
    name: str
    topics: tuple[str, ...]
    group: str
    key_reader: PartReader[Any]
    value_reader: PartReader[Any]
    is_manual: bool
    retry: RetryPolicy | None
    properties: Mapping[str, object]
    is_retrying: bool = False

    def of_retries(self) -> WorkerPlan:
        """The same for the retry topics."""
        assert self.retry is not None
        topics = tuple(name for topic in self.topics for name in self.retry.retry_topics(topic))
        return replace(self, topics=topics, is_retrying=True)


class Worker(threading.Thread):
    """Runs one consumer of a listener's group until stopped."""

    def __init__(
        self,
        plan: WorkerPlan,
        index: int,
        producer: Producer[bytes, bytes],
        *,
        on_failure: Callable[[], None],
        report: Report,
    ) -> None:
        super().__init__(name=f"listener-{plan.name}-{index}", daemon=True)
        self.plan = plan
        self.failure: Exception | None = None
        self.assigned = threading.Event()
        self._producer = producer
        self._on_failure = on_failure
        self._stopping = threading.Event()
        self._stopped_at = 0.0
        self._held_until_ms: dict[TopicPartition, int] = {}
        self._acknowledged: dict[TopicPartition, int] = {}
        self._lock = threading.Lock()
        self._consumer: Consumer[bytes, bytes] = Consumer(
            None,
            self._settings(index),
            group=plan.group,
            key_deserializer=BYTES,
            value_deserializer=BYTES,
            report=report,
            is_over=self._has_no_more_time,
        )

    def _settings(self, index: int) -> dict[str, object]:
        settings: dict[str, object] = {"client.id": self.name, **self.plan.properties}
        settings["enable.auto.commit"] = not self.plan.is_manual
        if "group.instance.id" in settings:
            # Static members need unique instance ids that stay the same after a restart.
            settings["group.instance.id"] = f"{settings['group.instance.id']}-{self.plan.name}-{index}"
        return settings

    def stop(self) -> None:
        """Stop after the current record."""
        self._stopped_at = time.monotonic()
        self._stopping.set()
        self._consumer.wakeup()

    def run(self) -> None:
        try:
            with self._consumer:
                self._consumer.subscribe(self.plan.topics, listener=_Watch(self))
                while not self._stopping.is_set():
                    self._turn()
                self.commit_acknowledged()
                self._consumer.close(END_S)
        except Exception as error:
            logger.exception("Listener %s ends", self.plan.name)
            self.failure = error
            self._on_failure()

    def _turn(self) -> None:
        self._resume_due()
        record = self._consumer.poll(self._patience_s())
        if record is not None:
            if self.plan.is_retrying and not self._is_ours(record):
                self._mark_done(record)
            elif self.plan.is_retrying and due_ms(record) > _now_ms():
                self._hold(record)
            else:
                self._handle(record)
        self.commit_acknowledged()

    def _handle(self, record: Record[bytes, bytes]) -> None:
        try:
            received = self._to_received(record)
        except SchemaRegistryError as error:
            # No dead letter: the registry failed, so this record and all after it may be fine.
            logger.error("%s will try again: %s", self.plan.name, error)
            self._stopping.wait(PAUSE_AFTER_FAILURE_S)
            self._consumer.seek(record.topic_partition, record.offset)
            return
        except Exception as error:
            self._fail(record, error)
            return
        try:
            self.plan.handler(received)
        except Exception as error:
            self._fail(record, error)

    def _fail(self, record: Record[bytes, bytes], error: Exception) -> None:
        if self.plan.retry is None:
            raise error
        self._send_on(record, error, self.plan.retry)

    def _to_received(self, record: Record[bytes, bytes]) -> Received[Any, Any]:
        failure = Failure.of(record) if self.plan.is_retrying else None
        place = (record.topic, record.headers, record.partition, record.offset)
        return Received(
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            timestamp_ms=record.timestamp_ms,
            key=self.plan.key_reader.read(record.key, *place),
            value=self.plan.value_reader.read(record.value, *place),
            headers=record.headers,
            leader_epoch=record.leader_epoch,
            origin=Origin.of(record) if failure else _itself(record),
            attempt=1 + failure.attempts if failure else 1,
            acknowledge=lambda: self._mark_done(record),
        )

    # Failures

    def _send_on(self, record: Record[bytes, bytes], error: Exception, policy: RetryPolicy) -> None:
        """Send the record to its next topic, and mark it as done only when that is acknowledged."""
        source = record if self.plan.is_retrying else _without_history(record)
        failure = failure_of(source, error, group=self.plan.group, listener=self.plan.name)
        stop = next_stop(policy, failure, error, _now_ms())
        place = f"{failure.listener}: record {record.offset} of {record.topic_partition}"
        if stop.topic is None:
            logger.error(
                "%s failed in its last attempt (%d) and is skipped: it stays in the dead-letter topic %s as record %d "
                "of partition %d: %s: %s",
                place,
                failure.attempts,
                failure.origin.topic,
                failure.origin.offset,
                failure.origin.partition,
                failure.error_class,
                failure.error_message,
            )
            self._mark_done(record)
            return
        logger.warning(
            "%s failed in attempt %d and goes to %s: %s: %s",
            place,
            failure.attempts,
            stop.topic,
            failure.error_class,
            failure.error_message,
        )
        try:
            self._producer.send_and_wait(
                stop.topic,
                record.value,
                key=record.key,
                headers=failure_headers(record.headers, failure, stop.due_ms),
                timestamp_ms=failure.origin.timestamp_ms if failure.origin.timestamp_ms >= 0 else None,
                is_over=self._has_no_more_time,
            )
        except FencedError:
            raise
        except GivenUpError:
            # Not committed, so it is read again after the next start.
            self._consumer.seek(record.topic_partition, record.offset)
            return
        except ClientError as trouble:
            logger.error("%s will be tried again: it cannot be put into %s: %s", place, stop.topic, trouble)
            self._stopping.wait(PAUSE_AFTER_FAILURE_S)
            self._consumer.seek(record.topic_partition, record.offset)
            return
        self._mark_done(record)

    def _has_no_more_time(self) -> bool:
        return self._stopping.is_set() and time.monotonic() > self._stopped_at + END_S / 2

    def _is_ours(self, record: Record[bytes, bytes]) -> bool:
        """Retry topics are shared by all groups of the original topic; each handles only its own records."""
        failure = Failure.of(record)
        return failure is None or (failure.group == self.plan.group)

    # Waiting for the time of a retry

    def _hold(self, record: Record[bytes, bytes]) -> None:
        """Pause the partition until the record is due; a retry topic has one delay, so its records are due in order."""
        self._consumer.pause([record.topic_partition])
        self._consumer.seek(record.topic_partition, record.offset)
        self._held_until_ms[record.topic_partition] = due_ms(record)

    def _resume_due(self) -> None:
        now_ms = _now_ms()
        ready = [partition for partition, until_ms in self._held_until_ms.items() if until_ms <= now_ms]
        for partition in ready:
            del self._held_until_ms[partition]
        if ready:
            self._consumer.resume(ready)

    def _patience_s(self) -> float:
        soonest_ms = min(self._held_until_ms.values(), default=_now_ms() + 1000 * POLL_S)
        return float(min(POLL_S, max(0.0, (soonest_ms - _now_ms()) / 1000)))

    def forget(self, partitions: set[TopicPartition]) -> None:
        """Forget partitions that were revoked."""
        for partition in partitions:
            self._held_until_ms.pop(partition, None)
            with self._lock:
                self._acknowledged.pop(partition, None)

    # Commits

    def _mark_done(self, record: Record[Any, Any]) -> None:
        if self.plan.is_manual:
            with self._lock:
                at = record.topic_partition
                self._acknowledged[at] = max(self._acknowledged.get(at, 0), record.offset + 1)

    def commit_acknowledged(self) -> None:
        """Manual commits: commit what was acknowledged since the last call."""
        with self._lock:
            offsets, self._acknowledged = self._acknowledged, {}
        if not offsets:
            return
        try:
            self._consumer.commit(offsets)
        except FencedError:
            raise
        except ClientError as error:
            logger.warning("%s: offsets were not committed, records may come again: %s", self.plan.name, error)


class _Watch(RebalanceListener):
    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def partitions_assigned(self, consumer: Consumer[Any, Any], partitions: set[TopicPartition]) -> None:
        self._worker.assigned.set()

    def partitions_revoked(self, consumer: Consumer[Any, Any], partitions: set[TopicPartition]) -> None:
        self._worker.commit_acknowledged()
        self._worker.forget(partitions)

    def partitions_lost(self, consumer: Consumer[Any, Any], partitions: set[TopicPartition]) -> None:
        self._worker.forget(partitions)


def _itself(record: Record[Any, Any]) -> Origin:
    return Origin(record.topic, record.partition, record.offset, record.timestamp_ms)


def _without_history(record: Record[bytes, bytes]) -> Record[bytes, bytes]:
    """A record read from its original topic starts with no failures, even if its headers report some."""
    return replace(record, headers=())


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
