"""One consumer client behind an instance: reads by size and time, seeks, commits. Its methods block.

Belongs to one thread at a time. What was read but not yet handed out (a record that would exceed an answer's size) is
held for the next read, and dropped when its partition is lost or sought. Start at `Reader.read`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from moldau.client.connection import build, log_report
from moldau.client.errors import ClientError, client_error, passes_by_itself
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.rest.errors import RestError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message
    from confluent_kafka import TopicPartition as Position

__all__ = ["ReadLimits", "ReadRecord", "Reader", "Reset"]

Answer = TypeVar("Answer")
BEGINNING, END, UNSET = -2, -1, -1001
AT_ONCE = 500
POLL_S = 0.1
SEEK_S, ASK_S = 10.0, 20.0
DEFAULTS = {
    # librdkafka would fetch 64 MiB ahead for each instance.
    "queued.max.messages.kbytes": "16384",
}
ILLEGAL_STATE, NOT_HOSTED = 40903, 40403

Reset = Mapping[TopicPartition, int]


class ReadRecord(NamedTuple):
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def size(self) -> int:
        return len(self.key or b"") + len(self.value or b"")


class ReadLimits(NamedTuple):
    """When a read ends."""

    timeout_s: float
    max_bytes: int
    min_bytes: int = -1
    join_s: float = 0.0
    """How long to wait for the group's partitions before `timeout_s` begins."""


class Reader:
    def __init__(self, servers: str, properties: Mapping[str, str], *, client_id: str) -> None:
        from confluent_kafka import Consumer

        settings = {
            **DEFAULTS,
            **properties,
            "bootstrap.servers": servers,
            "client.id": client_id,
            # A record counts as read when it is handed out, not when it has been fetched.
            "enable.auto.offset.store": "false",
        }
        title = f"Consumer clientId={client_id}, groupId={settings.get('group.id', '')}"
        self._rdkafka: Consumer
        self._rdkafka, _ = build(Consumer, "consumer", settings, report=log_report, title=title)
        self._commits_by_itself = settings.get("enable.auto.commit", "true").lower() == "true"
        self._held: deque[ReadRecord] = deque()
        self._is_joining = False
        self.positions: dict[TopicPartition, int] = {}
        """The next offset after what was handed out, by partition."""

    # What is read

    def subscribe(self, topics: Sequence[str]) -> None:
        """Join the group for topics; a name that begins with ^ is a pattern."""
        self._forget_all()
        self._is_joining = True
        self._call(lambda: self._rdkafka.subscribe(list(topics), on_assign=self._gained, on_revoke=self._lost))

    def unsubscribe(self) -> None:
        self._forget_all()
        self._is_joining = False
        self._call(self._rdkafka.unsubscribe)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        self._forget_all()
        self._call(lambda: self._rdkafka.assign([_position(one) for one in partitions]))

    def assign_at(self, starts: Reset) -> None:
        """Read partitions from given offsets (-2 the beginning, -1 the end)."""
        self._forget_all()
        self._call(lambda: self._rdkafka.assign([_position(at, offset) for at, offset in starts.items()]))

    def assignment(self) -> list[TopicPartition]:
        found = self._call(self._rdkafka.assignment)
        return sorted(TopicPartition(one.topic, one.partition) for one in found)

    def join(self, timeout_s: float) -> None:
        """Wait until the group has given partitions, or the time is up; records that arrive are held."""
        deadline = time.monotonic() + timeout_s
        while self._is_joining and time.monotonic() < deadline:
            self._poll(min(POLL_S, max(0.0, deadline - time.monotonic())))

    # Reading

    def read(self, limits: ReadLimits) -> list[ReadRecord]:
        """Records until a limit is reached; the one that would exceed the size is held for the next read."""
        self.join(limits.join_s)
        deadline = time.monotonic() + limits.timeout_s
        records: list[ReadRecord] = []
        size = 0
        while True:
            while self._held:
                record = self._held[0]
                if records and size + record.size >= limits.max_bytes:
                    return records
                records.append(self._held.popleft())
                size += record.size
            is_enough = size >= limits.max_bytes or 0 <= limits.min_bytes <= size
            left = deadline - time.monotonic()
            if (records and is_enough) or left <= 0:
                return records
            self._poll(left)

    def hand_out(self, records: Sequence[ReadRecord]) -> None:
        """Count records as read, so that a commit includes them."""
        for record in records:
            self.positions[TopicPartition(record.topic, record.partition)] = record.offset + 1
        if self._commits_by_itself and records:
            places = {TopicPartition(record.topic, record.partition) for record in records}
            assigned = set(self.assignment())
            done = [_position(place, self.positions[place]) for place in places if place in assigned]
            if done:
                self._call(lambda: self._rdkafka.store_offsets(offsets=done))

    def take_back(self, records: Sequence[ReadRecord]) -> None:
        """Give records back that could not be handed out; the next read begins with them."""
        self._held.extendleft(reversed(records))

    def _poll(self, timeout_s: float) -> None:
        first = self._call(lambda: self._rdkafka.poll(timeout_s))
        if first is None:
            return
        self._hold(first)
        # `consume` waits until it has all it was asked for: with no time it takes what is there.
        for message in self._call(lambda: self._rdkafka.consume(AT_ONCE, 0)):
            self._hold(message)

    def _hold(self, message: Message) -> None:
        error = message.error()
        if error is None:
            self._held.append(_record(message))
        elif error.name() == "_AUTO_OFFSET_RESET":
            raise RestError(
                ILLEGAL_STATE,
                f"Illegal state: {message.topic()}-{message.partition()} has no committed offset, and "
                "auto.offset.reset is none: seek, or create the instance with earliest or latest",
            )
        elif not _is_harmless(error):
            raise client_error(error, about=str(message.topic() or ""))

    # Positions

    def seek(self, offsets: Reset, times: Reset) -> None:
        """Continue at offsets (-2 the beginning, -1 the end), or at the first records from given times on.

        Raises 40903 for partitions that are not assigned, and 40403 for those that do not exist.
        """
        self._check_places({*offsets, *times})
        wanted = {**offsets, **(self._offsets_for_times(times) if times else {})}
        self._forget(set(wanted))
        for place, offset in wanted.items():
            # The ends are looked up here: librdkafka would look for the end later, when there may be more.
            self._seek_one(place, offset if offset >= 0 else self._end_of(place, offset))

    def _check_places(self, places: set[TopicPartition]) -> None:
        assigned = set(self.assignment())
        for place in sorted(places - assigned):
            raise RestError(
                ILLEGAL_STATE, f"Illegal state: no current assignment for partition {place.topic}-{place.partition}"
            )
        # Asked before: requests about partitions that are not there wait until their time is over.
        topics = self._call(lambda: self._rdkafka.list_topics(timeout=ASK_S)).topics
        for place in places:
            if place.topic not in topics or place.partition not in topics[place.topic].partitions:
                raise RestError(NOT_HOSTED, "This server does not host this topic-partition.")

    def _end_of(self, place: TopicPartition, offset: int) -> int:
        first, following = self._call(
            lambda: self._rdkafka.get_watermark_offsets(_position(place), ASK_S, cached=False)
        )
        return int(first if offset == BEGINNING else following)

    def _seek_one(self, place: TopicPartition, offset: int) -> None:
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + SEEK_S
        while True:
            try:
                self._rdkafka.seek(_position(place, offset))
                return
            except KafkaException as error:
                # Right after an assignment librdkafka needs a moment before it can seek.
                if time.monotonic() >= deadline:
                    raise client_error(error.args[0], about=f"{place}") from None
            time.sleep(0.01)

    def _offsets_for_times(self, wanted: Reset) -> dict[TopicPartition, int]:
        asked = [_position(place, timestamp_ms) for place, timestamp_ms in wanted.items()]
        found = self._call(lambda: self._rdkafka.offsets_for_times(asked, ASK_S))
        _raise_for(found)
        return {TopicPartition(one.topic, one.partition): one.offset for one in found}

    # Offsets

    def commit(self, offsets: Mapping[TopicPartition, int], *, is_async: bool = False) -> None:
        if not offsets:
            return
        asked = [_position(place, offset) for place, offset in offsets.items()]
        if is_async:
            self._call(lambda: self._rdkafka.commit(offsets=asked, asynchronous=True))
            return
        _raise_for(self._call(lambda: self._rdkafka.commit(offsets=asked, asynchronous=False)))

    def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Committed offsets; partitions without one are left out."""
        found = self._call(lambda: self._rdkafka.committed([_position(one) for one in partitions], ASK_S))
        _raise_for(found)
        return {TopicPartition(one.topic, one.partition): one.offset for one in found if one.offset >= 0}

    def close(self) -> None:
        """Commit what was read, where commits are automatic, and leave the group."""
        try:
            self._rdkafka.close()
        except RuntimeError:
            pass  # closed before

    # Internals

    def _gained(self, _consumer: Consumer, _partitions: list[Position]) -> None:
        self._is_joining = False

    def _lost(self, _consumer: Consumer, partitions: list[Position]) -> None:
        self._forget({TopicPartition(one.topic, one.partition) for one in partitions})

    def _forget(self, places: set[TopicPartition]) -> None:
        self._held = deque(
            record for record in self._held if TopicPartition(record.topic, record.partition) not in places
        )
        for place in places:
            self.positions.pop(place, None)

    def _forget_all(self) -> None:
        self._held.clear()
        self.positions.clear()

    @staticmethod
    def _call(call: Callable[[], Answer]) -> Answer:
        from confluent_kafka import KafkaException

        try:
            return call()
        except KafkaException as error:
            raise client_error(error.args[0]) from None
        except ValueError as error:  # such as a name with a zero byte
            raise ClientError(f"not a valid name or number: {error}", ErrorCode.INVALID_REQUEST) from None
        except (TypeError, RuntimeError) as error:
            raise ClientError(str(error)) from None


def _is_harmless(error: KafkaError) -> bool:
    """Whether reading goes on: topics that are not there yet may be created later."""
    return passes_by_itself(error) or error.name() in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_PARTITION_EOF")


def _record(message: Message) -> ReadRecord:
    headers: Any = message.headers() or ()
    return ReadRecord(
        message.topic() or "",
        message.partition() or 0,
        message.offset() or 0,
        _bytes(message.key()),
        _bytes(message.value()),
        message.timestamp()[1],
        tuple(headers),
    )


def _bytes(part: str | bytes | None) -> bytes | None:
    return part.encode() if isinstance(part, str) else part


def _position(place: TopicPartition, offset: int = UNSET) -> Position:
    from confluent_kafka import TopicPartition as Position

    return Position(place.topic, place.partition, offset)


def _raise_for(found: Iterable[Position] | None) -> None:
    for one in found or ():
        if one.error is not None:
            raise client_error(one.error, about=f"{one.topic}-{one.partition}")
