"""Connector tasks as an engine process hosts them: each is put on the board, from where a carrier takes it.

Start at `ConnectBuilder`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from moldau.connect.runtime.board import Order, TaskBoard
from moldau.core.errors import MoldauError
from moldau.pipeline.runtime.hosting.host import PipelineSpec
from moldau.pipeline.runtime.metrics import MetricsSnapshot, PipelineMetrics
from moldau.pipeline.runtime.states import State, StateMachine

__all__ = ["KIND", "Carriers", "ConnectBuilder", "HostedTask"]

KIND = "connect"


class Carriers(Protocol):
    """Sees to it that the carriers run that the board needs."""

    def ensure(self) -> None:
        """Start carriers that have something to do and do not run; returns at once."""

    def close(self) -> None: ...


class HostedTask:
    """A task of a connector. It has no failure of its own: a failed task is reported, and not started again."""

    def __init__(self, spec: PipelineSpec, board: TaskBoard, carriers: Carriers) -> None:
        self.states = StateMachine()
        self.failure: MoldauError | None = None
        self._spec = spec
        self._board = board
        self._carriers = carriers
        self._order: Order | None = None

    def start(self) -> None:
        self.states.move(State.REBALANCING)
        self._order = self._board.put(self._spec.name, self._spec.definition)
        self._carriers.ensure()
        self.states.move(State.RUNNING)

    def stop(self, timeout_s: float) -> bool:
        """Have the task ended, and wait for it."""
        if not self.states.move(State.PENDING_SHUTDOWN):
            return False
        has_ended = True
        if self._order is not None:
            self._board.remove(self._spec.name)
            has_ended = self._board.wait_until_ended(self._order.run, timeout_s)
        self.states.move(State.NOT_RUNNING)
        return has_ended

    def report(self) -> Mapping[str, Any] | None:
        """What the carrier says of the task; None before it runs."""
        return None if self._order is None else self._board.report(self._order.run)

    def metrics(self) -> MetricsSnapshot:
        return PipelineMetrics().snapshot({})

    def explain(self) -> str:
        return f"{self._spec.name} runs in a long-running Spark task, beside other connector tasks"


class ConnectBuilder:
    """Makes hosted tasks, all on one board."""

    def __init__(self, board: TaskBoard, carriers: Carriers) -> None:
        self._board = board
        self._carriers = carriers

    def build(self, spec: PipelineSpec) -> HostedTask:
        return HostedTask(spec, self._board, self._carriers)

    def delete_state(self, spec: PipelineSpec) -> None:
        """Nothing: offsets are in topics."""
