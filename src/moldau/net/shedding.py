"""Too few file descriptors for all connections: which are closed, and when that is logged. Pure.

Start at `idle_longest`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Protocol, TypeVar

__all__ = ["Shortage", "idle_longest"]

CALM_TICKS = 10
"""A shortage is over when there was no new sign of it for this many seconds."""
REMIND_TICKS = 300


class HasActivity(Protocol):
    active_tick: int

    @property
    def is_waiting(self) -> bool: ...


Connection = TypeVar("Connection", bound=HasActivity)


def idle_longest(connections: Iterable[Connection], count: int) -> list[Connection]:
    """Up to `count` connections, those idle longest first; any that waits for a reply comes last."""
    return heapq.nsmallest(count, connections, key=lambda one: (one.is_waiting, one.active_tick))


class Shortage:
    """Decides when to log a shortage: once at its start, reminders at intervals, once at its end."""

    def __init__(self) -> None:
        self._last_tick: int | None = None
        self._next_line_tick = 0

    def note_shortage(self, tick: int, connections: int) -> str | None:
        """A connection was rejected or closed for lack of a descriptor; returns the line to log, if one is due."""
        is_new = self._last_tick is None
        self._last_tick = tick
        if not is_new and tick < self._next_line_tick:
            return None
        self._next_line_tick = tick + REMIND_TICKS
        return (
            f"{'' if is_new else 'still '}too few file descriptors, with {connections} connections open: new ones are "
            "turned away and idle ones closed, so that the log can be written; raise the limit of open files "
            "(ulimit -n, or LimitNOFILE= of a systemd unit)"
        )

    def note_full(self, tick: int) -> None:
        """All descriptors are in use, though no connection was rejected just now: the shortage continues."""
        if self._last_tick is not None:
            self._last_tick = tick

    def end_if_calm(self, tick: int) -> str | None:
        """End the shortage if there was no sign of it for a while; returns the line to log then."""
        if self._last_tick is None or tick - self._last_tick < CALM_TICKS:
            return None
        self._last_tick = None
        return "there are enough file descriptors again, connections are accepted"
