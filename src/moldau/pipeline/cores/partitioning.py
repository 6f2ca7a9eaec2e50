"""The partition of a key, as Kafka's clients compute it."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Hash", "partition_hash"]

Hash = Callable[[bytes, int], int]


def partition_hash() -> Hash:
    """The function (key bytes, partition count) -> partition of Java's default partitioner."""
    from confluent_kafka import murmur2

    hashed: Hash = murmur2
    return hashed
