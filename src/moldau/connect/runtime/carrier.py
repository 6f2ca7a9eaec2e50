"""A carrier: hosts connector tasks, each in a thread, and runs what it is ordered to.

It is the body of a long-running Spark task, or of a thread where there is no Spark. Start at `Carrier.run`.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from moldau.connect.runtime.board import Order
from moldau.connect.runtime.task_run import TaskRun, start_task

__all__ = ["Carrier", "Sync"]

SYNC_LOST_S = 15.0
"""A carrier that cannot reach its engine for so long ends: another one may run its tasks by then."""
PAUSE_S = 0.2

Sync = Callable[[str, Mapping[str, Any], float], "list[Order] | None"]
"""Given the carrier's life, the reports by run and how long to wait for news: the orders; None to end."""

logger = logging.getLogger("moldau.connect")


class Carrier:
    def __init__(self, sync: Sync, start: Callable[[Order], TaskRun] = start_task) -> None:
        self._sync = sync
        self._start = start
        self._life = uuid.uuid4().hex
        self._runs: dict[str, TaskRun] = {}
        """By run: the tasks whose threads live, or that have failed."""

    def run(self) -> None:
        """Run tasks until there is nothing to do any more, or the engine is gone."""
        reached = time.monotonic()
        try:
            while True:
                try:
                    orders = self._sync(self._life, self._reports(), PAUSE_S)
                except OSError as error:
                    if time.monotonic() - reached > SYNC_LOST_S:
                        logger.warning("the engine cannot be reached, its tasks end here: %s", error)
                        return
                    time.sleep(PAUSE_S)
                    continue
                reached = time.monotonic()
                if orders is None:
                    return
                self._follow(orders)
        finally:
            self._end_all()

    def _reports(self) -> dict[str, Any]:
        return {run: task.report() for run, task in self._runs.items()}

    def _follow(self, orders: list[Order]) -> None:
        wanted = {order.run: order for order in orders}
        for run, task in list(self._runs.items()):
            if run in wanted:
                continue
            task.ask_to_stop()
            if task.has_ended or task.is_overdue:
                del self._runs[run]
        busy = {task.key for run, task in self._runs.items() if run not in wanted}
        for run, order in wanted.items():
            if run not in self._runs and order.key not in busy:
                self._runs[run] = self._start(order)

    def _end_all(self) -> None:
        for task in self._runs.values():
            task.ask_to_stop()
        for task in self._runs.values():
            task.wait_until_ended()
