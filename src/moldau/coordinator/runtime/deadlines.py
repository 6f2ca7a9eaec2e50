"""Deadlines of one core: many, often postponed, rarely reached.

A session's deadline moves with every heartbeat, so postponing one only updates a dictionary entry: the heap keeps the
earlier time, and the entry is queued again when that time comes. Start at `Deadlines.set`.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable

__all__ = ["Deadlines"]


class Deadlines:
    """At most one deadline per key."""

    def __init__(self) -> None:
        self._deadlines: dict[Hashable, int] = {}
        self._queued: dict[Hashable, int] = {}
        """The earliest time at which the heap checks a key."""
        self._heap: list[tuple[int, int, Hashable]] = []
        self._pushed = 0

    def __len__(self) -> int:
        return len(self._deadlines)

    def get(self, key: Hashable) -> int | None:
        return self._deadlines.get(key)

    def set(self, key: Hashable, deadline_ms: int) -> None:
        self._deadlines[key] = deadline_ms
        queued = self._queued.get(key)
        if queued is None or deadline_ms < queued:
            self._push(key, deadline_ms)

    def cancel(self, key: Hashable) -> None:
        self._deadlines.pop(key, None)

    def next_ms(self) -> int | None:
        """When to check again; never later than the first deadline, sometimes earlier."""
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: int) -> Hashable | None:
        """Remove and return one key whose deadline has passed, the earliest first."""
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            at_ms, _, key = heapq.heappop(heap)
            if self._queued.get(key) != at_ms:
                continue  # queued a second time for an earlier time, which was handled already
            del self._queued[key]
            deadline_ms = self._deadlines.get(key)
            if deadline_ms is None:
                continue
            if deadline_ms <= now_ms:
                del self._deadlines[key]
                return key
            self._push(key, deadline_ms)
        return None

    def _push(self, key: Hashable, at_ms: int) -> None:
        self._queued[key] = at_ms
        self._pushed += 1
        heapq.heappush(self._heap, (at_ms, self._pushed, key))
