"""The server's assignors: everything is assigned once, evenly, and little moves."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from moldau.coordinator.group.consumer.assignment import Assignment
from moldau.coordinator.group.consumer.assignors import Subscriber, range_assignment, uniform_assignment

A, B, C = (UUID(int=number) for number in (1, 2, 3))
COUNTS = st.dictionaries(st.sampled_from([A, B, C]), st.integers(1, 9), min_size=1)
MEMBERS = st.dictionaries(
    st.text("abcd", min_size=1, max_size=2), st.frozensets(st.sampled_from([A, B, C])), min_size=1
)


def subscribers(members: dict[str, frozenset[UUID]]) -> dict[str, Subscriber]:
    return {member_id: Subscriber(topics) for member_id, topics in members.items()}


def load(assignment: Assignment) -> int:
    return sum(map(len, assignment.values()))


def owners(targets: dict[str, Assignment]) -> dict[tuple[UUID, int], str]:
    found: dict[tuple[UUID, int], str] = {}
    for member_id, assignment in targets.items():
        for topic, partitions in assignment.items():
            for partition in partitions:
                assert (topic, partition) not in found, "assigned twice"
                found[topic, partition] = member_id
    return found


@given(MEMBERS, COUNTS)
def test_every_partition_somebody_asks_for_is_assigned_once(
    members: dict[str, frozenset[UUID]], counts: dict[UUID, int]
) -> None:
    for assignor in (uniform_assignment, range_assignment):
        found = owners(assignor(subscribers(members), counts, {}))
        asked = {topic for topics in members.values() for topic in topics}
        assert set(found) == {(topic, p) for topic, count in counts.items() if topic in asked for p in range(count)}
        assert all(topic in members[member_id] for (topic, _), member_id in found.items())


@given(MEMBERS, MEMBERS, COUNTS)
def test_uniform_leaves_nobody_who_could_hand_over_to_a_member_with_two_fewer(
    before: dict[str, frozenset[UUID]], members: dict[str, frozenset[UUID]], counts: dict[UUID, int]
) -> None:
    targets = uniform_assignment(subscribers(members), counts, uniform_assignment(subscribers(before), counts, {}))
    for (topic, _), giver in owners(targets).items():
        for taker, topics in members.items():
            assert topic not in topics or load(targets[giver]) - load(targets[taker]) < 2


@given(MEMBERS, COUNTS)
def test_uniform_moves_nothing_when_nothing_changed(
    members: dict[str, frozenset[UUID]], counts: dict[UUID, int]
) -> None:
    targets = uniform_assignment(subscribers(members), counts, {})
    assert uniform_assignment(subscribers(members), counts, targets) == targets


def test_uniform_takes_from_each_member_only_what_a_newcomer_is_due() -> None:
    alike = dict.fromkeys(("a", "b"), Subscriber(frozenset([A])))
    before = uniform_assignment(alike, {A: 6}, {})
    after = uniform_assignment({**alike, "c": Subscriber(frozenset([A]))}, {A: 6}, before)
    assert [load(after[one]) for one in "abc"] == [2, 2, 2]
    assert after["a"][A] < before["a"][A]
    assert after["b"][A] < before["b"][A]


def test_members_beyond_the_partitions_stay_idle() -> None:
    targets = uniform_assignment(dict.fromkeys("abc", Subscriber(frozenset([A]))), {A: 2}, {})
    assert sorted(map(load, targets.values())) == [0, 1, 1]


def test_range_splits_topics_alike_and_gives_the_first_members_more() -> None:
    targets = range_assignment(dict.fromkeys("ab", Subscriber(frozenset([A, B]))), {A: 3, B: 3}, {})
    assert targets == {
        "a": {A: frozenset([0, 1]), B: frozenset([0, 1])},
        "b": {A: frozenset([2]), B: frozenset([2])},
    }


def test_range_goes_by_instance_ids_whatever_the_member_ids_are() -> None:
    members = {"z": Subscriber(frozenset([A]), "first"), "a": Subscriber(frozenset([A]), "second")}
    assert range_assignment(members, {A: 2}, {}) == {"z": {A: frozenset([0])}, "a": {A: frozenset([1])}}
