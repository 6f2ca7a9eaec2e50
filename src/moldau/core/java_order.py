"""The iteration order of Java's HashMap, which is visible in the output of Kafka's tools."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.core.java_hash import java_hash

__all__ = ["java_hash_order"]

LOAD_FACTOR = 0.75


def java_hash_order(keys: Iterable[str]) -> list[str]:
    """Keys by bucket; within a bucket in the order of insertion, as in a chain of entries."""
    inserted = list(keys)
    buckets = 16
    while len(inserted) > buckets * LOAD_FACTOR:
        buckets *= 2
    return sorted(inserted, key=lambda key: _spread_hash(java_hash(key)) & (buckets - 1))


def _spread_hash(value: int) -> int:
    return value ^ (value >> 16)
