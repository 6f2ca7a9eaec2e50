from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.connect.worker.assignment import Assignment, Assignor
from moldau.connect.worker.config_state import TaskId


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def tasks(*counts: int) -> set[TaskId]:
    return {TaskId(f"c{index}", number) for index, count in enumerate(counts) for number in range(count)}


def spread(found: dict[str, Assignment]) -> list[int]:
    return sorted(len(one.tasks) for one in found.values())


def test_new_work_is_spread_evenly() -> None:
    found = Assignor(0, Clock()).assign({"a": Assignment(), "b": Assignment()}, {"c0", "c1"}, tasks(3, 2))
    assert spread(found) == [2, 3]
    assert sorted(len(one.connectors) for one in found.values()) == [1, 1]


def test_work_stays_where_it_is_and_only_the_surplus_moves() -> None:
    assignor = Assignor(0, Clock())
    first = assignor.assign({"a": Assignment()}, {"c0"}, tasks(4))
    second = assignor.assign({"a": first["a"], "b": Assignment()}, {"c0"}, tasks(4))
    assert spread(second) == [2, 2]
    assert second["a"].tasks < first["a"].tasks


def test_without_a_delay_the_work_of_a_lost_worker_moves_at_once() -> None:
    assignor = Assignor(0, Clock())
    first = assignor.assign({"a": Assignment(), "b": Assignment()}, {"c0"}, tasks(4))
    second = assignor.assign({"a": first["a"]}, {"c0"}, tasks(4))
    assert second["a"].tasks == tasks(4)
    assert assignor.remaining_delay_s is None


def test_the_work_of_a_lost_worker_waits_for_its_return() -> None:
    clock = Clock()
    assignor = Assignor(300, clock)
    first = assignor.assign({"a": Assignment(), "b": Assignment()}, {"c0"}, tasks(4))
    clock.now = 10
    second = assignor.assign({"a": first["a"]}, {"c0"}, tasks(4))
    assert second["a"].tasks == first["a"].tasks
    assert assignor.remaining_delay_s == 300
    clock.now = 100
    back = assignor.assign({"a": second["a"], "b": first["b"]}, {"c0"}, tasks(4))
    assert back == first
    assert assignor.remaining_delay_s is None


def test_after_the_delay_the_work_moves() -> None:
    clock = Clock()
    assignor = Assignor(300, clock)
    first = assignor.assign({"a": Assignment(), "b": Assignment()}, {"c0"}, tasks(4))
    second = assignor.assign({"a": first["a"]}, {"c0"}, tasks(4))
    clock.now = 301
    third = assignor.assign({"a": second["a"]}, {"c0"}, tasks(4))
    assert third["a"].tasks == tasks(4)


@given(
    held=st.dictionaries(st.sampled_from("abcd"), st.sets(st.sampled_from(sorted(tasks(3, 3, 3)))), min_size=1),
    wanted=st.sets(st.sampled_from(sorted(tasks(3, 3, 3)))),
)
def test_everything_wanted_runs_exactly_once_and_evenly(held: dict[str, set[TaskId]], wanted: set[TaskId]) -> None:
    before = {worker: Assignment(tasks=frozenset(own)) for worker, own in held.items()}
    found = Assignor(0, Clock()).assign(before, set(), wanted)
    assert sorted(one for each in found.values() for one in each.tasks) == sorted(wanted)
    assert max(spread(found)) - min(spread(found)) <= 1
