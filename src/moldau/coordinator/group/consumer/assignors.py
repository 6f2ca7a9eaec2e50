"""Server-side assignors: which member gets which partitions of the subscribed topics.

`uniform` spreads partitions evenly and moves as few as it can; `range` gives each member adjacent partitions of every
topic, so that topics with equal partition counts are split the same way (co-partitioning). These are targets only:
`coordinator.group.consumer.heartbeat` moves members towards them without two members holding a partition. Start at
`ASSIGNORS`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from moldau.coordinator.group.consumer.assignment import NOTHING, Assignment

__all__ = ["ASSIGNORS", "Assignor", "Subscriber", "range_assignment", "uniform_assignment"]


class Subscriber(NamedTuple):
    """What assignors need to know of a member."""

    topics: frozenset[UUID]
    instance_id: str | None = None


Subscribers = Mapping[str, Subscriber]
PartitionCounts = Mapping[UUID, int]
Targets = dict[str, Assignment]
Assignor = Callable[[Subscribers, PartitionCounts, Mapping[str, Assignment]], Targets]
"""`(subscribers by member id, partitions by topic, the targets so far)` to the targets of all subscribers."""


def uniform_assignment(
    subscribers: Subscribers, partition_counts: PartitionCounts, current: Mapping[str, Assignment]
) -> Targets:
    """Spread partitions so that counts differ by at most one if subscriptions allow it, moving as few as possible."""
    if not subscribers:
        return {}
    places = _Places(partition_counts)
    kept = {
        member_id: places.still_valid(current.get(member_id, NOTHING), subscriber)
        for member_id, subscriber in sorted(subscribers.items())
    }
    _drop_doubles(kept)
    unassigned = places.unassigned(subscribers, kept)
    if len({subscriber.topics for subscriber in subscribers.values()}) == 1:
        _fill_evenly(kept, unassigned)
    else:
        sharers = _Sharers(subscribers, places)
        _fill_least_loaded(kept, sharers, unassigned)
        _level(kept, sharers)
    return {member_id: places.assignment(numbers) for member_id, numbers in kept.items()}


def range_assignment(
    subscribers: Subscribers, partition_counts: PartitionCounts, current: Mapping[str, Assignment]
) -> Targets:
    """Split each topic into adjacent ranges, in the order of the members; the first ones get one more."""
    targets: dict[str, dict[UUID, frozenset[int]]] = {member_id: {} for member_id in subscribers}
    order = sorted(subscribers, key=lambda member_id: _range_order(member_id, subscribers[member_id]))
    for topic, count in partition_counts.items():
        takers = [member_id for member_id in order if topic in subscribers[member_id].topics]
        if not takers:
            continue
        share, extra = divmod(count, len(takers))
        first = 0
        for position, member_id in enumerate(takers):
            after = first + share + (position < extra)
            if after > first:
                targets[member_id][topic] = frozenset(range(first, after))
            first = after
    return dict(targets)


def _range_order(member_id: str, subscriber: Subscriber) -> tuple[bool, str]:
    """Static members first, by instance id, so that a restart does not change the order."""
    instance_id = subscriber.instance_id
    return (True, member_id) if instance_id is None else (False, instance_id)


ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": uniform_assignment, "range": range_assignment}
"""By the names that clients and settings use."""


# --- uniform ----------------------------------------------------------------------------------------

_Kept = dict[str, list[int]]
"""Partition numbers (see `_Places`) by member, in the order they were assigned."""


class _Places:
    """Numbers every partition of every topic, in the order of the topics: integers are quick to compare."""

    def __init__(self, partition_counts: PartitionCounts) -> None:
        self._counts = partition_counts
        self._first: dict[UUID, int] = {}
        self.topics: list[UUID] = []
        """By place."""
        for topic, count in partition_counts.items():
            self._first[topic] = len(self.topics)
            self.topics += [topic] * count

    def still_valid(self, assignment: Assignment, subscriber: Subscriber) -> list[int]:
        found: list[int] = []
        for topic, partitions in assignment.items():
            if topic in subscriber.topics and topic in self._first:
                first, count = self._first[topic], self._counts[topic]
                found += [first + number for number in sorted(partitions) if number < count]
        return found

    def unassigned(self, subscribers: Subscribers, kept: _Kept) -> list[int]:
        assigned = {place for places in kept.values() for place in places}
        wanted = frozenset[UUID]().union(*(subscriber.topics for subscriber in subscribers.values()))
        return [
            place
            for topic, first in self._first.items()
            if topic in wanted
            for place in range(first, first + self._counts[topic])
            if place not in assigned
        ]

    def assignment(self, places: list[int]) -> Assignment:
        ordered, position = sorted(places), 0
        found: dict[UUID, frozenset[int]] = {}
        while position < len(ordered):
            topic = self.topics[ordered[position]]
            first = self._first[topic]
            end = bisect_left(ordered, first + self._counts[topic], position)
            found[topic] = frozenset(place - first for place in ordered[position:end])
            position = end
        return found


def _drop_doubles(kept: _Kept) -> None:
    """Targets never overlap, unless the log is damaged: then the first member keeps the partition."""
    seen: set[int] = set()
    for member_id, places in kept.items():
        if not seen.isdisjoint(places):
            kept[member_id] = [place for place in places if place not in seen]
        seen.update(places)


def _fill_evenly(kept: _Kept, unassigned: list[int]) -> None:
    """All members have the same subscription: each gets the quota, some one more, none two more."""
    total = len(unassigned) + sum(map(len, kept.values()))
    quota, extra = divmod(total, len(kept))
    spare: list[int] = []
    for places in kept.values():
        keeps = quota
        if len(places) > quota and extra > 0:
            keeps, extra = quota + 1, extra - 1
        spare += places[keeps:]
        del places[keeps:]
    takers = _turns(kept, quota, extra)
    for place in spare + unassigned:
        kept[next(takers)].append(place)


def _turns(kept: _Kept, quota: int, extra: int) -> Iterator[str]:
    """The members in the order in which they get one more: round robin up to the quota, then once each for the rest."""
    below = [member_id for member_id, places in kept.items() if len(places) < quota]
    while below:
        yield from below
        below = [member_id for member_id in below if len(kept[member_id]) < quota]
    at_quota = [member_id for member_id, places in kept.items() if len(places) == quota]
    yield from at_quota[:extra]


class _Sharers:
    """Members by topic, for groups whose members have different subscriptions."""

    def __init__(self, subscribers: Subscribers, places: _Places) -> None:
        self._topics = places.topics
        self._of: dict[UUID, list[str]] = {}
        for member_id in sorted(subscribers):
            for topic in subscribers[member_id].topics:
                self._of.setdefault(topic, []).append(member_id)

    def of(self, place: int) -> list[str]:
        return self._of[self._topics[place]]

    def least_loaded(self, place: int, kept: _Kept) -> str:
        return min(self.of(place), key=lambda member_id: len(kept[member_id]))


def _fill_least_loaded(kept: _Kept, sharers: _Sharers, unassigned: list[int]) -> None:
    """Assign partitions with the fewest subscribers first, so that the others can balance the load."""
    for place in sorted(unassigned, key=lambda one: len(sharers.of(one))):
        kept[sharers.least_loaded(place, kept)].append(place)


def _level(kept: _Kept, sharers: _Sharers) -> None:
    """Move single partitions while two members differ by two or more; each move narrows a gap, so this terminates."""
    has_moved = True
    while has_moved:
        has_moved = False
        for member_id in sorted(kept, key=lambda one: -len(kept[one])):
            for place in list(kept[member_id]):
                taker = sharers.least_loaded(place, kept)
                if len(kept[member_id]) - len(kept[taker]) >= 2:
                    kept[member_id].remove(place)
                    kept[taker].append(place)
                    has_moved = True
