"""How the event loop is doing: how late it comes to its timers, and how much of its time is work.

One timer, twice a second. Start at `LoopMonitor`.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque

__all__ = ["LoopMonitor"]

INTERVAL_S = 0.5
MEMORY_S = 60.0
"""The share of busy time is remembered as an average that fades over about a minute."""


class LoopMonitor:
    """Made and stopped on the loop it watches."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.idle_ratio = 1.0
        self.recent_lag_s: deque[float] = deque(maxlen=240)
        self.ticks = 0
        self._due = loop.time() + INTERVAL_S
        self._seen_s = time.monotonic()
        self._seen_cpu_s = time.thread_time()
        self._timer = loop.call_at(self._due, self._tick)

    def stop(self) -> None:
        self._timer.cancel()

    def _tick(self) -> None:
        now_s, cpu_s = time.monotonic(), time.thread_time()
        self.recent_lag_s.append(max(0.0, self._loop.time() - self._due))
        self.ticks += 1
        passed_s = now_s - self._seen_s
        if passed_s > 0:
            idle = min(1.0, max(0.0, 1 - (cpu_s - self._seen_cpu_s) / passed_s))
            weight = 1 - math.exp(-passed_s / MEMORY_S)
            self.idle_ratio += weight * (idle - self.idle_ratio)
        self._seen_s, self._seen_cpu_s = now_s, cpu_s
        self._due = self._loop.time() + INTERVAL_S
        self._timer = self._loop.call_at(self._due, self._tick)
