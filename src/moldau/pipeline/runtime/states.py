"""The states of a pipeline, by Kafka's names, and a listener for changes. Start at `StateMachine`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from enum import Enum

__all__ = ["State", "StateListener", "StateMachine"]

logger = logging.getLogger("moldau.streams")


class State(Enum):
    """The state of a pipeline."""

    CREATED = "CREATED"
    REBALANCING = "REBALANCING"
    RUNNING = "RUNNING"
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
    NOT_RUNNING = "NOT_RUNNING"
    PENDING_ERROR = "PENDING_ERROR"
    ERROR = "ERROR"

    @property
    def is_final(self) -> bool:
        return self in (State.NOT_RUNNING, State.ERROR)

    @property
    def is_running_or_rebalancing(self) -> bool:
        return self in (State.RUNNING, State.REBALANCING)


StateListener = Callable[[State, State], None]
"""Called with the new and the old state, by the thread that changes it; exceptions are logged."""

_NEXT = {
    State.CREATED: {State.REBALANCING, State.PENDING_SHUTDOWN, State.PENDING_ERROR},
    State.REBALANCING: {State.RUNNING, State.PENDING_SHUTDOWN, State.PENDING_ERROR},
    State.RUNNING: {State.REBALANCING, State.PENDING_SHUTDOWN, State.PENDING_ERROR},
    State.PENDING_SHUTDOWN: {State.NOT_RUNNING},
    State.PENDING_ERROR: {State.ERROR},
    State.NOT_RUNNING: set[State](),
    State.ERROR: set[State](),
}


class StateMachine:
    """One pipeline's state; allows only transitions that Kafka Streams allows."""

    def __init__(self) -> None:
        self._state = State.CREATED
        self._condition = threading.Condition()
        self.listener: StateListener | None = None

    @property
    def state(self) -> State:
        return self._state

    def move(self, to: State) -> bool:
        """Change the state; False if this transition is not allowed, as when two threads stop at once."""
        with self._condition:
            before = self._state
            if to not in _NEXT[before]:
                return False
            self._state = to
            self._condition.notify_all()
        if self.listener is not None:
            try:
                self.listener(to, before)
            except Exception:
                logger.exception("the state listener failed on %s -> %s", before.value, to.value)
        return True

    def wait_for(self, wanted: Callable[[State], bool], timeout_s: float | None = None) -> bool:
        """Wait until `wanted` is true for the state; False after the timeout."""
        with self._condition:
            return self._condition.wait_for(lambda: wanted(self._state), timeout_s)
