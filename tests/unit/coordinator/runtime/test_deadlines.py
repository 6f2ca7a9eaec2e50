from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.coordinator.runtime.deadlines import Deadlines

CHANGES = st.lists(
    st.tuples(st.sampled_from("abcd"), st.one_of(st.none(), st.integers(0, 50))),
    max_size=40,
)


def drained(deadlines: Deadlines, now_ms: int) -> list[object]:
    found = []
    while (key := deadlines.pop_due(now_ms)) is not None:
        found.append(key)
    return found


def test_a_deadline_put_off_is_reached_at_its_later_time() -> None:
    deadlines = Deadlines()
    deadlines.set("session", 10)
    deadlines.set("session", 20)
    assert deadlines.next_ms() == 10
    assert drained(deadlines, 19) == []
    assert deadlines.next_ms() == 20
    assert drained(deadlines, 20) == ["session"]
    assert deadlines.next_ms() is None


def test_a_deadline_brought_forward_is_reached_once() -> None:
    deadlines = Deadlines()
    deadlines.set("join", 30)
    deadlines.set("join", 10)
    assert drained(deadlines, 100) == ["join"]


def test_a_cancelled_deadline_never_comes() -> None:
    deadlines = Deadlines()
    deadlines.set("sync", 10)
    deadlines.cancel("sync")
    assert drained(deadlines, 100) == []
    deadlines.set("sync", 110)
    assert drained(deadlines, 200) == ["sync"]


@given(CHANGES, st.integers(0, 50))
def test_exactly_the_deadlines_that_have_come_are_due_and_none_is_slept_through(
    changes: list[tuple[str, int | None]], now_ms: int
) -> None:
    deadlines, expected = Deadlines(), dict[str, int]()
    for key, deadline_ms in changes:
        if deadline_ms is None:
            deadlines.cancel(key)
            expected.pop(key, None)
        else:
            deadlines.set(key, deadline_ms)
            expected[key] = deadline_ms
    if expected:
        next_ms = deadlines.next_ms()
        assert next_ms is not None
        assert next_ms <= min(expected.values())
    assert sorted(map(str, drained(deadlines, now_ms))) == sorted(k for k, at in expected.items() if at <= now_ms)
    assert sorted(map(str, drained(deadlines, 50))) == sorted(k for k, at in expected.items() if at > now_ms)
