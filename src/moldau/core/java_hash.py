"""Java's `String.hashCode`, by which Kafka spreads groups and transactional ids over partitions."""

from __future__ import annotations

from typing import Final

__all__ = ["java_hash", "partition_for"]

_SIGN_BIT: Final = 1 << 31


def java_hash(text: str) -> int:
    """Over UTF-16 units, as an unsigned 32-bit number."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(units), 2):
        value = (31 * value + (units[position] << 8) + units[position + 1]) & 0xFFFFFFFF
    return value


def partition_for(key: str, partitions: int) -> int:
    """The partition of a coordinator's topic that is responsible for `key`.

    By the absolute value of the signed hash, as in Apache Kafka's data directories; the one number without an absolute
    value in 32 bits counts as 0.
    """
    value = java_hash(key)
    if value >= _SIGN_BIT:
        value = (_SIGN_BIT << 1) - value
    return 0 if value == _SIGN_BIT else value % partitions
