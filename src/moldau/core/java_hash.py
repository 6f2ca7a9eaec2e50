"""Java's `String.hashCode`, by which Kafka spreads groups and transactional ids over partitions."""

from __future__ import annotations

__all__ = ["java_hash", "partition_for"]


def java_hash(text: str) -> int:
    """Over UTF-16 units, as an unsigned 32-bit number."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(units), 2):
        value = (31 * value + (units[position] << 8) + units[position + 1]) & 0xFFFFFFFF
    return value


def partition_for(key: str, partitions: int) -> int:
    """The partition of a coordinator's topic that looks after `key`."""
    return (java_hash(key) & 0x7FFFFFFF) % partitions
