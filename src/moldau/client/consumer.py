"""The consumer: typed records, Java's rules for automatic commits, and seeking at any time.

librdkafka does fetching, groups and rebalancing. Offsets stored outside Kafka are in `client.offset_store`, consumer
threads in `client.listeners`. Start at `Consumer.subscribe` and `Consumer.poll`.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import finalize

from moldau.client.connection import Report, build, log_report, rendered_properties
from moldau.client.connection_log import ConnectionLog
from moldau.client.errors import (
    ClientError,
    SchemaRegistryError,
    SerializationError,
    client_error,
    noted_on,
    passes_by_itself,
)
from moldau.client.rebalancing import RebalanceListener, Rebalancing
from moldau.client.records import Record
from moldau.client.serialization import PartReader, without_serde_settings
from moldau.client.transactions import GroupMembership
from moldau.client.waiting import BlockingCall, close_within, interruptible, never, served
from moldau.core.errors import InvalidConfigError
from moldau.core.ids import TopicPartition
from moldau.serdes.serde import Deserializer

if TYPE_CHECKING:
    from confluent_kafka import Message
    from confluent_kafka import TopicPartition as RdkafkaPartition

__all__ = ["Consumer"]

K = TypeVar("K")
V = TypeVar("V")
Answer = TypeVar("Answer")

BEGINNING, END, UNSET = -2, -1, -1001
"""librdkafka's logical offsets."""

WAIT_SLICE_S = 0.2
SEEK_S = 5.0
DEFAULT_TIMEOUT_MS = 60_000
CLOSE_S = 30.0
INTERRUPTED_S = 2.0
"""How long leaving the group may take when Ctrl-C or an exit ends the program."""
CUT_OFF_S = 1.0
"""How long it may take where no broker answers anyway."""
DEFAULT_MAX_POLL_RECORDS = 500


class Consumer(Generic[K, V]):
    """Reads records from topics, alone or as a member of a group.

        with Consumer("localhost:9092", group="billing", value_deserializer=JSON) as consumer:
            consumer.subscribe(["payments"])
            for record in consumer:
                print(record.key, record.value)

    Belongs to one thread; only `wakeup` may be called from others. To read with several threads, give each a consumer
    of the same group.

    With automatic commits (`enable.auto.commit`, on by default) a record counts as done when the next one is asked for.
    What is done is committed every `auto.commit.interval.ms`, when partitions move to another member, and at the end:
    a crash repeats records and never skips any. An exception that leaves the `with` block keeps the last record undone.

    servers: `host:port`, several with commas between; may be left out where `properties` has `bootstrap.servers`.
    properties: the Java consumer's keys, with the Java consumer's defaults (`auto.offset.reset=latest`,
        `isolation.level=read_uncommitted`, ...). `group.protocol=consumer` chooses the new group protocol.
        librdkafka's own keys pass too; keys neither knows are logged.
    group: the group's id, as `group.id` in the properties. Without one, only `assign` works, and nothing is committed.
    key_deserializer, value_deserializer: serdes such as `STRING`, `JSON` or `AvroSerde()`, or deserializers of
        `confluent_kafka`. Without one, the class named by the properties `key.deserializer` and `value.deserializer`
        counts, and without that `STRING`. Serdes with a schema use `schema.registry.url` of the properties.
    report: gets the level and text of the client's own log lines; by default they go to the logger `moldau.client`.
    is_over: polled while a commit or another request waits for a broker; once it returns true, `GivenUpError` is
    raised.

    Raises `InvalidConfigError` for invalid settings. Does not wait for the cluster.
    """

    def __init__(
        self,
        servers: str | None = None,
        properties: Mapping[str, object] | None = None,
        *,
        group: str | None = None,
        key_deserializer: Deserializer[K] | None = None,
        value_deserializer: Deserializer[V] | None = None,
        report: Report = log_report,
        is_over: Callable[[], bool] = never,
    ) -> None:
        from confluent_kafka import Consumer as RdkafkaConsumer

        given = rendered_properties(servers, properties)
        if group is not None:
            given["group.id"] = group
        self.group = given.get("group.id")
        self._commits_by_itself = self.group is not None and given.get("enable.auto.commit", "true").lower() == "true"
        self._key: PartReader[K] = PartReader(key_deserializer, given, "key")
        self._value: PartReader[V] = PartReader(value_deserializer, given, "value")
        title = f"Consumer clientId={given.get('client.id', 'consumer-1')}, groupId={self.group}"
        self._report = report
        self._is_over = is_over
        self._rdkafka, translated = build(
            RdkafkaConsumer,
            "consumer",
            without_serde_settings(_settings(given, self._commits_by_itself)),
            report=report,
            title=title,
            # A record counts as done when the next is asked for, so nothing may be marked on delivery.
            extra={"enable.auto.offset.store": False},
        )
        if "auto.offset.reset" in translated.own:
            raise InvalidConfigError("auto.offset.reset=by_duration is not supported here: seek to offsets_for_time")
        self._timeout_s = int(translated.own.get("default.api.timeout.ms", DEFAULT_TIMEOUT_MS)) / 1000
        self._max_poll_records = int(translated.own.get("max.poll.records", DEFAULT_MAX_POLL_RECORDS))
        self._handed_out: dict[TopicPartition, int] = {}
        self._forgotten: set[TopicPartition] = set()
        self._rebalancing = Rebalancing(self, self._rdkafka, given, self._forget)
        self._woken = threading.Event()
        self._is_closed = False
        self._connections = ConnectionLog.to(report)
        # librdkafka blocks for minutes when a consumer that was not closed is garbage-collected without a broker.
        self._at_exit = finalize(self, close_within, self._rdkafka, CUT_OFF_S)

    # Choosing what to read

    def subscribe(self, topics: Iterable[str] | re.Pattern[str], *, listener: RebalanceListener | None = None) -> None:
        """Join the group and share these topics, or all whose names match a pattern, with its members.

        Replaces an earlier subscription. `listener` is called, from inside a later `poll`, when partitions are assigned
        or revoked. Topics that do not exist yet are read once they do.
        """
        if self.group is None:
            raise InvalidConfigError("subscribe needs a group; without one, assign the partitions to read")
        if isinstance(topics, str):
            raise InvalidConfigError(f"topics must be a list of names: write [{topics!r}]")
        names = [_anchored_pattern(topics)] if isinstance(topics, re.Pattern) else list(topics)
        self._call(lambda: self._rdkafka.subscribe(names, **self._rebalancing.callbacks(listener)))

    def unsubscribe(self) -> None:
        """Leave the group, after committing what is done."""
        self._finish_handed_out()
        interruptible(self._commit_stored, is_over=self._is_over)
        self._call(self._rdkafka.unsubscribe)

    def assign(self, partitions: Collection[TopicPartition] | Mapping[TopicPartition, int]) -> None:
        """Read exactly these partitions, without group assignment.

        A mapping gives the offset to start at for each. Without, reading starts at the group's committed offset, or as
        `auto.offset.reset` says.
        """
        self._finish_handed_out()
        starts = partitions if isinstance(partitions, Mapping) else dict.fromkeys(partitions, UNSET)
        self._call(lambda: self._rdkafka.assign(_with_offsets(starts)))

    def assignment(self) -> set[TopicPartition]:
        """The partitions being read now: none until the group has given some, which happens inside `poll`."""
        return {TopicPartition(at.topic, at.partition) for at in self._call(self._rdkafka.assignment)}

    # Reading

    def poll(self, timeout_s: float = 1.0) -> Record[K, V] | None:
        """The next record, or `None` when there was none for `timeout_s` or `wakeup` was called.

        Must be called again within `max.poll.interval.ms`, or the group gives the partitions to others.

        Raises `SerializationError` for a record that cannot be read; it is skipped, and the next `poll` continues
        after it. Raises `SchemaRegistryError` where the registry cannot be reached for a record's schema; the record
        may be fine, so the next `poll` reads it again. Raises `ClientError` for what only the application can fix:
        no permission, no offset to start at with `auto.offset.reset=none`, fenced by another consumer. Transient
        problems (a broker restarts, a topic does not exist yet) are logged and retried.
        """
        self._finish_handed_out()
        message = self._next_message(time.monotonic() + timeout_s)
        if message is None:
            return None
        partition, offset = _place(message)
        try:
            record = self._record(message)
        except SchemaRegistryError:
            self.seek(partition, offset)
            raise
        except SerializationError:
            self._handed_out[partition] = offset + 1
            raise
        self._handed_out[partition] = offset + 1
        return record

    def poll_batch(self, max_records: int | None = None, timeout_s: float = 1.0) -> list[Record[K, V]]:
        """All records that have arrived, up to `max_records` (or `max.poll.records`); waits for the first only.

        Errors are those of `poll`. After a `SerializationError` the next call begins after the unreadable record, but
        the readable ones before it come first: they are handed out, and the error is raised by the call after.
        """
        self._finish_handed_out()
        records: list[Record[K, V]] = []
        self._forgotten.clear()
        deadline = time.monotonic() + timeout_s
        for _ in range(max_records or self._max_poll_records):
            message = self._next_message(deadline if not records else 0.0)
            if self._forgotten:
                # A rebalance happened meanwhile: records of revoked partitions will be read by other members, or again
                # here.
                records = [record for record in records if record.topic_partition not in self._forgotten]
                self._forgotten.clear()
            if message is None:
                break
            try:
                records.append(self._record(message))
            except (SerializationError, SchemaRegistryError) as error:
                partition, offset = _place(message)
                if records or isinstance(error, SchemaRegistryError):
                    # Read again by the next call, which then has nothing before it.
                    self.seek(partition, offset)
                else:
                    self._handed_out[partition] = offset + 1
                if records:
                    break
                raise
        self._handed_out |= {record.topic_partition: record.offset + 1 for record in records}
        return records

    def __iter__(self) -> Iterator[Record[K, V]]:
        """Records for ever, until `wakeup` is called."""
        while not self._woken.is_set():
            record = self.poll(WAIT_SLICE_S)
            if record is not None:
                yield record

    def wakeup(self) -> None:
        """End the iteration, and every `poll` from now on, soon. Any thread may call it, and signal handlers too."""
        self._woken.set()

    # Committing

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit and wait until the group's coordinator has stored it; raises `ClientError` where it refuses.

        `offsets` gives, per partition, the offset of the next record to read. Without it everything handed out so far
        counts as done: what `poll` returned, or the whole of the last `poll_batch`.
        """
        wanted = dict(self._handed_out) if offsets is None else dict(offsets)
        if offsets is None:
            self._handed_out.clear()
        if wanted:
            done = self._wait(lambda: self._rdkafka.commit(offsets=_with_offsets(wanted), asynchronous=False))
            _raise_partition_errors(done)

    def commit_async(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """`commit` without waiting; after a failure, the next commit covers the same offsets."""
        wanted = dict(self._handed_out) if offsets is None else dict(offsets)
        if offsets is None:
            self._handed_out.clear()
        if wanted:
            self._call(lambda: self._rdkafka.commit(offsets=_with_offsets(wanted), asynchronous=True))

    def commit_record(self, record: Record[Any, Any]) -> None:
        """Commit that this record, and all before it in its partition, are done."""
        self.commit({record.topic_partition: record.offset + 1})

    def mark_done(self, record: Record[Any, Any]) -> None:
        """Let the next automatic commit include this record, and all before it in its partition."""
        self._store({record.topic_partition: record.offset + 1})

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The group's committed offsets; partitions without one are left out."""
        asked = _with_offsets(dict.fromkeys(partitions, UNSET))
        found = self._wait(lambda: self._rdkafka.committed(asked, self._timeout_s))
        _raise_partition_errors(found)
        return {TopicPartition(at.topic, at.partition): at.offset for at in found if at.offset >= 0}

    # Moving

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue with the record at `offset`, or the first one after it. Works inside `partitions_assigned` too."""
        self._handed_out.pop(partition, None)
        if self._rebalancing.set_start_if_assigning(partition, offset):
            return None
        wanted = _with_offsets({partition: offset})[0]
        deadline = time.monotonic() + SEEK_S
        while True:
            try:
                return self._call(partial(self._rdkafka.seek, wanted))
            except ClientError as error:
                # Right after an assignment librdkafka needs a moment before it can seek.
                if partition not in self.assignment() or time.monotonic() >= deadline:
                    raise ClientError(f"{partition}: cannot seek: {error}", error.error_code) from None
            time.sleep(0.01)

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Seek to the first record that still exists; of all assigned partitions, unless some are named."""
        for partition in self.assignment() if partitions is None else list(partitions):
            self.seek(partition, BEGINNING)

    def seek_to_end(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Skip all records that exist now; of all assigned partitions, unless some are named."""
        for partition in self.assignment() if partitions is None else list(partitions):
            self.seek(partition, END)

    def position(self, partition: TopicPartition) -> int | None:
        """The offset of the next record `poll` returns; `None` before the first one was read."""
        offset = self._call(lambda: self._rdkafka.position(_with_offsets({partition: UNSET})))[0].offset
        return offset if offset >= 0 else None

    def watermarks(self, partition: TopicPartition) -> tuple[int, int]:
        """The first offset that exists, and the one that the next record will get."""
        asked = _with_offsets({partition: UNSET})[0]
        low, high = self._wait(lambda: self._rdkafka.get_watermark_offsets(asked, self._timeout_s))
        return low, high

    def offsets_for_time(self, partitions: Iterable[TopicPartition], timestamp_ms: int) -> dict[TopicPartition, int]:
        """The first offsets with records at or after the timestamp; the end, for partitions without such records."""
        asked = _with_offsets(dict.fromkeys(partitions, timestamp_ms))
        found = self._wait(lambda: self._rdkafka.offsets_for_times(asked, self._timeout_s))
        _raise_partition_errors(found)
        return {TopicPartition(at.topic, at.partition): at.offset for at in found}

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading these partitions but keep them assigned. Records fetched already are fetched again later."""
        self._call(lambda: self._rdkafka.pause(_with_offsets(dict.fromkeys(partitions, UNSET))))

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._call(lambda: self._rdkafka.resume(_with_offsets(dict.fromkeys(partitions, UNSET))))

    # About the group

    def group_membership(self) -> GroupMembership:
        """This consumer's current membership in its group, for `Transactions.add_offsets`."""
        return self._call(self._rdkafka.consumer_group_metadata)

    # Ending

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """Commit what is done, where commits are automatic, and leave the group. May be called again.

        Takes no longer than `timeout_s`, and one second where no broker answers. Records not committed by then are read
        again by the next consumer, and the group notices after `session.timeout.ms` that this consumer has left.
        """
        if self._is_closed:
            return
        self._finish_handed_out()
        self._is_closed = True
        self._at_exit.detach()
        leaving = BlockingCall(self._leave)
        # Listeners are still called in this thread, while the other one waits for the broker.
        self._rebalancing.run = leaving.run_in_caller
        leaving.start()
        if leaving.wait(min(timeout_s, CUT_OFF_S) if self._connections.is_cut_off else timeout_s):
            self._with_client_errors(leaving.answer)
        elif self.group is not None:
            self._report("WARN", f"Group {self.group}: no broker answered, so it was left without a commit")

    def __enter__(self) -> Consumer[K, V]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._handed_out.clear()
        is_interrupted = error is not None and not isinstance(error, Exception)
        with noted_on(error, "closing the consumer"):
            self.close(INTERRUPTED_S if is_interrupted else CLOSE_S)

    # Internals

    def _next_message(self, deadline: float) -> Message | None:
        """librdkafka's next message before the deadline; polls in slices, so that `wakeup` and Ctrl-C work."""
        while True:
            left = max(0.0, deadline - time.monotonic())
            message = self._call(partial(self._rdkafka.poll, min(left, WAIT_SLICE_S)))
            self._rebalancing.raise_failure()
            if message is not None:
                error = message.error()
                if error is None:
                    return message
                if not passes_by_itself(error):
                    raise client_error(error, about=message.topic() or "")
                self._report("WARN", str(error.str()))
            if left <= WAIT_SLICE_S or self._woken.is_set():
                return None

    def _record(self, message: Message) -> Record[K, V]:
        (topic, partition), offset = _place(message)
        headers = tuple((name, _as_bytes(value)) for name, value in _pairs(message.headers()))
        return Record(
            topic=topic,
            partition=partition,
            offset=offset,
            timestamp_ms=message.timestamp()[1],
            key=self._key.read(message.key(), topic, headers, partition, offset),
            value=self._value.read(message.value(), topic, headers, partition, offset),
            headers=headers,
            leader_epoch=message.leader_epoch(),
        )

    def _finish_handed_out(self) -> None:
        """Mark the records returned before as done, since the next ones are requested."""
        if self._commits_by_itself and self._handed_out:
            self._store(self._handed_out)
            self._handed_out.clear()

    def _leave(self) -> None:
        """Runs in a thread of its own, which may take as long as it needs."""
        self._commit_stored()
        self._rdkafka.close()

    def _commit_stored(self) -> None:
        """librdkafka also commits on close, but during a rebalance it leaves first and its commit is rejected."""
        from confluent_kafka import KafkaError, KafkaException

        if not self._commits_by_itself:
            return
        try:
            self._rdkafka.commit(asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._NO_OFFSET:
                self._report("WARN", f"Group {self.group}: offsets were not committed: {error.args[0].str()}")

    def _store(self, offsets: Mapping[TopicPartition, int]) -> None:
        from confluent_kafka import KafkaError, KafkaException

        try:
            self._rdkafka.store_offsets(offsets=_with_offsets(offsets))
        except KafkaException as error:
            # A partition that was reassigned meanwhile is committed by its new owner.
            if error.args[0].code() != KafkaError._STATE:
                raise client_error(error.args[0], about=f"Group {self.group}") from None

    def _forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget revoked partitions: their records are no longer this consumer's to commit."""
        for partition in partitions:
            self._handed_out.pop(partition, None)
            self._forgotten.add(partition)

    def _wait(self, call: Callable[[], Answer]) -> Answer:
        """`_call` for requests that wait for a broker: Ctrl-C works, except inside a rebalance callback."""
        return self._call(
            call if self._rebalancing.is_under_way else partial(interruptible, call, is_over=self._is_over)
        )

    def _call(self, call: Callable[[], Answer]) -> Answer:
        # While it closes, listeners may still commit what they have done.
        if self._is_closed and not self._rebalancing.is_under_way:
            raise ClientError("the consumer is closed")
        return self._with_client_errors(call)

    def _with_client_errors(self, call: Callable[[], Answer]) -> Answer:
        from confluent_kafka import KafkaException

        try:
            return served(call)
        except KafkaException as error:
            raise client_error(error.args[0], about=f"Group {self.group}" if self.group else "") from None


def _settings(given: Mapping[str, str], commits_by_itself: bool) -> dict[str, str]:
    """librdkafka requires a group id even without a group; nothing is ever committed under it."""
    if "group.id" in given:
        return dict(given)
    return {**given, "group.id": "none", "enable.auto.commit": str(commits_by_itself).lower()}


def _anchored_pattern(pattern: re.Pattern[str]) -> str:
    """librdkafka treats a name that begins with ^ as a pattern; `$` is added since Java matches whole names."""
    text = pattern.pattern
    return f"^({text.removeprefix('^').removesuffix('$')})$"


def _place(message: Message) -> tuple[TopicPartition, int]:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return TopicPartition(topic, partition), offset


def _with_offsets(offsets: Mapping[TopicPartition, int]) -> list[RdkafkaPartition]:
    from confluent_kafka import TopicPartition as RdkafkaPartition

    return [RdkafkaPartition(at.topic, at.partition, offset) for at, offset in offsets.items()]


def _raise_partition_errors(found: Iterable[RdkafkaPartition] | None) -> None:
    for at in found or ():
        if at.error is not None:
            raise client_error(at.error, about=f"{at.topic}-{at.partition}")


def _pairs(headers: Any) -> list[tuple[str, Any]]:
    if not headers:
        return []
    return list(headers.items()) if isinstance(headers, dict) else list(headers)


def _as_bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
