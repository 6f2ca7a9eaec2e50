"""Fetches that wait for data or for a timeout.

A fetch waits at every partition it reads, and at its session, which watches the others. An append marks its partition;
once per loop iteration all fetches waiting at a marked partition retry, however many appends there were. Deadlines are
kept in one heap, and the deadline of an answered fetch stays there until it is reached. Start at `ParkedFetches.park`.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from moldau.broker.data.fetch_session import FetchSession
    from moldau.broker.partition import Partition

__all__ = ["ParkedFetch", "ParkedFetches", "Waiter"]

Retry = Callable[["Collection[Partition] | None"], bool]

STALE_DEADLINES_KEPT = 4096
"""Deadlines of answered fetches in the heap beyond which it is purged, for clients with timeouts of days."""


class Waiter(Protocol):
    """What waits at a partition."""

    def on_mark(self, partition: Partition, woken: dict[ParkedFetch, None]) -> None:
        """The partition is marked: add the fetches that have to retry."""


class ParkedFetch:
    """One waiting fetch.

    `retry(changed)` answers it and returns true, or returns false to keep waiting; `None` means that its time is up.
    """

    __slots__ = ("partitions", "retry", "session")

    def __init__(self, partitions: Sequence[Partition], retry: Retry, session: FetchSession | None = None) -> None:
        self.partitions = partitions
        self.retry: Retry | None = retry
        self.session = session

    def on_mark(self, partition: Partition, woken: dict[ParkedFetch, None]) -> None:
        woken[self] = None

    def wait_at(self, partitions: Sequence[Partition]) -> None:
        """Wait at these too."""
        if partitions:
            self.partitions = [*self.partitions, *partitions]
            for partition in partitions:
                partition.waiting.add(self)


class ParkedFetches:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._deadlines: list[tuple[float, int, ParkedFetch]] = []
        self._parked = 0
        self._marked: set[Partition] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self.count = 0
        """Gauge: fetches waiting now."""
        self.expired = 0

    def park(self, fetch: ParkedFetch, max_wait_ms: int) -> None:
        deadline = self._loop.time() + max_wait_ms / 1000
        self._parked += 1
        self.count += 1
        heapq.heappush(self._deadlines, (deadline, self._parked, fetch))
        if len(self._deadlines) > 2 * self.count + STALE_DEADLINES_KEPT:
            self._deadlines = [entry for entry in self._deadlines if entry[2].retry is not None]
            heapq.heapify(self._deadlines)
        for partition in fetch.partitions:
            partition.waiting.add(fetch)
        if fetch.session is not None:
            fetch.session.parked.add(fetch)
        if self._timer is None or deadline < self._timer_at:
            self._set_timer(deadline)

    def mark(self, partition: Partition) -> None:
        """Wake the fetches that wait for this partition, at the end of this loop iteration."""
        if not self._marked:
            self._loop.call_soon(self._wake)
        self._marked.add(partition)

    def leave(self, fetch: ParkedFetch) -> None:
        """Remove a fetch: it was answered, it expired, or its client disconnected."""
        if fetch.retry is None:
            return
        fetch.retry = None
        self.count -= 1
        for partition in fetch.partitions:
            partition.waiting.discard(fetch)
        fetch.partitions = ()
        if fetch.session is not None:
            fetch.session.parked.discard(fetch)

    def _wake(self) -> None:
        marked, self._marked = self._marked, set()
        woken: dict[ParkedFetch, None] = {}
        for partition in marked:
            for waiter in tuple(partition.waiting):
                waiter.on_mark(partition, woken)
        for fetch in woken:
            if fetch.retry is not None and fetch.retry(marked):
                self.leave(fetch)

    def _set_timer(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        # A millisecond late rather than early: uvloop rounds to whole milliseconds.
        self._timer = self._loop.call_at(deadline + 0.001, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = self._loop.time()
        deadlines = self._deadlines
        while deadlines and (deadlines[0][0] <= now or deadlines[0][2].retry is None):
            fetch = heapq.heappop(deadlines)[2]
            if fetch.retry is not None:
                self.expired += 1
                fetch.retry(None)
                self.leave(fetch)
        if deadlines:
            self._set_timer(deadlines[0][0])

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._deadlines.clear()
