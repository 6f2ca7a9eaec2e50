"""Partitioners: Python functions that choose a record's partition.

Without one, librdkafka chooses as Java's default does: by the murmur2 hash of the key's bytes, and for records without
a key one partition for a while, then another. Start at `Partitioner`.
"""

from __future__ import annotations

from typing import Any, Protocol

from moldau.client.errors import ClientError

__all__ = ["Partitioner", "checked_partition", "hashed_partition"]


class Partitioner(Protocol):
    """Chooses a partition from everything known about a record.

        def partition(topic, key, key_bytes, value, value_bytes, partition_count):
            return 0 if key == "OurBigKey" else 1 + hashed_partition(key_bytes, partition_count - 1)

    Called on the thread that sends. The answer is a number from 0 to `partition_count` - 1, or `None` to leave
    this record to the default. An exception refuses the record: `Producer.send` raises it.
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
        raise ClientError(f"a key cannot be spread over {partition_count} partitions")
    return murmur2(key_bytes, partition_count)


def checked_partition(topic: str, chosen: int | None, partition_count: int) -> int:
    """What the partitioner said, as librdkafka takes it; raises `ClientError` for a partition that does not exist."""
    if chosen is None:
        return -1
    if isinstance(chosen, bool) or not isinstance(chosen, int):
        raise ClientError(f"Topic {topic}: the partitioner must return a number or None, not {chosen!r}")
    if not 0 <= chosen < partition_count:
        raise ClientError(f"Topic {topic}: the partitioner chose {chosen}, of partitions 0 to {partition_count - 1}")
    return chosen
