"""Windows as people declare them, with Kafka Streams' constructors. Each knows the `ir` window it stands for.

Grace is how long a window still takes late records after its end; it has no default, because either choice surprises
somebody: say it, or say that there is none. Start at `TimeWindows`.
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
    """Windows of one size: tumbling, or hopping after `advance_by`. A window holds its start but not its end."""

    size_ms: int
    grace_ms: int
    advance_ms: int

    @classmethod
    def of(cls, size: Duration) -> NoReturn:
        """Not any more: it left open how late a record may be."""
        _say_the_grace("TimeWindows", "of_size")

    @classmethod
    def of_size_with_no_grace(cls, size: Duration) -> TimeWindows:
        """Tumbling windows that close with their end: a record that comes later is dropped."""
        return cls.of_size_and_grace(size, 0)

    @classmethod
    def of_size_and_grace(cls, size: Duration, grace: Duration) -> TimeWindows:
        """Tumbling windows that take late records for as long as `grace` after their end."""
        size_ms = milliseconds(size, "the size of a window", at_least=1)
        return cls(size_ms, milliseconds(grace, "the grace of a window"), size_ms)

    def advance_by(self, advance: Duration) -> TimeWindows:
        """Hopping windows: a new one begins every `advance`, so a record is in several."""
        advance_ms = milliseconds(advance, "the advance of a window", at_least=1)
        if advance_ms > self.size_ms:
            raise TopologyError(
                f"windows of {self.size_ms} ms cannot advance by {advance_ms} ms: records between two would be lost",
                callers_origin(),
            )
        return replace(self, advance_ms=advance_ms)

    @property
    def declared(self) -> ir.TimeWindow:
        """The same for nodes."""
        return ir.TimeWindow(size_ms=self.size_ms, advance_ms=self.advance_ms, grace_ms=self.grace_ms)

    @property
    def window_size_ms(self) -> int:
        """How long each window is."""
        return self.size_ms

    @property
    def least_retention_ms(self) -> int:
        """How long a store must keep a window at least."""
        return self.size_ms + self.grace_ms


@dataclass(frozen=True, slots=True)
class SlidingWindows(Hinting):
    """Windows that begin or end at a record; two records share one when they are at most the difference apart."""

    time_difference_ms: int
    grace_ms: int

    @classmethod
    def of_time_difference_with_no_grace(cls, difference: Duration) -> SlidingWindows:
        """Windows that close with their end."""
        return cls.of_time_difference_and_grace(difference, 0)

    @classmethod
    def of_time_difference_and_grace(cls, difference: Duration, grace: Duration) -> SlidingWindows:
        """Windows that take late records for as long as `grace` after their end."""
        difference_ms = milliseconds(difference, "the time difference of sliding windows")
        return cls(difference_ms, milliseconds(grace, "the grace of a window"))

    @property
    def declared(self) -> ir.SlidingWindow:
        """The same for nodes."""
        return ir.SlidingWindow(difference_ms=self.time_difference_ms, grace_ms=self.grace_ms)

    @property
    def window_size_ms(self) -> int:
        """How long each window is."""
        return self.time_difference_ms

    @property
    def least_retention_ms(self) -> int:
        """How long a store must keep a window at least."""
        # A new window may begin right after the oldest record of a neighbour, which must still be there.
        return 2 * self.time_difference_ms + self.grace_ms


@dataclass(frozen=True, slots=True)
class SessionWindows(Hinting):
    """Windows of activity, closed by a gap without any; they grow with each record, and may merge."""

    inactivity_gap_ms: int
    grace_ms: int

    @classmethod
    def with_(cls, gap: Duration) -> NoReturn:
        """Not any more: it left open how late a record may be."""
        _say_the_grace("SessionWindows", "of_inactivity_gap")

    @classmethod
    def of_inactivity_gap_with_no_grace(cls, gap: Duration) -> SessionWindows:
        """Sessions that close once the gap has passed."""
        return cls.of_inactivity_gap_and_grace(gap, 0)

    @classmethod
    def of_inactivity_gap_and_grace(cls, gap: Duration, grace: Duration) -> SessionWindows:
        """Sessions that take late records for as long as `grace` after the gap."""
        gap_ms = milliseconds(gap, "the inactivity gap of sessions", at_least=1)
        return cls(gap_ms, milliseconds(grace, "the grace of a window"))

    @property
    def declared(self) -> ir.SessionWindow:
        """The same for nodes."""
        return ir.SessionWindow(gap_ms=self.inactivity_gap_ms, grace_ms=self.grace_ms)

    @property
    def least_retention_ms(self) -> int:
        """How long a store must keep a window at least."""
        return self.inactivity_gap_ms + self.grace_ms


@dataclass(frozen=True, slots=True)
class UnlimitedWindows(Hinting):
    """One window for all time from a start on; it never closes."""

    start_ms: int = 0

    @classmethod
    def of(cls) -> UnlimitedWindows:
        """The window that begins with the epoch."""
        return cls()

    def start_on(self, start_ms: int) -> UnlimitedWindows:
        """The window that begins at this time, in ms since the epoch; older records are dropped."""
        return UnlimitedWindows(milliseconds(start_ms, "the start of an unlimited window"))

    @property
    def declared(self) -> ir.UnlimitedWindow:
        """The same for nodes."""
        return ir.UnlimitedWindow(start_ms=self.start_ms)

    @property
    def grace_ms(self) -> int:
        """None: the window never ends."""
        return 0

    @property
    def window_size_ms(self) -> int:
        """How long each window is."""
        return MAX_TIME_MS

    @property
    def least_retention_ms(self) -> int:
        """How long a store must keep a window at least."""
        return MAX_TIME_MS


Windows = TimeWindows | SlidingWindows | SessionWindows | UnlimitedWindows


@dataclass(frozen=True, slots=True)
class JoinWindows(Hinting):
    """How far apart in time two records may be to join: the right one `before_ms` earlier to `after_ms` later."""

    before_ms: int
    after_ms: int
    grace_ms: int
    holds_unmatched: bool = True

    @classmethod
    def of(cls, difference: Duration) -> JoinWindows:
        """The old form, without a word about grace: records are taken for a day, and a left or outer join tells a
        record without a partner at once, though one may still come.
        """
        difference_ms = milliseconds(difference, "the time difference of a join")
        grace_ms = max(DAY_MS - 2 * difference_ms, 0)
        return cls(difference_ms, difference_ms, grace_ms, holds_unmatched=False)

    @classmethod
    def of_time_difference_with_no_grace(cls, difference: Duration) -> JoinWindows:
        """Records at most `difference` apart; late ones are dropped."""
        return cls.of_time_difference_and_grace(difference, 0)

    @classmethod
    def of_time_difference_and_grace(cls, difference: Duration, grace: Duration) -> JoinWindows:
        """Records at most `difference` apart, taken for as long as `grace` after their window has ended."""
        difference_ms = milliseconds(difference, "the time difference of a join")
        return cls(difference_ms, difference_ms, milliseconds(grace, "the grace of a window"))

    def before(self, difference: Duration) -> JoinWindows:
        """Take right records up to `difference` earlier than the left one; negative means only later ones."""
        return self._checked(replace(self, before_ms=_signed(difference, "the time before")))

    def after(self, difference: Duration) -> JoinWindows:
        """Take right records up to `difference` later than the left one; negative means only earlier ones."""
        return self._checked(replace(self, after_ms=_signed(difference, "the time after")))

    def _checked(self, changed: JoinWindows) -> JoinWindows:
        if changed.before_ms + changed.after_ms < 0:
            raise TopologyError(
                f"a join from {changed.before_ms} ms before to {changed.after_ms} ms after holds no moment at all",
                callers_origin(),
            )
        return changed

    @property
    def size_ms(self) -> int:
        """How far apart in time the first and the last partner of a record may be."""
        return self.before_ms + self.after_ms

    @property
    def declared(self) -> ir.JoinWindow:
        """The same for nodes."""
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


def _signed(difference: Duration, what: str) -> int:
    return milliseconds(difference, what, at_least=-MAX_TIME_MS)
