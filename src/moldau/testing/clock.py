"""A clock that tests set by hand."""

from __future__ import annotations

__all__ = ["ManualClock"]


class ManualClock:
    """Wall clock and monotonic clock, advanced by hand; the wall clock may also jump."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = 0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def advance(self, milliseconds: int) -> None:
        """Advance both clocks."""
        self._now_ms += milliseconds
        self._monotonic_ms += milliseconds

    def jump(self, milliseconds: int) -> None:
        """Set the wall clock forward or back, as an operator or NTP might; no time passes."""
        self._now_ms += milliseconds
