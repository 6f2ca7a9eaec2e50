"""How one supervised service goes on: decided from what is seen of its process, without processes or clock.

A service that dies is started again, after a delay that doubles while it keeps dying; one that has never become
healthy is given up after some attempts, because its settings are wrong and a person has to read its log. Start at
`next_step`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

__all__ = ["Action", "Phase", "Seen", "State", "next_step", "restart", "stop"]

FIRST_DELAY_S: Final = 0.5
LONGEST_DELAY_S: Final = 30.0
STEADY_S: Final = 60.0
"""Whoever has been healthy this long starts again without delay when it dies."""
ATTEMPTS: Final = 5
"""How many starts in a row may fail before a service is given up."""


class Phase(Enum):
    WAITING = "waiting"
    """For the services it needs."""
    STARTING = "starting"
    RUNNING = "running"
    DELAYED = "restarting"
    """Ended by itself; started again after a delay."""
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"
    """Given up: it has never become healthy."""


class Action(Enum):
    NONE = "none"
    START = "start"
    TERMINATE = "terminate"
    KILL = "kill"


@dataclass(frozen=True, slots=True)
class Seen:
    """What is seen of a service at one moment."""

    is_alive: bool
    is_healthy: bool
    are_needs_running: bool


@dataclass(frozen=True, slots=True)
class State:
    phase: Phase = Phase.WAITING
    since_s: float = 0.0
    """When this phase began."""
    failures: int = 0
    """How many times in a row it has ended shortly after its start."""
    restarts: int = 0
    """How many times it has ended by itself and was started again."""
    has_run: bool = False
    """Whether it has ever been healthy."""
    must_start_again: bool = False
    """While stopping: a person has asked for a restart."""


def next_step(state: State, seen: Seen, now_s: float, *, stop_s: float) -> tuple[State, Action]:
    """The next state of a service, and what has to be done to its process."""
    match state.phase:
        case Phase.WAITING if seen.is_alive:  # left running by a supervisor that was killed
            return replace(state, phase=Phase.STARTING, since_s=now_s), Action.NONE
        case Phase.WAITING if seen.are_needs_running:
            return replace(state, phase=Phase.STARTING, since_s=now_s), Action.START
        case Phase.STARTING | Phase.RUNNING if not seen.is_alive:
            return _after_death(state, now_s), Action.NONE
        case Phase.STARTING if seen.is_healthy:
            return replace(state, phase=Phase.RUNNING, since_s=now_s, has_run=True), Action.NONE
        case Phase.DELAYED if not seen.is_alive and now_s >= state.since_s + delay_s(state.failures):
            return replace(state, phase=Phase.STARTING, since_s=now_s, restarts=state.restarts + 1), Action.START
        case Phase.STOPPING if not seen.is_alive:
            phase = Phase.WAITING if state.must_start_again else Phase.STOPPED
            return replace(state, phase=phase, since_s=now_s, must_start_again=False), Action.NONE
        case Phase.STOPPING if now_s >= state.since_s + stop_s:
            return state, Action.KILL
    return state, Action.NONE


def _after_death(state: State, now_s: float) -> State:
    was_steady = state.phase is Phase.RUNNING and now_s - state.since_s >= STEADY_S
    failures = 0 if was_steady else state.failures + 1
    is_hopeless = not state.has_run and failures >= ATTEMPTS
    return replace(state, phase=Phase.FAILED if is_hopeless else Phase.DELAYED, since_s=now_s, failures=failures)


def delay_s(failures: int) -> float:
    """How long to wait before the next start."""
    return 0.0 if failures == 0 else min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0 ** (failures - 1))


def stop(state: State, now_s: float, *, is_alive: bool) -> tuple[State, Action]:
    """Stop it for good."""
    if not is_alive:
        return replace(state, phase=Phase.STOPPED, since_s=now_s, must_start_again=False), Action.NONE
    if state.phase is Phase.STOPPING:
        return replace(state, must_start_again=False), Action.NONE
    return replace(state, phase=Phase.STOPPING, since_s=now_s), Action.TERMINATE


def restart(state: State, now_s: float, *, is_alive: bool) -> tuple[State, Action]:
    """Stop it in good order and start it again; one that was given up gets all its attempts again."""
    if not is_alive:
        return State(Phase.WAITING, now_s, restarts=state.restarts), Action.NONE
    if state.phase is Phase.STOPPING:
        return replace(state, must_start_again=True), Action.NONE
    return replace(state, phase=Phase.STOPPING, since_s=now_s, must_start_again=True, failures=0), Action.TERMINATE
