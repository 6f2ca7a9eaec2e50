"""A pipeline on a cluster that waits for executors says so: Spark would wait for ever without a word.

Start at `ExecutorWatch.look`.
"""

from __future__ import annotations

import logging
from typing import Protocol

__all__ = ["ExecutorWatch", "Executors"]

logger = logging.getLogger("moldau.streams")

PATIENCE_S = 10.0
"""Executors take seconds to start."""

REMINDER_S = 60.0


class Executors(Protocol):
    """What a cluster gives to a driver."""

    @property
    def master(self) -> str:
        """Who gives them."""

    def count(self) -> int:
        """How many there are just now."""


class ExecutorWatch:
    """Looks at the number of executors now and then; there are none to look at where everything runs here."""

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
                logger.warning("%s: %s has given %d executors", self._name, self._executors.master, count)
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
