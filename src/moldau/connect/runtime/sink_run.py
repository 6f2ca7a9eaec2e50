"""The loop around a sink task: consume, convert, transform, put, and commit the offsets after a flush.

The tasks of a connector are members of the group `connect-<name>`, wherever they run, and the group shares the
partitions out. They are static members: a successor takes the place of a task that was killed at once, and fences
it. Start at `SinkRun.run`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from moldau.client.admin import Admin
from moldau.client.connection import build, log_report
from moldau.client.errors import client_error, passes_by_itself
from moldau.client.groups import remove_static_member
from moldau.connect.api.connector import SinkTask
from moldau.connect.api.contexts import ErrantRecordReporter, SinkTaskContext
from moldau.connect.api.errors import ConnectError, RetriableError
from moldau.connect.api.plugin_kinds import SchemaAndValue
from moldau.connect.api.plugins import Plugins
from moldau.connect.api.records import Header, SinkRecord
from moldau.connect.runtime.client_settings import ClientSettings
from moldau.connect.runtime.dead_letters import DeadLetters
from moldau.connect.runtime.record_steps import RecordSteps, listed
from moldau.connect.runtime.task_run import TaskRun
from moldau.connect.runtime.tolerance import ErrorSettings, FailedRecord, Reporter, SkippedError, Stage, Tolerance
from moldau.core.errors import MoldauError
from moldau.core.ids import TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

__all__ = ["SinkRun", "sink_group_id"]

POLL_S = 0.2
READ_AT_ONCE = 5000
"""Most records of a `put`. They have been fetched already, so memory is bounded by the consumer's queue."""
RETRY_PAUSE_MS = 1000
REFRESH_S = 5.0
"""How often `topics.regex` is compared with the topics there are."""

_TIMESTAMP_TYPES = {0: "NoTimestampType", 1: "CreateTime", 2: "LogAppendTime"}


def sink_group_id(connector: str, config: Mapping[str, str]) -> str:
    """The consumer group of a sink connector."""
    return config.get("consumer.override.group.id") or f"connect-{connector}"


class _Context(SinkTaskContext):
    def __init__(self, sink: SinkRun) -> None:
        super().__init__(sink.run_of_task.definition.limits)
        self.stop_requested = sink.run_of_task.stopping
        self._sink = sink
        self.rewinds: dict[TopicPartition, int] = {}
        self.timeout_ms: int | None = None
        self.wants_commit = False
        self.paused: set[TopicPartition] = set()

    @property
    def configs(self) -> Mapping[str, str]:
        return self._sink.config

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(self._sink.positions)

    def rewind(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.rewinds.update(offsets)

    def set_timeout(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        wanted = set(partitions)
        self.paused |= wanted
        self._sink.pause(wanted)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        wanted = set(partitions)
        self.paused -= wanted
        self._sink.resume(wanted)

    def request_commit(self) -> None:
        self.wants_commit = True

    @property
    def errant_record_reporter(self) -> ErrantRecordReporter | None:
        return self._sink.errant_record_reporter


class _Errant(ErrantRecordReporter):
    def __init__(self, tolerance: Tolerance, task: str) -> None:
        self._tolerance = tolerance
        self._task = task

    def report(self, record: SinkRecord, error: Exception) -> Future[None]:
        done: Future[None] = Future()
        if not self._tolerance.settings.tolerates_all:
            place = f"record {record.offset} of {record.topic_partition}"
            raise ConnectError(f"{place} was reported and errors.tolerance is none: {error}") from error
        self._tolerance.failures += 1
        self._tolerance.skipped += 1
        self._tolerance.report(FailedRecord(Stage.TASK_PUT, self._task, error, record.raw))
        done.set_result(None)
        return done


class SinkRun:
    def __init__(self, run: TaskRun, task: SinkTask, plugins: Plugins) -> None:
        self.topics: set[str] = set()
        self.run_of_task = run
        self._task = task
        definition = run.definition
        self.config = run.secrets.resolve(definition.settings)
        worker = run.secrets.resolve(definition.worker)
        self._clients = ClientSettings(worker, self.config)
        self._steps = RecordSteps.of(self.config, worker, plugins)
        self._dead_letters = (
            DeadLetters(self.config, self._clients, definition.connector, definition.task)
            if self.config.get("errors.deadletterqueue.topic.name")
            else None
        )
        reporters: tuple[Reporter, ...] = (self._dead_letters,) if self._dead_letters is not None else ()
        errors = ErrorSettings.of(self.config)
        self._tolerance = Tolerance(errors, definition.id, run.stopping, reporters, run.secrets.hide)
        is_reporting = errors.tolerates_all or errors.logs or self._dead_letters is not None
        self.errant_record_reporter = _Errant(self._tolerance, type(task).__name__) if is_reporting else None
        self._commit_s = int(worker.get("offset.flush.interval.ms", "60000")) / 1000
        self._context = _Context(self)
        self.positions: dict[TopicPartition, int | None] = {}
        """Of the assigned partitions: the offset after the last record that was put; None before the first."""
        self._committed: dict[TopicPartition, int] = {}
        self._consumer: Consumer | None = None
        self._failure: BaseException | None = None
        """Raised in a callback of the consumer, which must not raise."""
        self._subscribed: frozenset[str] = frozenset()
        self._refreshed = 0.0
        self._counts = dict.fromkeys(
            (
                "sink-record-read-total",
                "sink-record-send-total",
                "offset-commit-completion-total",
                "put-batch-total",
            ),
            0,
        )

    def run(self) -> None:
        """Work until the task is asked to stop."""
        self._consumer = consumer = self._open_consumer()
        stopping = self.run_of_task.stopping
        try:
            self._task.context = self._context
            self._task.start(self.config)
            try:
                self._subscribe()
                self.run_of_task.note_running()
                last_commit = time.monotonic()
                while not stopping.is_set():
                    self._subscribe()
                    self._deliver(self._consume())
                    if self._context.wants_commit or time.monotonic() - last_commit >= self._commit_s:
                        self._context.wants_commit = False
                        self._commit(set(self.positions))
                        last_commit = time.monotonic()
                self._release(set(self.positions))
            finally:
                self._task.stop()
        finally:
            self.positions.clear()
            self._consumer = None
            self._leave(consumer)
            self._steps.close()
            if self._dead_letters is not None:
                self._dead_letters.close()

    def metrics(self) -> Mapping[str, float]:
        tolerance = self._tolerance
        return {
            **self._counts,
            "partition-count": len(self.positions),
            "total-record-failures": tolerance.failures,
            "total-records-skipped": tolerance.skipped,
            "total-retries": tolerance.retries,
            "total-errors-logged": tolerance.logged,
            "last-error-timestamp": tolerance.last_error_ms,
            "deadletterqueue-produce-requests": self._dead_letters.count if self._dead_letters is not None else 0,
        }

    # Reading

    def _subscribe(self) -> None:
        """Subscribe to the topics; a pattern is compared with the topics again and again."""
        consumer = self._consumer
        assert consumer is not None
        pattern = self.config.get("topics.regex")
        if pattern is None:
            wanted = frozenset(listed(self.config.get("topics")))
        elif time.monotonic() - self._refreshed < REFRESH_S:
            return
        else:
            admin = Admin(self._clients.servers, self._clients.admin(f"connector-{self.run_of_task.definition.id}"))
            wanted = frozenset(one for one in admin.topic_names() if re.fullmatch(pattern, one))
            self._refreshed = time.monotonic()
        if wanted and wanted != self._subscribed:
            self._subscribed = wanted
            consumer.subscribe(
                sorted(wanted), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
            )

    def _consume(self) -> list[Message]:
        consumer = self._consumer
        assert consumer is not None
        if not self._subscribed:
            self.run_of_task.stopping.wait(POLL_S)
            return []
        first = consumer.poll(POLL_S)
        messages = [] if first is None else [first, *consumer.consume(READ_AT_ONCE - 1, 0)]
        self._raise_failure()
        good = []
        for message in messages:
            refusal = message.error()
            if refusal is None:
                good.append(message)
            elif not passes_by_itself(refusal):
                raise client_error(refusal, about=f"connector {self.run_of_task.definition.connector}")
        return good

    def _deliver(self, messages: Sequence[Message]) -> None:
        if not messages and not self.positions:
            return
        self._counts["sink-record-read-total"] += len(messages)
        ends: dict[TopicPartition, int] = {}
        place: TopicPartition | None = None
        for message in messages:
            topic, partition = message.topic(), message.partition()
            if place is None or partition != place.partition or topic != place.topic:
                place = TopicPartition(str(topic), int(partition or 0))
                self.topics.add(place.topic)
            ends[place] = int(message.offset() or 0) + 1
        records = [record for message in messages if (record := self._converted(message)) is not None]
        self._put(records if ends.keys() <= self.positions.keys() else self._held(records))
        for place, end in ends.items():
            if place in self.positions:
                self.positions[place] = end
        self._counts["sink-record-send-total"] += len(records)
        self._counts["put-batch-total"] += 1
        self._rewind()

    def _put(self, records: list[SinkRecord]) -> None:
        """Put records; a `RetriableError` means the same records again, after a pause."""
        while True:
            try:
                self._task.put(records)
                return
            except RetriableError:
                self._tolerance.retries += 1
                pause_ms = self._context.timeout_ms if self._context.timeout_ms is not None else RETRY_PAUSE_MS
                self._context.timeout_ms = None
                if self.run_of_task.stopping.is_set():
                    raise
                self._wait_in_group(pause_ms / 1000)
                records = self._held(records)

    def _held(self, records: list[SinkRecord]) -> list[SinkRecord]:
        """The records of the partitions that are still this task's."""
        return [one for one in records if one.topic_partition in self.positions]

    def _wait_in_group(self, seconds: float) -> None:
        """Wait without leaving the group: partitions are paused and the consumer is polled."""
        everything = set(self.positions)
        self.pause(everything)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.run_of_task.stopping.wait(0.05):
            consumer = self._consumer
            assert consumer is not None
            consumer.poll(0)
            self._raise_failure()
        self.resume(everything - self._context.paused)

    def _converted(self, message: Message) -> SinkRecord | None:
        steps = self._steps
        topic = str(message.topic())
        if not steps.transforms and not message.headers():
            with suppress(Exception):  # step by step, it is found which one fails, and whether that is tolerated
                key = steps.key.to_connect(topic, message.key())
                return _record(message, topic, key, steps.value.to_connect(topic, message.value()), ())
        try:
            return self._converted_step_by_step(message, topic)
        except SkippedError:
            return None

    def _converted_step_by_step(self, message: Message, topic: str) -> SinkRecord | None:
        steps, run = self._steps, self._tolerance.run
        key = run(
            partial(steps.key.to_connect, topic, message.key()),
            Stage.KEY_CONVERTER,
            type(steps.key).__name__,
            message,
        )
        value = run(
            partial(steps.value.to_connect, topic, message.value()),
            Stage.VALUE_CONVERTER,
            type(steps.value).__name__,
            message,
        )
        record = _record(message, topic, key, value, self._headers(message, topic))
        return steps.transformed(record, self._tolerance, message) if steps.transforms else record

    def _headers(self, message: Message, topic: str) -> tuple[Header, ...]:
        given = message.headers()
        if not given:
            return ()
        converter = self._steps.header
        headers = []
        for key, data in given if isinstance(given, list) else list(given.items()):
            schema, value = self._tolerance.run(
                partial(converter.to_connect_header, topic, key, data.encode() if isinstance(data, str) else data),
                Stage.HEADER_CONVERTER,
                type(converter).__name__,
                message,
            )
            headers.append(Header(key, value, schema))
        return tuple(headers)

    # Offsets

    def _commit(self, partitions: set[TopicPartition]) -> None:
        """Let the task flush, then commit what it says."""
        from confluent_kafka import KafkaException
        from confluent_kafka import TopicPartition as RdkafkaPartition

        ends = {place: end for place, end in self.positions.items() if place in partitions and end is not None}
        if not ends:
            return
        if self._dead_letters is not None:
            self._dead_letters.flush()
        agreed = self._task.pre_commit(ends)
        self._rewind()
        news = {place: end for place, end in agreed.items() if self._committed.get(place) != end and place in ends}
        if not news:
            return
        consumer = self._consumer
        assert consumer is not None
        try:
            consumer.commit(
                offsets=[RdkafkaPartition(place.topic, place.partition, end) for place, end in news.items()],
                asynchronous=False,
            )
        except KafkaException as error:
            failure = client_error(error.args[0], about="commit of offsets")
            if not (failure.is_retriable or error.args[0].retriable() or passes_by_itself(error.args[0])):
                log_report("WARN", f"{self.run_of_task.definition.id}: {failure}; the next commit is tried anew")
            return
        self._committed.update(news)
        self._counts["offset-commit-completion-total"] += 1

    def _rewind(self) -> None:
        from confluent_kafka import TopicPartition as RdkafkaPartition

        wanted, self._context.rewinds = self._context.rewinds, {}
        consumer = self._consumer
        for place, offset in wanted.items():
            if place in self.positions and consumer is not None:
                consumer.seek(RdkafkaPartition(place.topic, place.partition, offset))
                self.positions[place] = offset
                self._committed.pop(place, None)

    # The group

    def _on_assign(self, consumer: Consumer, partitions: list[Any]) -> None:
        try:
            places = {TopicPartition(one.topic, one.partition) for one in partitions}
            for place in places:
                self.positions[place] = None
            self._task.open(places)
            wanted, self._context.rewinds = self._context.rewinds, {}
            for one in partitions:
                offset = wanted.get(TopicPartition(one.topic, one.partition))
                if offset is not None:
                    one.offset = offset
            consumer.assign(partitions)
        except BaseException as error:
            self._failure = error

    def _on_revoke(self, _consumer: Consumer, partitions: list[Any]) -> None:
        try:
            self._release({TopicPartition(one.topic, one.partition) for one in partitions})
        except BaseException as error:
            self._failure = error

    def _on_lost(self, _consumer: Consumer, partitions: list[Any]) -> None:
        """The group has given the partitions to others already: nothing may be committed."""
        places = {TopicPartition(one.topic, one.partition) for one in partitions}
        try:
            self._task.close(places & self.positions.keys())
        except BaseException as error:
            self._failure = error
        self._forget(places)

    def _release(self, places: set[TopicPartition]) -> None:
        held = places & self.positions.keys()
        if held:
            self._commit(held)
            self._task.close(held)
        self._forget(held)

    def _forget(self, places: set[TopicPartition]) -> None:
        for place in places:
            self.positions.pop(place, None)
            self._committed.pop(place, None)
            self._context.paused.discard(place)

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def pause(self, places: set[TopicPartition]) -> None:
        from confluent_kafka import TopicPartition as RdkafkaPartition

        consumer, held = self._consumer, places & self.positions.keys()
        if consumer is not None and held:
            consumer.pause([RdkafkaPartition(place.topic, place.partition) for place in held])

    def resume(self, places: set[TopicPartition]) -> None:
        from confluent_kafka import TopicPartition as RdkafkaPartition

        consumer, held = self._consumer, places & self.positions.keys()
        if consumer is not None and held:
            consumer.resume([RdkafkaPartition(place.topic, place.partition) for place in held])

    def _leave(self, consumer: Consumer) -> None:
        """Leave the group: a static member has to be taken out, or its partitions would wait for its return."""
        definition = self.run_of_task.definition
        member_id = consumer.memberid()
        consumer.close()
        if member_id:
            admin = Admin(self._clients.servers, self._clients.admin(f"connector-{definition.id}"))
            group = sink_group_id(definition.connector, self.config)
            with suppress(MoldauError):  # its successor, or the session timeout, has taken it out already
                remove_static_member(admin, group, definition.transactional_id, member_id)

    def _open_consumer(self) -> Consumer:
        from confluent_kafka import Consumer as RdkafkaConsumer

        definition = self.run_of_task.definition
        group = sink_group_id(definition.connector, self.config)
        properties = self._clients.consumer(group, f"connector-consumer-{definition.id}")
        # A successor takes the member's place at once, and fences it.
        properties.setdefault("group.instance.id", definition.transactional_id)
        consumer: Consumer
        consumer, _ = build(
            RdkafkaConsumer, "consumer", properties, report=log_report, title=f"consumer of {definition.id}"
        )
        return consumer


def _record(
    message: Message, topic: str, key: SchemaAndValue, value: SchemaAndValue, headers: tuple[Header, ...]
) -> SinkRecord:
    kind, timestamp = message.timestamp()
    partition = message.partition()
    return SinkRecord(
        topic=topic,
        partition=partition,
        key=key[1],
        key_schema=key[0],
        value=value[1],
        value_schema=value[0],
        timestamp=timestamp if kind else None,
        headers=headers,
        offset=int(message.offset() or 0),
        timestamp_type=_TIMESTAMP_TYPES[kind],
        original_topic=topic,
        original_partition=partition,
        raw=message,
    )
