"""Which connector tasks run in which carrier: the meeting point of the engine process and its long-running Spark tasks.

A carrier is a Spark task that hosts connector tasks. It comes again and again with reports on its tasks, and gets the
orders for what it should run (`sync`). Nothing is lost when a carrier is killed: its successor gets the same orders.
Threads of the engine process use the board directly, carriers through `channel`. Start at `TaskBoard`.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Order", "TaskBoard"]

Report = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Order:
    """A task that a carrier should run; JSON in `definition`."""

    key: str
    run: str
    """Differs for each time the task is started."""
    definition: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        return {"key": self.key, "run": self.run, "definition": dict(self.definition)}


@dataclass
class _Carrier:
    life: str = ""
    """Differs for each attempt of the Spark task."""
    seen: float = 0.0
    alive: dict[str, Report] = field(default_factory=dict)
    """By run: the tasks that the carrier has not ended yet."""


class TaskBoard:
    """All methods may be called by any thread."""

    def __init__(self, tasks_per_carrier: int = 8) -> None:
        self._tasks_per_carrier = tasks_per_carrier
        self._orders: dict[str, Order] = {}
        self._places: dict[str, int] = {}
        self._reports: dict[str, Report] = {}
        """By run, the last one."""
        self._carriers: dict[int, _Carrier] = {}
        self._changed = threading.Condition()
        self.version = 0
        """Grows with each change of the orders."""

    def put(self, key: str, definition: Mapping[str, Any]) -> Order:
        """Have a task run in some carrier."""
        with self._changed:
            order = Order(key, uuid.uuid4().hex, definition)
            self._orders[key] = order
            if key not in self._places:
                self._places[key] = self._free_carrier()
            self._note_change()
            return order

    def remove(self, key: str) -> None:
        """Have a task ended."""
        with self._changed:
            order = self._orders.pop(key, None)
            self._places.pop(key, None)
            if order is not None:
                self._reports.pop(order.run, None)
            self._note_change()

    def wait_until_ended(self, run: str, timeout_s: float) -> bool:
        """Wait until no carrier runs this; False after the timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._is_alive(run), timeout_s)

    def report(self, run: str) -> Report | None:
        """What a task's carrier has said of it last; None before that."""
        with self._changed:
            return self._reports.get(run)

    @property
    def carriers_needed(self) -> frozenset[int]:
        """The numbers of the carriers that have something to do."""
        with self._changed:
            return frozenset(self._places.values())

    def forget_carrier(self, number: int) -> None:
        """A carrier has ended, whatever it said last."""
        with self._changed:
            self._carriers.pop(number, None)
            self._changed.notify_all()

    def sync(self, number: int, life: str, reports: Mapping[str, Report]) -> list[Order]:
        """A carrier's report on the tasks that live in it, by run; returns what it should run."""
        with self._changed:
            carrier = self._carriers.setdefault(number, _Carrier())
            carrier.life, carrier.seen, carrier.alive = life, time.monotonic(), dict(reports)
            runs = {order.run for order in self._orders.values()}
            self._reports.update({run: report for run, report in reports.items() if run in runs})
            self._changed.notify_all()
            return [self._orders[key] for key, place in self._places.items() if place == number]

    def wait_for_change(self, version: int, timeout_s: float) -> None:
        """Return when the orders have changed since `version`, or after the timeout."""
        with self._changed:
            self._changed.wait_for(lambda: self.version != version, timeout_s)

    def _is_alive(self, run: str) -> bool:
        return any(run in carrier.alive for carrier in self._carriers.values())

    def _free_carrier(self) -> int:
        counts: dict[int, int] = {}
        for place in self._places.values():
            counts[place] = counts.get(place, 0) + 1
        number = 0
        while counts.get(number, 0) >= self._tasks_per_carrier:
            number += 1
        return number

    def _note_change(self) -> None:
        self.version += 1
        self._changed.notify_all()
