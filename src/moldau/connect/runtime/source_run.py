"""The loop around a source task: poll, transform, convert, produce, and store the offsets.

In a distributed worker the records and their offsets are one transaction: after `poll`, after
`transaction.boundary.interval.ms`, or where the connector says; by default after one poll or, under load, a few. The
transactional id is the task's, so a successor fences it before it reads the offsets. While a transaction is committed,
which is mostly waiting, the task polls for the next one. A standalone worker writes offsets to a file after the records
are stored, which is at least once. Start at `SourceRun.run`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from moldau.client.connection import build, log_report
from moldau.client.errors import ClientError, client_error
from moldau.client.transactions import Transactions
from moldau.client.waiting import BlockingCall
from moldau.connect.api.connector import SourceTask
from moldau.connect.api.contexts import SourceTaskContext, TransactionContext
from moldau.connect.api.errors import RetriableError
from moldau.connect.api.limits import Limits
from moldau.connect.api.plugins import Plugins
from moldau.connect.api.records import SourceRecord
from moldau.connect.runtime.client_settings import ClientSettings
from moldau.connect.runtime.offset_stores import (
    OffsetFile,
    StoredOffsets,
    encode_key,
    encode_offset,
    read_topic_offsets,
)
from moldau.connect.runtime.record_steps import RecordSteps
from moldau.connect.runtime.task_run import TaskRun
from moldau.connect.runtime.tolerance import ErrorSettings, SkippedError, Stage, Tolerance
from moldau.connect.runtime.topic_creation import TopicCreation, creation_groups

if TYPE_CHECKING:
    from confluent_kafka import Producer

__all__ = ["SourceRun"]

MAX_BLOCK_S = 60.0
FLUSH_S = 120.0
IDLE_S = 0.05
"""The pause after a poll that returned nothing at once."""
QUICK_S = 0.005
CLOSE_S = 5.0
COMMIT_SLICE_S = 1.0
FULL_LEAST, GATHERED_MOST = 100, 20_000
"""Records of a poll after which there probably are more, and of the polls that may share a transaction."""


class _Context(SourceTaskContext):
    def __init__(self, configs: Mapping[str, str], offsets: StoredOffsets, limits: Limits) -> None:
        super().__init__(limits)
        self._configs = configs
        self._offsets = offsets

    @property
    def configs(self) -> Mapping[str, str]:
        return self._configs

    @property
    def offset_reader(self) -> StoredOffsets:
        return self._offsets


class _Boundaries(TransactionContext):
    """What the connector has asked for since the last transaction."""

    def __init__(self) -> None:
        self.commits = self.aborts = False
        self.commit_after: set[int] = set()
        self.abort_after: set[int] = set()

    def commit_transaction(self, after: Any = None) -> None:
        if after is None:
            self.commits = True
        else:
            self.commit_after.add(id(after))

    def abort_transaction(self, after: Any = None) -> None:
        if after is None:
            self.aborts = True
        else:
            self.abort_after.add(id(after))


class _AbortAskedError(Exception):
    """The connector wants the transaction dropped."""


class SourceRun:
    def __init__(self, run: TaskRun, task: SourceTask, plugins: Plugins) -> None:
        self.topics: set[str] = set()
        self._run = run
        self._task = task
        definition = run.definition
        self._config = run.secrets.resolve(definition.settings)
        self._worker = run.secrets.resolve(definition.worker)
        self._name = definition.connector
        self._clients = ClientSettings(self._worker, self._config)
        self._steps = RecordSteps.of(self._config, self._worker, plugins)
        self._tolerance = Tolerance(ErrorSettings.of(self._config), definition.id, run.stopping, hide=run.secrets.hide)
        groups = creation_groups(self._config) if self._worker.get("topic.creation.enable", "true") == "true" else ()
        admin = self._clients.admin(f"connector-adminclient-{definition.id}")
        self._creation = TopicCreation(groups, self._clients.servers, admin)
        self._offset_topic = self._config.get("offsets.storage.topic") or self._worker.get("offset.storage.topic", "")
        self._boundary = self._config.get("transaction.boundary", "poll").lower()
        flush_ms = self._worker.get("offset.flush.interval.ms", "60000")
        self._interval_s = int(self._config.get("transaction.boundary.interval.ms") or flush_ms) / 1000
        self._flush_s = int(flush_ms) / 1000
        self._producer: Producer | None = None
        self._failures: list[Any] = []
        self._pending: dict[bytes, Mapping[str, Any]] = {}
        """By key: the newest source offsets that are not stored yet."""
        self._boundaries = _Boundaries()
        self._commit: BlockingCall[None] | None = None
        """The commit that is under way."""
        self._sent: list[SourceRecord] = []
        """The records of that transaction."""
        self._gathers = not self._config.get("transaction.boundary")
        self._fullest = 0
        """The most records of a poll so far."""
        self._counts = dict.fromkeys(
            (
                "source-record-poll-total",
                "source-record-write-total",
                "offset-commit-success-total",
                "poll-batch-total",
            ),
            0,
        )
        self._active = 0

    def run(self) -> None:
        """Work until the task is asked to stop."""
        try:
            if self._run.definition.is_standalone:
                self._run_standalone()
            else:
                self._run_in_transactions()
        finally:
            self._close()

    def metrics(self) -> Mapping[str, float]:
        tolerance = self._tolerance
        return {
            **self._counts,
            "source-record-active-count": self._active,
            "total-record-failures": tolerance.failures,
            "total-records-skipped": tolerance.skipped,
            "total-retries": tolerance.retries,
            "total-errors-logged": tolerance.logged,
            "last-error-timestamp": tolerance.last_error_ms,
        }

    # Transactions

    def _run_in_transactions(self) -> None:
        producer = self._open_producer({"transactional.id": self._run.definition.transactional_id})
        transactions = Transactions(producer, self._await_delivery, self._failures.clear, MAX_BLOCK_S)
        transactions.start()  # fences the predecessor: from here on its offsets do not change
        reading = {**self._clients.consumer("unused", f"connect-offsets-{self._run.definition.id}")}
        offsets = StoredOffsets(self._name, read_topic_offsets(reading, self._offset_topic, self._name))
        self._start_task(offsets)
        try:
            while not self._run.stopping.is_set():
                records = self._with_more(self._poll())
                self._finish_commit(offsets)
                if records:
                    self._transact(transactions, records)
            self._finish_commit(offsets)
        finally:
            if self._commit is not None:  # the task has failed, but what it sent before is stored
                with suppress(Exception):
                    self._finish_commit(offsets)
            self._task.stop()

    def _with_more(self, records: list[SourceRecord]) -> list[SourceRecord]:
        """Add what further polls give while the last transaction is still being committed.

        Only after full polls, which say that there is more: another poll might wait, and the records with it. A
        connector with `transaction.boundary=poll` in its configuration gets a transaction for each poll.
        """
        last, gathered = records, list(records)
        while self._gathers and self._commit is not None and not self._commit.wait(0):
            self._fullest = max(self._fullest, len(last))
            if len(last) < max(self._fullest, FULL_LEAST) or len(gathered) >= GATHERED_MOST:
                break
            last = self._poll()
            gathered += last
        return gathered

    def _transact(self, transactions: Transactions, records: list[SourceRecord]) -> None:
        """Send the records of a transaction, and let its commit begin."""
        try:
            with ExitStack() as opened:
                opened.enter_context(transactions.begin())
                sent = list(records)
                began = time.monotonic()
                while True:
                    self._send(records)
                    if self._is_over(records, began):
                        break
                    records = self._poll()
                    sent += records
                self._send_offsets()
                self._sent = sent
                self._commit = BlockingCall(opened.pop_all().close).start()
        except _AbortAskedError:
            self._pending.clear()

    def _finish_commit(self, offsets: StoredOffsets) -> None:
        """Wait for the commit that is under way, if any; raises what made it fail."""
        commit, self._commit = self._commit, None
        if commit is None:
            return
        while not commit.wait(COMMIT_SLICE_S):
            pass
        commit.answer()
        for key, offset in self._pending.items():
            offsets.note(key, offset)
        sent, self._sent = self._sent, []
        self._note_stored(sent)

    def _is_over(self, records: list[SourceRecord], began: float) -> bool:
        if self._boundary == "connector":
            return self._asked_boundary(records) or self._run.stopping.is_set()
        if self._boundary == "interval":
            return time.monotonic() - began >= self._interval_s or self._run.stopping.is_set()
        return True

    def _asked_boundary(self, records: list[SourceRecord]) -> bool:
        asked, ids = self._boundaries, {id(one) for one in records}
        if asked.aborts or asked.abort_after & ids:
            self._forget_boundaries()
            raise _AbortAskedError
        if asked.commits or asked.commit_after & ids:
            self._forget_boundaries()
            return True
        return False

    def _forget_boundaries(self) -> None:
        self._boundaries.commits = self._boundaries.aborts = False
        self._boundaries.commit_after.clear()
        self._boundaries.abort_after.clear()

    def _send_offsets(self) -> None:
        producer = self._producer
        assert producer is not None
        for key, offset in self._pending.items():
            producer.produce(self._offset_topic, key=key, value=encode_offset(offset))

    # A file of offsets

    def _run_standalone(self) -> None:
        file = OffsetFile(self._worker["offset.storage.file.filename"])
        self._open_producer({})
        self._start_task(StoredOffsets(self._name, file.of(self._name)))
        waiting: list[SourceRecord] = []
        stored = time.monotonic()
        try:
            while not self._run.stopping.is_set():
                records = self._poll()
                self._send(records)
                waiting += records
                if waiting and time.monotonic() - stored >= self._flush_s:
                    self._store_in(file, waiting)
                    stored = time.monotonic()
        finally:
            try:
                if waiting:
                    self._store_in(file, waiting)
            finally:
                self._task.stop()

    def _store_in(self, file: OffsetFile, waiting: list[SourceRecord]) -> None:
        self._await_delivery()
        file.update(self._pending)
        self._note_stored(waiting)
        waiting.clear()

    # Both ways

    def _start_task(self, offsets: StoredOffsets) -> None:
        context = _Context(self._config, offsets, self._run.definition.limits)
        context.stop_requested = self._run.stopping
        if self._boundary == "connector":
            context.transaction = self._boundaries
        self._task.context = context
        self._task.start(self._config)
        self._run.note_running()

    def _poll(self) -> list[SourceRecord]:
        began = time.monotonic()
        try:
            records = self._task.poll() or []
        except RetriableError:
            self._tolerance.retries += 1
            self._run.stopping.wait(IDLE_S)
            return []
        if records:
            self._counts["source-record-poll-total"] += len(records)
            self._counts["poll-batch-total"] += 1
        elif time.monotonic() - began < QUICK_S:
            self._run.stopping.wait(IDLE_S)
        return records

    def _send(self, records: list[SourceRecord]) -> None:
        partition: Mapping[str, Any] | None = None
        offset_key = b""
        is_plain = not self._steps.transforms
        key_of, value_of, produce = self._steps.key.from_connect, self._steps.value.from_connect, self._produce
        topic, written = "", 0
        for record in records:
            try:
                if not is_plain or record.headers:
                    self._send_step_by_step(record)
                else:
                    if record.topic != topic:
                        self._creation.ensure(record.topic)
                        topic = record.topic
                        self.topics.add(topic)
                    key = key_of(topic, record.key_schema, record.key)
                    produce(record, key, value_of(topic, record.value_schema, record.value), None)
                    written += 1
            except SkippedError:
                pass  # it was reported; the source goes on behind it
            except Exception:
                if not is_plain or record.headers:
                    raise
                self._resend(record)
            if record.source_offset is not None:
                if record.source_partition is not partition and record.source_partition != partition:
                    partition = record.source_partition
                    offset_key = encode_key(self._name, partition)
                self._pending[offset_key] = record.source_offset
        self._active += len(records)
        self._counts["source-record-write-total"] += written

    def _resend(self, record: SourceRecord) -> None:
        """Send a record that failed on the quick way: step by step, which says what fails and if that is tolerated."""
        with suppress(SkippedError):
            self._send_step_by_step(record)

    def _send_step_by_step(self, record: SourceRecord) -> None:
        steps, run = self._steps, self._tolerance.run
        changed = steps.transformed(record, self._tolerance, record) if steps.transforms else record
        if changed is None:
            return
        topic = changed.topic
        key = run(
            partial(steps.key.from_connect, topic, changed.key_schema, changed.key),
            Stage.KEY_CONVERTER,
            type(steps.key).__name__,
            record,
        )
        value = run(
            partial(steps.value.from_connect, topic, changed.value_schema, changed.value),
            Stage.VALUE_CONVERTER,
            type(steps.value).__name__,
            record,
        )
        headers = [
            (
                header.key,
                run(
                    partial(steps.header.from_connect_header, topic, header.key, header.schema, header.value),
                    Stage.HEADER_CONVERTER,
                    type(steps.header).__name__,
                    record,
                ),
            )
            for header in changed.headers
        ]
        self._creation.ensure(topic)
        run(
            partial(self._produce, changed, key, value, headers),
            Stage.KAFKA_PRODUCE,
            "producer",
            record,
        )
        self._count(topic)

    def _count(self, topic: str) -> None:
        self.topics.add(topic)
        self._counts["source-record-write-total"] += 1

    def _produce(self, record: SourceRecord, key: Any, value: Any, headers: list[Any] | None) -> None:
        producer = self._producer
        assert producer is not None
        while True:
            try:
                producer.produce(
                    record.topic,
                    key=key,
                    value=value,
                    partition=-1 if record.partition is None else record.partition,
                    headers=headers or None,
                    timestamp=record.timestamp if record.timestamp is not None else 0,
                )
                return
            except BufferError:
                producer.poll(0.1)  # the queue is full: wait until the brokers have taken some
                self._raise_failures()
            except Exception as error:
                from confluent_kafka import KafkaException

                if isinstance(error, KafkaException):
                    raise client_error(error.args[0], about=f"topic {record.topic}") from None
                raise

    def _await_delivery(self) -> None:
        producer = self._producer
        assert producer is not None
        left = producer.flush(FLUSH_S)
        self._raise_failures()
        if left:
            raise ClientError(f"{left} records were not stored within {FLUSH_S:g} s")

    def _raise_failures(self) -> None:
        if self._failures:
            raise client_error(self._failures[0], about=f"connector {self._name}")

    def _note_stored(self, records: list[SourceRecord]) -> None:
        self._pending.clear()
        self._active = 0
        self._counts["offset-commit-success-total"] += 1
        for record in records:
            self._task.commit_record(record, None)
        self._task.commit()

    def _open_producer(self, extra: Mapping[str, str]) -> Producer:
        from confluent_kafka import Producer as RdkafkaProducer

        properties = {**self._clients.producer(f"connector-producer-{self._run.definition.id}"), **extra}
        producer: Producer
        producer, _ = build(
            RdkafkaProducer,
            "producer",
            properties,
            report=log_report,
            title=f"producer of {self._run.definition.id}",
            extra={"on_delivery": self._note_delivery, "delivery.report.only.error": True},
        )
        self._producer = producer
        return producer

    def _note_delivery(self, error: Any, _message: Any) -> None:
        if error is not None:
            self._failures.append(error)

    def _close(self) -> None:
        self._steps.close()
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(Exception):  # a fenced producer raises on every call; it has nothing left to do
                producer.flush(0 if self._failures else CLOSE_S)
