"""Assigns partitions to Spark tasks evenly, independent of Spark's hash of small numbers.

Spark sends a group to the shuffle partition given by the Murmur3 hash of its key, and 0, 1, 2 and 3 may hash to the
same partition. So the grouping key is not the partition number but a *slot*: a number chosen because it hashes to the
wanted shuffle partition. Start at `slots`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

__all__ = ["shuffle_partition", "slots"]

_SEED = 42
_MASK = 0xFFFFFFFF


def slots(units: int, shuffle_partitions: int) -> list[int]:
    """A distinct number for each unit of work, such that unit i goes to shuffle partition i modulo the count.

    Adding units later does not change the numbers of the first ones: state is stored by them.
    """
    found: list[int] = []
    candidates = [_hashing_to(target, shuffle_partitions) for target in range(shuffle_partitions)]
    for unit in range(units):
        found.append(next(candidates[unit % shuffle_partitions]))
    return found


def shuffle_partition(slot: int, shuffle_partitions: int) -> int:
    """The shuffle partition to which Spark sends a group whose key is this integer."""
    return _to_signed(_murmur3_of_int(slot)) % shuffle_partitions


def _hashing_to(target: int, shuffle_partitions: int) -> Iterator[int]:
    return (slot for slot in count() if shuffle_partition(slot, shuffle_partitions) == target)


def _murmur3_of_int(value: int) -> int:
    """Murmur3 (x86, 32 bits) of four little-endian bytes, with the seed of Spark SQL."""
    mixed = _rotate_bits((value & _MASK) * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    state = (_rotate_bits(_SEED ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    state ^= 4
    state = (state ^ state >> 16) * 0x85EBCA6B & _MASK
    state = (state ^ state >> 13) * 0xC2B2AE35 & _MASK
    return state ^ state >> 16


def _rotate_bits(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK


def _to_signed(value: int) -> int:
    return value - (1 << 32) if value >= 1 << 31 else value
