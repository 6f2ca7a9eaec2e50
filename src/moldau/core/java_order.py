"""The order in which Java's HashMap gives its keys, which Kafka's tools show and people's notes contain."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.core.java_hash import java_hash

__all__ = ["java_hash_order"]

LOAD_FACTOR = 0.75


def java_hash_order(keys: Iterable[str]) -> list[str]:
    """Keys by bucket; within a bucket the order of insertion stays, as a chain of entries keeps it."""
    inserted = list(keys)
    buckets = 16
    while len(inserted) > buckets * LOAD_FACTOR:
        buckets *= 2
    return sorted(inserted, key=lambda key: _spread(java_hash(key)) & (buckets - 1))


def _spread(value: int) -> int:
    return value ^ (value >> 16)
