"""Assignments: sets of partitions by topic, and the set operations on them.

By topic id and immutable; a topic without partitions is left out, so equal assignments compare equal. Start at
`Assignment`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final
from uuid import UUID

from moldau.protocol.coordinator_records import TopicPartitions

__all__ = [
    "NOTHING",
    "Assignment",
    "assignment_of",
    "common",
    "is_within",
    "overlaps",
    "topic_partitions",
    "union",
    "without",
]

Assignment = Mapping[UUID, frozenset[int]]
NOTHING: Final[Assignment] = MappingProxyType({})


def assignment_of(topics: Iterable[tuple[UUID | None, Iterable[int]]]) -> Assignment:
    """From pairs of topic id and partitions, as in requests and records; a topic named twice is merged."""
    assignment: dict[UUID, frozenset[int]] = {}
    for topic, partitions in topics:
        if topic is not None and (numbers := frozenset(partitions)):
            assignment[topic] = assignment.get(topic, frozenset()) | numbers
    return assignment


def topic_partitions(assignment: Assignment) -> tuple[TopicPartitions, ...]:
    """As in records, in the same order for equal assignments."""
    return tuple(
        TopicPartitions(topic_id=topic, partitions=tuple(sorted(assignment[topic]))) for topic in sorted(assignment)
    )


def common(left: Assignment, right: Assignment) -> Assignment:
    return {topic: both for topic, numbers in left.items() if topic in right and (both := numbers & right[topic])}


def without(left: Assignment, right: Assignment) -> Assignment:
    return {topic: rest for topic, numbers in left.items() if (rest := numbers - right.get(topic, frozenset()))}


def union(left: Assignment, right: Assignment) -> Assignment:
    return {topic: left.get(topic, frozenset()) | right.get(topic, frozenset()) for topic in {*left, *right}}


def overlaps(left: Assignment, right: Assignment) -> bool:
    return any(not numbers.isdisjoint(right.get(topic, ())) for topic, numbers in left.items())


def is_within(part: Assignment, whole: Assignment) -> bool:
    return all(numbers <= whole.get(topic, frozenset()) for topic, numbers in part.items())
