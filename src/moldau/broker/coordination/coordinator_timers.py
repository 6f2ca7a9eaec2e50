"""The timers of coordinator shards: one heap for all of them, one timer on the loop."""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable
from typing import Any

from moldau.coordinator.runtime.shard import Shard

__all__ = ["CoordinatorTimers"]

log = logging.getLogger(__name__)


class CoordinatorTimers:
    def __init__(self, loop: asyncio.AbstractEventLoop, now_ms: Callable[[], int]) -> None:
        self._loop = loop
        self._now_ms = now_ms
        self._heap: list[tuple[int, int, Shard[Any]]] = []
        self._queued: dict[Shard[Any], int] = {}
        self._pushed = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0

    def wake(self, shard: Shard[Any], deadline_ms: int) -> None:
        """Call `shard.on_time` at `deadline_ms` or earlier; it returns when it has to be called again."""
        queued_ms = self._queued.get(shard)
        if queued_ms is not None and queued_ms <= deadline_ms:
            return
        self._queued[shard] = deadline_ms
        self._pushed += 1
        heapq.heappush(self._heap, (deadline_ms, self._pushed, shard))
        self._set_timer()

    def _set_timer(self) -> None:
        if not self._heap:
            return
        first_ms = self._heap[0][0]
        if self._timer is not None:
            if self._timer_ms <= first_ms:
                return
            self._timer.cancel()
        self._timer_ms = first_ms
        self._timer = self._loop.call_later(max(first_ms - self._now_ms(), 0) / 1000, self._run)

    def _run(self) -> None:
        self._timer = None
        now_ms = self._now_ms()
        while self._heap and self._heap[0][0] <= now_ms:
            deadline_ms, _, shard = heapq.heappop(self._heap)
            if self._queued.get(shard) == deadline_ms:
                del self._queued[shard]
                try:
                    shard.on_time(now_ms)
                except Exception:
                    # The other shards must still be called.
                    log.exception("a coordinator's timer failed with an unhandled exception")
        self._set_timer()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._heap.clear()
