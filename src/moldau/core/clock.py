"""Time as an argument: pure code takes `now_ms`, code with I/O takes a `Clock`, tests pass their own."""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall-clock milliseconds since 1970, what Kafka writes into records. It may jump."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds that never go backwards, for timeouts and intervals."""
        ...


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
