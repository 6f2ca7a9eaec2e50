"""Windows for aggregations and joins, with Kafka Streams' constructors; `ir_window` returns the `ir` window.

Grace is how long after its end a window still accepts late records. It has no default: any default would surprise some
users, so each constructor either takes a grace period or has `with_no_grace` in its name. Start at `TimeWindows`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

from moldau.pipeline.dsl.options.given import Duration, milliseconds
from moldau.pipeline.dsl.options.hints import Hinting
from moldau.pipeline.ir import windows as ir
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.origin import callers_origin
from moldau.serdes.windowed import MAX_TIME_MS

DAY_MS = 24 * 60 * 60 * 1000

__all__ = ["JoinWindows", "SessionWindows", "SlidingWindows", "TimeWindows", "UnlimitedWindows", "Windows"]


@dataclass(frozen=True, slots=True)
class TimeWindows(Hinting):
    """Windows of fixed size: tumbling, or hopping with `advance_by`. The start is inclusive, the end exclusive.

    `TimeWindows.of_size_and_grace(timedelta(minutes=5), timedelta(seconds=30)).advance_by(timedelta(minutes=1))`
    """

    size_ms: int
    grace_ms: int
    advance_ms: int

    @classmethod
    def of(cls, size: Duration) -> NoReturn:
        """Not supported: raises `TopologyError`, because the grace period would be unspecified."""
        _say_the_grace("TimeWindows", "of_size")

    @classmethod
    def of_size_with_no_grace(cls, size: Duration) -> TimeWindows:
        """Tumbling windows that close at their end: a record that arrives later is dropped."""
        return cls.of_size_and_grace(size, 0)

    @classmethod
    def of_size_and_grace(cls, size: Duration, grace: Duration) -> TimeWindows:
        """Tumbling windows that accept late records until `grace` after their end."""
        size_ms = milliseconds(size, "the size of a window", at_least=1)
        return cls(size_ms, milliseconds(grace, "the grace of a window"), size_ms)

    def advance_by(self, advance: Duration) -> TimeWindows:
        """Hopping windows: a new window starts every `advance`, so a record is in several windows."""
        advance_ms = milliseconds(advance, "the advance of a window", at_least=1)
        if advance_ms > self.size_ms:
            raise TopologyError(
                f"windows of {self.size_ms} ms cannot advance by {advance_ms} ms: records between two would be lost",
                callers_origin(),
            )
        return replace(self, advance_ms=advance_ms)

    @property
    def ir_window(self) -> ir.TimeWindow:
        """The `ir` window that nodes use."""
        return ir.TimeWindow(size_ms=self.size_ms, advance_ms=self.advance_ms, grace_ms=self.grace_ms)

    @property
    def window_size_ms(self) -> int:
        """The size of each window."""
        return self.size_ms

    @property
    def least_retention_ms(self) -> int:
        """The minimum time that a store must keep a window."""
        return self.size_ms + self.grace_ms


@dataclass(frozen=True, slots=True)
class SlidingWindows(Hinting):
    """Windows that start or end at a record; two records share one if they are at most the time difference apart."""

    time_difference_ms: int
    grace_ms: int

    @classmethod
    def of_time_difference_with_no_grace(cls, difference: Duration) -> SlidingWindows:
        """Windows that close at their end: a record that arrives later is dropped."""
        return cls.of_time_difference_and_grace(difference, 0)

    @classmethod
    def of_time_difference_and_grace(cls, difference: Duration, grace: Duration) -> SlidingWindows:
        """Windows that accept late records until `grace` after their end."""
        difference_ms = milliseconds(difference, "the time difference of sliding windows")
        return cls(difference_ms, milliseconds(grace, "the grace of a window"))

    @property
    def ir_window(self) -> ir.SlidingWindow:
        """The `ir` window that nodes use."""
        return ir.SlidingWindow(difference_ms=self.time_difference_ms, grace_ms=self.grace_ms)

    @property
    def window_size_ms(self) -> int:
        """The size of each window."""
        return self.time_difference_ms

    @property
    def least_retention_ms(self) -> int:
        """The minimum time that a store must keep a window."""
        # A new window may start right after the oldest record of a neighbouring window, which must still be stored.
        return 2 * self.time_difference_ms + self.grace_ms


@dataclass(frozen=True, slots=True)
class SessionWindows(Hinting):
    """Sessions: windows of activity that end after a gap without records. A record extends or merges sessions."""

    inactivity_gap_ms: int
    grace_ms: int

    @classmethod
    def with_(cls, gap: Duration) -> NoReturn:
        """Not supported: raises `TopologyError`, because the grace period would be unspecified."""
        _say_the_grace("SessionWindows", "of_inactivity_gap")

    @classmethod
    def of_inactivity_gap_with_no_grace(cls, gap: Duration) -> SessionWindows:
        """Sessions that close when the inactivity gap has passed."""
        return cls.of_inactivity_gap_and_grace(gap, 0)

    @classmethod
    def of_inactivity_gap_and_grace(cls, gap: Duration, grace: Duration) -> SessionWindows:
        """Sessions that accept late records until `grace` after the inactivity gap."""
        gap_ms = milliseconds(gap, "the inactivity gap of sessions", at_least=1)
        return cls(gap_ms, milliseconds(grace, "the grace of a window"))

    @property
    def ir_window(self) -> ir.SessionWindow:
        """The `ir` window that nodes use."""
        return ir.SessionWindow(gap_ms=self.inactivity_gap_ms, grace_ms=self.grace_ms)

    @property
    def least_retention_ms(self) -> int:
        """The minimum time that a store must keep a window."""
        return self.inactivity_gap_ms + self.grace_ms


@dataclass(frozen=True, slots=True)
class UnlimitedWindows(Hinting):
    """One window that begins at a start time and never closes."""

    start_ms: int = 0

    @classmethod
    def of(cls) -> UnlimitedWindows:
        """The window that begins at the epoch (1970)."""
        return cls()

    def start_on(self, start_ms: int) -> UnlimitedWindows:
        """The window that begins at `start_ms`, in ms since the epoch; older records are dropped."""
        return UnlimitedWindows(milliseconds(start_ms, "the start of an unlimited window"))

    @property
    def ir_window(self) -> ir.UnlimitedWindow:
        """The `ir` window that nodes use."""
        return ir.UnlimitedWindow(start_ms=self.start_ms)

    @property
    def grace_ms(self) -> int:
        """Always 0: the window never ends."""
        return 0

    @property
    def window_size_ms(self) -> int:
        """The size of each window."""
        return MAX_TIME_MS

    @property
    def least_retention_ms(self) -> int:
        """The minimum time that a store must keep a window."""
        return MAX_TIME_MS


Windows = TimeWindows | SlidingWindows | SessionWindows | UnlimitedWindows


@dataclass(frozen=True, slots=True)
class JoinWindows(Hinting):
    """The time difference within which two records join: the right one `before_ms` earlier to `after_ms` later."""

    before_ms: int
    after_ms: int
    grace_ms: int
    holds_unmatched: bool = True

    @classmethod
    def of(cls, difference: Duration) -> JoinWindows:
        """The deprecated form, without an explicit grace: window and grace together are at least a day.

        A left or outer join emits a record without a match at once, although a match may still arrive.
        """
        difference_ms = milliseconds(difference, "the time difference of a join")
        grace_ms = max(DAY_MS - 2 * difference_ms, 0)
        return cls(difference_ms, difference_ms, grace_ms, holds_unmatched=False)

    @classmethod
    def of_time_difference_with_no_grace(cls, difference: Duration) -> JoinWindows:
        """Join records at most `difference` apart; late records are dropped."""
        return cls.of_time_difference_and_grace(difference, 0)

    @classmethod
    def of_time_difference_and_grace(cls, difference: Duration, grace: Duration) -> JoinWindows:
        """Join records at most `difference` apart; late records are accepted until `grace` after the window's end."""
        difference_ms = milliseconds(difference, "the time difference of a join")
        return cls(difference_ms, difference_ms, milliseconds(grace, "the grace of a window"))

    def before(self, difference: Duration) -> JoinWindows:
        """Join right records up to `difference` earlier than the left one; if negative, only later ones."""
        return self._checked_span(replace(self, before_ms=_signed_ms(difference, "the time before")))

    def after(self, difference: Duration) -> JoinWindows:
        """Join right records up to `difference` later than the left one; if negative, only earlier ones."""
        return self._checked_span(replace(self, after_ms=_signed_ms(difference, "the time after")))

    def _checked_span(self, changed: JoinWindows) -> JoinWindows:
        if changed.before_ms + changed.after_ms < 0:
            raise TopologyError(
                f"a join from {changed.before_ms} ms before to {changed.after_ms} ms after is empty: no record "
                "can match",
                callers_origin(),
            )
        return changed

    @property
    def size_ms(self) -> int:
        """The time between the earliest and the latest possible match of a record."""
        return self.before_ms + self.after_ms

    @property
    def ir_window(self) -> ir.JoinWindow:
        """The `ir` window that nodes use."""
        return ir.JoinWindow(
            before_ms=self.before_ms,
            after_ms=self.after_ms,
            grace_ms=self.grace_ms,
            holds_unmatched=self.holds_unmatched,
        )


def _say_the_grace(windows: str, start: str) -> NoReturn:
    raise TopologyError(
        f"{windows} needs to know how late records may be: {windows}.{start}_and_grace(..., grace), or "
        f"{windows}.{start}_with_no_grace(...)",
        callers_origin(),
    )


def _signed_ms(difference: Duration, what: str) -> int:
    return milliseconds(difference, what, at_least=-MAX_TIME_MS)
