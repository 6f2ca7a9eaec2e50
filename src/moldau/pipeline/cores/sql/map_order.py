"""The order in which the entries of a map are visited: that of Java's HashMap, which results show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from moldau.core.java_hash import java_hash

__all__ = ["in_java_order"]

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


def in_java_order(entries: Mapping[KeyT, ValueT]) -> list[tuple[KeyT, ValueT]]:
    """The entries of a map with texts as keys by bucket, others as they were inserted.

    The number of buckets is that of a HashMap made for as many entries, as a map read from a record is.
    """
    if len(entries) < 2 or not all(isinstance(key, str) for key in entries):
        return list(entries.items())
    buckets = 1 << (len(entries) - 1).bit_length()
    if len(entries) > buckets * 0.75:
        buckets *= 2
    return sorted(entries.items(), key=lambda entry: _spread_hash(java_hash(str(entry[0]))) & (buckets - 1))


def _spread_hash(hashed: int) -> int:
    return hashed ^ (hashed >> 16)
