"""Partitioners: Python functions that choose a record's partition.

Without one, librdkafka chooses as Java's default partitioner does: by the murmur2 hash of the key's bytes, and for
records without a key one partition for a while, then another. `PartitionCounts` caches how many partitions a topic has,
and refreshes that from time to time, since partitions may be added. Start at `Partitioner`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from moldau.client.errors import ClientError, UnreachableError, client_error
from moldau.client.waiting import interruptible, served
from moldau.core.errors import ErrorCode

__all__ = ["PartitionCounts", "Partitioner", "checked_partition", "hashed_partition"]

if TYPE_CHECKING:
    from confluent_kafka import KafkaError
    from confluent_kafka import Producer as RdkafkaProducer


class Partitioner(Protocol):
    """Chooses a partition from everything known about a record.

        def partition(topic, key, key_bytes, value, value_bytes, partition_count):
            return 0 if key == "OurBigKey" else 1 + hashed_partition(key_bytes, partition_count - 1)

    Called on the thread that sends. The answer is a number from 0 to `partition_count` - 1, or `None` to leave
    this record to the default. An exception rejects the record: `Producer.send` raises it.
    """

    def __call__(  # noqa: PLR0917, the order is Java's and callers use it
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        partition_count: int,
        /,
    ) -> int | None: ...


def hashed_partition(key_bytes: bytes, partition_count: int) -> int:
    """Where the default partitioner of Java's clients puts this key: its positive murmur2 hash, modulo the count."""
    from confluent_kafka import murmur2

    if partition_count < 1:
        raise ClientError(f"no partition can be chosen for a key: the topic has {partition_count} partitions")
    return murmur2(key_bytes, partition_count)


def checked_partition(topic: str, chosen: int | None, partition_count: int) -> int:
    """The partitioner's choice, as librdkafka expects it; raises `ClientError` for a partition that does not exist."""
    if chosen is None:
        return -1
    if isinstance(chosen, bool) or not isinstance(chosen, int):
        raise ClientError(f"Topic {topic}: the partitioner must return a number or None, not {chosen!r}")
    if not 0 <= chosen < partition_count:
        raise ClientError(f"Topic {topic}: the partitioner chose {chosen}, of partitions 0 to {partition_count - 1}")
    return chosen


REFRESH_S = 60.0
ATTEMPT_S = 2.0
PAUSE_S = 0.1


class PartitionCounts:
    """Partition counts by topic, kept for `REFRESH_S`. Asking for a topic creates it where the broker allows that."""

    def __init__(self, rdkafka: RdkafkaProducer, max_block_s: float) -> None:
        self._rdkafka = rdkafka
        self._max_block_s = max_block_s
        self._known: dict[str, tuple[int, float]] = {}

    def of(self, topic: str) -> int:
        """The count, at least 1; raises `ClientError` where the topic does not exist within `max.block.ms`."""
        count, asked_at = self._known.get(topic, (0, 0.0))
        if count and time.monotonic() < asked_at + REFRESH_S:
            return count
        count = self._ask(topic)
        self._known[topic] = (count, time.monotonic())
        return count

    def _ask(self, topic: str) -> int:
        deadline = time.monotonic() + self._max_block_s
        while True:
            found = self._ask_once(topic, max(0.1, min(ATTEMPT_S, deadline - time.monotonic())))
            if isinstance(found, int) and found:
                return found
            if time.monotonic() >= deadline:
                raise found if isinstance(found, ClientError) else _not_there(topic)
            if isinstance(found, ClientError) and not _may_pass(found):
                raise found
            served(self._rdkafka.poll, PAUSE_S)

    def _ask_once(self, topic: str, timeout_s: float) -> int | ClientError:
        from confluent_kafka import KafkaException

        try:
            metadata = interruptible(lambda: self._rdkafka.list_topics(topic, timeout=timeout_s))
            found = metadata.topics[topic]
        except KafkaException as error:
            return client_error(error.args[0], about=f"Topic {topic}")
        refusal: KafkaError | None = found.error
        return len(found.partitions) if refusal is None else client_error(refusal, about=f"Topic {topic}")


def _may_pass(error: ClientError) -> bool:
    code = error.error_code
    return isinstance(error, UnreachableError) or (code is not None and code.is_retriable)


def _not_there(topic: str) -> ClientError:
    return ClientError(f"Topic {topic} has no partitions", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
