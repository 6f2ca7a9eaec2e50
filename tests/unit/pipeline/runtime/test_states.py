"""States change as Kafka's do, and listeners hear of it."""

from __future__ import annotations

import logging

import pytest

from moldau.pipeline.runtime.states import State, StateMachine


def test_an_application_runs_and_is_closed() -> None:
    machine, heard = StateMachine(), list[tuple[State, State]]()
    machine.listener = lambda new, old: heard.append((new, old))

    for state in (State.REBALANCING, State.RUNNING, State.PENDING_SHUTDOWN, State.NOT_RUNNING):
        assert machine.move(state)

    assert heard == [
        (State.REBALANCING, State.CREATED),
        (State.RUNNING, State.REBALANCING),
        (State.PENDING_SHUTDOWN, State.RUNNING),
        (State.NOT_RUNNING, State.PENDING_SHUTDOWN),
    ]
    assert machine.state.is_final


@pytest.mark.parametrize("state", [State.RUNNING, State.NOT_RUNNING, State.ERROR, State.CREATED])
def test_there_is_no_way_around_the_states_in_between(state: State) -> None:
    machine = StateMachine()

    assert not machine.move(state)
    assert machine.state is State.CREATED


def test_nothing_comes_after_the_end() -> None:
    machine = StateMachine()
    machine.move(State.PENDING_ERROR)
    machine.move(State.ERROR)

    assert not any(machine.move(state) for state in State)


def test_a_listener_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    machine = StateMachine()
    machine.listener = lambda new, old: 1 / 0  # type: ignore[assignment, return-value]

    with caplog.at_level(logging.ERROR, "moldau.streams"):
        assert machine.move(State.REBALANCING)

    assert "the state listener failed on CREATED -> REBALANCING" in caplog.text


def test_waiting_ends_in_time() -> None:
    machine = StateMachine()

    assert not machine.wait_for(lambda state: state is State.RUNNING, 0.01)
    assert machine.wait_for(lambda state: state is State.CREATED, 0.01)
