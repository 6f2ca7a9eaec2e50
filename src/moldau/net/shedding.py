"""Too few file descriptors for all who want to connect: who has to go, and what operators are told. Pure.

Start at `least_missed`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Protocol, TypeVar

__all__ = ["Shortage", "least_missed"]

CALM_TICKS = 10
"""Without a new sign of shortage for this many seconds it is over."""
REMIND_TICKS = 300


class HasActivity(Protocol):
    active_tick: int

    @property
    def is_waiting(self) -> bool: ...


Connection = TypeVar("Connection", bound=HasActivity)


def least_missed(connections: Iterable[Connection], count: int) -> list[Connection]:
    """The connections whose clients will miss them least: those idle longest, before any that waits for a reply."""
    return heapq.nsmallest(count, connections, key=lambda one: (one.is_waiting, one.active_tick))


class Shortage:
    """One line when it begins, one now and then, one when it is over, however many connections come meanwhile."""

    def __init__(self) -> None:
        self._last_tick: int | None = None
        self._next_line_tick = 0

    def begins(self, tick: int, connections: int) -> str | None:
        """Descriptors are short right now; the line to log, if one is due."""
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

    def lasts(self, tick: int) -> None:
        """Nobody was turned away just now, but somebody would be."""
        if self._last_tick is not None:
            self._last_tick = tick

    def ends(self, tick: int) -> str | None:
        """The line to log once no shortage has been seen for a while."""
        if self._last_tick is None or tick - self._last_tick < CALM_TICKS:
            return None
        self._last_tick = None
        return "there are enough file descriptors again, connections are accepted"
