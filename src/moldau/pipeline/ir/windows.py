"""Window definitions. Which window a record falls into is computed in `pipeline.cores`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindow:
    """Tumbling when the advance equals the size, else hopping; starts are multiples of the advance."""

    size_ms: int
    advance_ms: int
    grace_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingWindow:
    """Windows that begin or end at a record; two records share one when they are at most this far apart."""

    difference_ms: int
    grace_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionWindow:
    """Records that are at most the gap apart."""

    gap_ms: int
    grace_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlimitedWindow:
    """One window from `start_ms` on, never closed."""

    start_ms: int = 0


AggregationWindow = TimeWindow | SlidingWindow | SessionWindow | UnlimitedWindow


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinWindow:
    """A right record joins a left one from `before_ms` earlier to `after_ms` later.

    Without `holds_unmatched` (the old form without grace) an unmatched record of an outer side is emitted at once.
    """

    before_ms: int
    after_ms: int
    grace_ms: int
    holds_unmatched: bool = True
