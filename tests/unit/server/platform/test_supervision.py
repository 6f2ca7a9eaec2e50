"""A service that dies is started again; one that never gets healthy is given up; a stop ends all of that."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.server.platform.supervision import (
    ATTEMPTS,
    LONGEST_DELAY_S,
    STEADY_S,
    Action,
    Phase,
    Seen,
    State,
    delay_s,
    next_step,
    restart,
    stop,
)

READY = Seen(is_alive=False, is_healthy=False, are_needs_running=True)
ALIVE = Seen(is_alive=True, is_healthy=False, are_needs_running=True)
HEALTHY = Seen(is_alive=True, is_healthy=True, are_needs_running=True)
RUNNING = State(Phase.RUNNING, 0.0, has_run=True)


def step(state: State, seen: Seen, now_s: float) -> tuple[State, Action]:
    return next_step(state, seen, now_s, stop_s=20)


def test_it_waits_for_what_it_needs_and_runs_once_it_is_healthy() -> None:
    waiting = Seen(is_alive=False, is_healthy=False, are_needs_running=False)
    state, action = step(State(), waiting, 1)
    assert (state.phase, action) == (Phase.WAITING, Action.NONE)
    state, action = step(state, READY, 2)
    assert (state.phase, action) == (Phase.STARTING, Action.START)
    state, action = step(state, ALIVE, 3)
    assert (state.phase, action) == (Phase.STARTING, Action.NONE)
    state, action = step(state, HEALTHY, 4)
    assert (state.phase, action, state.has_run) == (Phase.RUNNING, Action.NONE, True)


def test_what_still_runs_is_taken_over_and_not_started_twice() -> None:
    state, action = step(State(), HEALTHY, 1)
    assert (state.phase, action) == (Phase.STARTING, Action.NONE)
    assert step(state, HEALTHY, 2) == (State(Phase.RUNNING, 2, has_run=True), Action.NONE)


def test_one_that_ran_for_long_starts_again_at_once() -> None:
    state, action = step(RUNNING, READY, STEADY_S)
    assert (state.phase, state.failures, action) == (Phase.DELAYED, 0, Action.NONE)
    state, action = step(state, READY, STEADY_S)
    assert (state.phase, state.restarts, action) == (Phase.STARTING, 1, Action.START)


def test_one_that_never_gets_healthy_is_given_up_and_a_restart_tries_again() -> None:
    state, starts, now_s = State(), 0, 0.0
    while state.phase is not Phase.FAILED:
        now_s += LONGEST_DELAY_S
        state, action = step(state, READY, now_s)
        starts += action is Action.START
    assert starts == ATTEMPTS
    state, _ = restart(state, now_s, is_alive=False)
    assert step(state, READY, now_s)[1] is Action.START


def test_one_that_has_run_is_never_given_up() -> None:
    state, starts = RUNNING, 0
    for minute in range(1, 100):
        state, action = step(state, READY, 60.0 * minute)
        starts += action is Action.START
    assert starts > ATTEMPTS
    assert delay_s(state.failures) == LONGEST_DELAY_S


def test_a_restart_stops_it_in_good_order_first() -> None:
    state, action = restart(RUNNING, 1, is_alive=True)
    assert (state.phase, action) == (Phase.STOPPING, Action.TERMINATE)
    state, action = step(state, HEALTHY, 2)
    assert (state.phase, action) == (Phase.STOPPING, Action.NONE)
    state, action = step(state, READY, 3)
    assert (state.phase, action) == (Phase.WAITING, Action.NONE)
    assert step(state, READY, 3)[1] is Action.START


def test_one_that_does_not_stop_in_time_is_killed() -> None:
    state, action = stop(RUNNING, 100, is_alive=True)
    assert action is Action.TERMINATE
    assert step(state, HEALTHY, 119)[1] is Action.NONE
    assert step(state, HEALTHY, 120)[1] is Action.KILL
    assert step(state, READY, 121)[0].phase is Phase.STOPPED


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans(), st.floats(0, 100)), max_size=50))
def test_nothing_is_started_while_it_is_alive_or_after_a_stop(facts: list[tuple[bool, bool, bool, float]]) -> None:
    state, now_s = State(), 0.0
    for is_alive, is_healthy, are_needs_running, passed_s in facts:
        now_s += passed_s
        state, action = step(state, Seen(is_alive, is_healthy, are_needs_running), now_s)
        assert not (action is Action.START and is_alive), "two processes of one service"
    state, _ = stop(state, now_s, is_alive=False)
    for is_alive, is_healthy, are_needs_running, passed_s in facts:
        now_s += passed_s
        state, action = step(state, Seen(is_alive, is_healthy, are_needs_running), now_s)
        assert action is not Action.START
