"""Logs a warning while a pipeline on a cluster waits for executors; Spark itself would wait silently forever.

Start at `ExecutorWatch.look`.
"""

from __future__ import annotations

import logging
from typing import Protocol

__all__ = ["ExecutorWatch", "Executors"]

logger = logging.getLogger("moldau.streams")

PATIENCE_S = 10.0
"""How long to wait before the first warning: executors take seconds to start."""

REMINDER_S = 60.0


class Executors(Protocol):
    """The executors that a cluster has assigned to a driver."""

    @property
    def master(self) -> str:
        """The master that assigns them."""

    def count(self) -> int:
        """The current number of executors."""


class ExecutorWatch:
    """Checks the number of executors from time to time; `executors` is None if Spark runs locally."""

    def __init__(self, name: str, executors: Executors | None) -> None:
        self._name = name
        self._executors = executors
        self._missing_since: float | None = None
        self._reminded: float | None = None

    def look(self, now_s: float) -> None:
        if self._executors is None:
            return
        if (count := self._executors.count()) > 0:
            if self._reminded is not None:
                logger.warning("%s: %s has provided %d executors", self._name, self._executors.master, count)
            self._missing_since = self._reminded = None
            return
        if self._missing_since is None:
            self._missing_since = now_s
        waited_s = now_s - self._missing_since
        if waited_s >= PATIENCE_S and (self._reminded is None or now_s - self._reminded >= REMINDER_S):
            self._reminded = now_s
            logger.warning(
                "%s: no executor from %s for %.0f s. Either all cores are taken (num.stream.threads says how many a "
                "pipeline takes), no worker has spark.executor.memory free, or executors cannot reach the driver "
                "(spark.driver.host)",
                self._name,
                self._executors.master,
                waited_s,
            )
