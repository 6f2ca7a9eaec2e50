"""File descriptors: the limits for connections and log files, and what happens when descriptors run short.

A reserve covers everything else: listeners, checkpoints being written, files opened to be synced, the cleaner's
pipes, the operators' port. Connections and segment files get half each of the rest. Over its half, the server refuses
connections and closes idle ones (`net.server`), and the log closes files, which the next append or read opens again
(`log.manager`). So neither can starve the other, and a shortage makes the broker slower but does not stop it.
Start at `DescriptorBudget`.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from collections.abc import Callable
from typing import Final, NamedTuple

from moldau.log.open_files import OPEN_FILES, OpenFiles

__all__ = ["DescriptorBudget", "DescriptorWatch", "current_budget", "raise_limit"]

log = logging.getLogger(__name__)

CHECK_S: Final = 1.0
COMFORTABLE: Final = 4096
"""A lower limit is logged as a warning at start."""
UNLIMITED: Final = 1 << 30
"""The number used when there is no limit."""

_RESERVED_AT_LEAST: Final = 64
_RESERVED_AT_MOST: Final = 512


class DescriptorBudget(NamedTuple):
    limit: int
    connections: int
    log_files: int

    @classmethod
    def of(cls, limit: int) -> DescriptorBudget:
        """Divide `limit` descriptors (RLIMIT_NOFILE); -1 means no limit."""
        if limit < 0 or limit > UNLIMITED:
            limit = UNLIMITED
        reserve = min(limit // 2, _RESERVED_AT_MOST, _RESERVED_AT_LEAST + limit // 16)
        log_files = max(1, (limit - reserve) // 2)
        return cls(limit, max(1, limit - reserve - log_files), log_files)


def current_budget() -> DescriptorBudget:
    """The budget for the current limit, read each time: an operator may change it at run time (`prlimit`)."""
    return DescriptorBudget.of(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def raise_limit() -> None:
    """Raise the limit as far as the system allows, and log it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        log.warning("the limit of open files stays at %d: %s", soft, error)
    budget = current_budget()
    raised = f", raised from {soft}" if budget.limit != soft else ""
    level = logging.INFO if budget.limit >= COMFORTABLE else logging.WARNING
    advice = "" if budget.limit >= COMFORTABLE else "; raise it for more (ulimit -n, or LimitNOFILE= of a systemd unit)"
    log.log(
        level,
        "at most %d open files%s: up to %d connections and %d files of the log at a time%s",
        budget.limit,
        raised,
        budget.connections,
        budget.log_files,
        advice,
    )


class DescriptorWatch:
    """Keeps the log's open files within their share. Created and closed on the event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        release: Callable[[int], None],
        budget: Callable[[], DescriptorBudget] = current_budget,
        files: OpenFiles = OPEN_FILES,
    ) -> None:
        self._loop = loop
        self._release = release
        """Called with the number of files that may stay open; on the loop, between appends."""
        self._budget = budget
        self._files = files
        self._is_asked = False
        self._is_closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._files.watch(self._ask)
        self._check()

    def close(self) -> None:
        """Check one last time, so that closing the log has enough descriptors."""
        if not self._is_closed:
            self._check()
            self._is_closed = True
            self._files.unwatch(self._ask)
            if self._timer is not None:
                self._timer.cancel()

    def _ask(self) -> None:
        """Schedule a check on the loop, because too many files are open. Thread-safe, does not block."""
        if not self._is_asked:
            self._is_asked = True
            try:
                self._loop.call_soon_threadsafe(self._reduce)
            except RuntimeError:
                pass  # the loop is closed: the broker has stopped

    def _check(self) -> None:
        self._files.limit = self._budget().log_files
        self._reduce()
        self._timer = self._loop.call_later(CHECK_S, self._check)

    def _reduce(self) -> None:
        """Close files until an eighth of the limit is free, so that the next file opened does not close another."""
        self._is_asked = False
        if self._files.are_many and not self._is_closed:
            self._release(self._files.limit - self._files.limit // 8)
