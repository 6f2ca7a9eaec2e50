"""Records as applications see them: keys and values are objects, everything else is Kafka's.

`Record` is what a consumer hands out, `ProducerRecord` what is to be sent, `Delivery` where it was stored.
Start at `Record`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from moldau.core.ids import TopicPartition

__all__ = ["Delivery", "Headers", "ProducerRecord", "Record", "header_value"]

K = TypeVar("K")
V = TypeVar("V")

Headers = tuple[tuple[str, bytes | None], ...]
"""Names may repeat; order is kept."""


def header_value(headers: Iterable[tuple[str, bytes | None]], name: str) -> bytes | None:
    """The value of the last header called `name`, or `None`: the last one wins, as in Java's clients."""
    found = None
    for key, value in headers:
        if key == name:
            found = value
    return found


@dataclass(frozen=True, slots=True)
class Record(Generic[K, V]):
    """One record as read from a topic, its key and value deserialized."""

    topic: str
    partition: int
    offset: int
    """Consecutive records may be more than 1 apart: compaction and transactions leave gaps."""
    timestamp_ms: int
    """Milliseconds since 1970: when it was created, or appended where the topic says so. -1 when not known."""
    key: K | None
    value: V | None
    """`None` is a tombstone: it deletes the key from a compacted topic."""
    headers: Headers = ()
    leader_epoch: int | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def header(self, name: str) -> bytes | None:
        """The value of the last header called `name`; `None` when there is none, or when it is null."""
        return header_value(self.headers, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerRecord(Generic[K, V]):
    """One record to be sent."""

    topic: str
    value: V | None
    key: K | None = None
    partition: int | None = None
    """`None` leaves the choice to the producer's partitioner."""
    headers: Headers = ()
    timestamp_ms: int | None = None
    """`None` means now."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Where an acknowledged record was stored."""

    topic: str
    partition: int
    offset: int
    """-1 when the producer did not ask for acknowledgements (`acks=0`)."""
    timestamp_ms: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)
