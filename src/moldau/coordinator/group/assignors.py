"""The server's assignors: who is to have which partitions of the topics a group subscribes to.

`uniform` spreads partitions evenly and moves as few as it can; `range` gives each member neighbouring partitions of
every topic, so that topics with as many partitions as one another are split alike. Targets only: how members get
there without two of them holding a partition is `consumer_reconciliation`. Start at `ASSIGNORS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from moldau.coordinator.group.consumer_assignment import NOTHING, Assignment

__all__ = ["ASSIGNORS", "Assignor", "Subscriber", "range_assignment", "uniform_assignment"]


class Subscriber(NamedTuple):
    """A member as far as assignors care."""

    topics: frozenset[UUID]
    instance_id: str | None = None


Subscribers = Mapping[str, Subscriber]
PartitionCounts = Mapping[UUID, int]
Targets = dict[str, Assignment]
Assignor = Callable[[Subscribers, PartitionCounts, Mapping[str, Assignment]], Targets]
"""`(subscribers by member id, partitions by topic, the targets so far)` to the targets of all subscribers."""

_Partition = tuple[UUID, int]


def uniform_assignment(
    subscribers: Subscribers, partition_counts: PartitionCounts, current: Mapping[str, Assignment]
) -> Targets:
    """Spread partitions so that nobody could hand one to a member with two fewer; what need not move stays."""
    if not subscribers:
        return {}
    kept = {
        member_id: _still_valid(current.get(member_id, NOTHING), subscriber, partition_counts)
        for member_id, subscriber in sorted(subscribers.items())
    }
    _drop_doubles(kept)
    alike = len({subscriber.topics for subscriber in subscribers.values()}) == 1
    if alike:
        _fill_evenly(kept, _unassigned(subscribers, partition_counts, kept))
    else:
        _fill_least_loaded(kept, _Sharers(subscribers), _unassigned(subscribers, partition_counts, kept))
        _level(kept, _Sharers(subscribers))
    return {member_id: _grouped(partitions) for member_id, partitions in kept.items()}


def range_assignment(
    subscribers: Subscribers, partition_counts: PartitionCounts, current: Mapping[str, Assignment]
) -> Targets:
    """Split each topic into neighbouring runs, in the order of the members; the first ones get one more."""
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
    """Static members first and by their own names, so that a restart does not change the order."""
    instance_id = subscriber.instance_id
    return (True, member_id) if instance_id is None else (False, instance_id)


ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": uniform_assignment, "range": range_assignment}
"""By the names clients and settings use."""


# --- uniform ----------------------------------------------------------------------------------------


def _still_valid(assignment: Assignment, subscriber: Subscriber, partition_counts: PartitionCounts) -> list[_Partition]:
    return [
        (topic, partition)
        for topic, partitions in assignment.items()
        if topic in subscriber.topics
        for partition in sorted(partitions)
        if partition < partition_counts.get(topic, 0)
    ]


def _drop_doubles(kept: dict[str, list[_Partition]]) -> None:
    """Targets never overlap, but what a damaged log says might: the first member keeps a partition."""
    seen: set[_Partition] = set()
    for member_id, partitions in kept.items():
        kept[member_id] = [one for one in partitions if one not in seen]
        seen.update(kept[member_id])


def _unassigned(
    subscribers: Subscribers, partition_counts: PartitionCounts, kept: Mapping[str, list[_Partition]]
) -> list[_Partition]:
    assigned = {one for partitions in kept.values() for one in partitions}
    wanted = {topic for subscriber in subscribers.values() for topic in subscriber.topics}
    return [
        (topic, partition)
        for topic, count in partition_counts.items()
        if topic in wanted
        for partition in range(count)
        if (topic, partition) not in assigned
    ]


def _fill_evenly(kept: dict[str, list[_Partition]], unassigned: list[_Partition]) -> None:
    """All members subscribe to the same: everybody gets the quota, some one more, nobody two more."""
    total = len(unassigned) + sum(map(len, kept.values()))
    quota, extra = divmod(total, len(kept))
    spare: list[_Partition] = []
    for partitions in kept.values():
        keeps = quota
        if len(partitions) > quota and extra > 0:
            keeps, extra = quota + 1, extra - 1
        spare += partitions[keeps:]
        del partitions[keeps:]
    takers = _turns(kept, quota, extra)
    for one in spare + unassigned:
        kept[next(takers)].append(one)


def _turns(kept: Mapping[str, list[_Partition]], quota: int, extra: int) -> Iterator[str]:
    """Whose turn it is to get one more: around the circle while below the quota, then once each for the rest."""
    below = [member_id for member_id, partitions in kept.items() if len(partitions) < quota]
    while below:
        yield from below
        below = [member_id for member_id in below if len(kept[member_id]) < quota]
    at_quota = [member_id for member_id, partitions in kept.items() if len(partitions) == quota]
    yield from at_quota[:extra]


class _Sharers:
    """Members by topic, for groups whose members subscribe to different ones."""

    def __init__(self, subscribers: Subscribers) -> None:
        self.of: dict[UUID, list[str]] = {}
        for member_id in sorted(subscribers):
            for topic in subscribers[member_id].topics:
                self.of.setdefault(topic, []).append(member_id)

    def least_loaded(self, topic: UUID, kept: Mapping[str, list[_Partition]]) -> str:
        return min(self.of[topic], key=lambda member_id: len(kept[member_id]))


def _fill_least_loaded(kept: dict[str, list[_Partition]], sharers: _Sharers, unassigned: list[_Partition]) -> None:
    """Partitions that few can take go first, so that the others can make up for them."""
    for topic, partition in sorted(unassigned, key=lambda one: len(sharers.of[one[0]])):
        kept[sharers.least_loaded(topic, kept)].append((topic, partition))


def _level(kept: dict[str, list[_Partition]], sharers: _Sharers) -> None:
    """Move single partitions while that narrows a gap of two or more; each move does, so this ends."""
    has_moved = True
    while has_moved:
        has_moved = False
        for member_id in sorted(kept, key=lambda one: -len(kept[one])):
            for one in list(kept[member_id]):
                taker = sharers.least_loaded(one[0], kept)
                if len(kept[member_id]) - len(kept[taker]) >= 2:
                    kept[member_id].remove(one)
                    kept[taker].append(one)
                    has_moved = True


def _grouped(partitions: list[_Partition]) -> Assignment:
    grouped: dict[UUID, set[int]] = {}
    for topic, partition in partitions:
        grouped.setdefault(topic, set()).add(partition)
    return {topic: frozenset(numbers) for topic, numbers in grouped.items()}
