"""Proposes which brokers should hold the replicas of a topic: evenly, and on different racks. Pure.

Leaders go round the brokers; the further replicas of a partition begin at a distance that grows with each round, so
that a broker's partitions do not all share the same followers. Start at `spread`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from random import Random

__all__ = ["spread"]


def spread(
    partitions: int, factor: int, racks: Mapping[int, str | None], *, random: Random | None = None
) -> list[list[int]]:
    """The replicas of each partition, the preferred leader first; `racks` has a rack for each broker, or `None`."""
    if not 0 < factor <= len(racks):
        raise ValueError(f"replication factor {factor} is larger than the number of brokers, {len(racks)}")
    brokers = _alternating(racks)
    random = random or Random()
    first, shift = random.randrange(len(brokers)), random.randrange(len(brokers))
    found = []
    for number in range(partitions):
        if number and number % len(brokers) == 0:
            shift += 1
        leader = (first + number) % len(brokers)
        others = [
            brokers[(leader + 1 + (shift + step) % (len(brokers) - 1)) % len(brokers)] for step in _steps(brokers)
        ]
        found.append(_chosen(brokers[leader], others, factor, racks))
    return found


def _steps(brokers: Sequence[int]) -> range:
    return range(len(brokers) - 1)


def _chosen(leader: int, others: Sequence[int], factor: int, racks: Mapping[int, str | None]) -> list[int]:
    """The leader and the first of the others that are on a rack of their own, then the rest."""
    chosen, seen, late = [leader], {racks[leader]}, []
    for one in others:
        if racks[one] is not None and racks[one] in seen:
            late.append(one)
        else:
            seen.add(racks[one])
            chosen.append(one)
    return (chosen + late)[:factor]


def _alternating(racks: Mapping[int, str | None]) -> list[int]:
    """The brokers, one of each rack in turn."""
    by_rack: dict[str | None, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(broker)
    turns = zip_longest(*(by_rack[rack] for rack in sorted(by_rack, key=str)))
    return [one for one in chain.from_iterable(turns) if one is not None]
