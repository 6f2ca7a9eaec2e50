"""Compaction: which log to clean, how far, and which segments to merge.

Decisions only, about whole segments: `log.cleaning.batch_filter` decides about records, `log.cleaning.cleaner` executes
the decisions, `log.retention` is the other policy. Start at `cleanable_range` and `dirtiest`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from moldau.core.ids import TopicPartition
from moldau.log.config import LogConfig

__all__ = [
    "CleanableLog",
    "CleanableRange",
    "SegmentFacts",
    "cleanable_log",
    "cleanable_range",
    "dirtiest",
    "segment_groups",
]

MAX_RELATIVE_OFFSET = 2**31 - 1


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """What the decisions need to know about a segment."""

    base_offset: int
    size_in_bytes: int
    first_timestamp_ms: int = -1
    largest_timestamp_ms: int = -1
    index_bytes: int = 0
    """The larger of its two indexes."""


@dataclass(frozen=True, slots=True)
class CleanableRange:
    """The offsets that one round may search for duplicates; the upper bound is exclusive."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    is_reset: bool = False
    """The checkpoint does not match the log, as after a truncation: cleaning restarts at the log start."""


@dataclass(frozen=True, slots=True)
class CleanableLog:
    """One partition as a candidate for the next round."""

    partition: TopicPartition
    range: CleanableRange
    clean_bytes: int
    cleanable_bytes: int
    overdue_ms: int
    """How long the oldest dirty record has exceeded `max.compaction.lag.ms`; 0 while it has not."""
    min_cleanable_dirty_ratio: float

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        if self.cleanable_bytes == 0:
            return False
        return self.overdue_ms > 0 or self.dirty_ratio > self.min_cleanable_dirty_ratio


def cleanable_range(
    segments: Sequence[SegmentFacts],
    *,
    checkpoint: int | None,
    log_start_offset: int,
    log_end_offset: int,
    last_stable_offset: int,
    min_compaction_lag_ms: int,
    now_ms: int,
) -> CleanableRange:
    """The range of the next round: from the checkpoint up to the first offset that may not be cleaned yet.

    The active segment is never cleaned. Neither is anything at or above the last stable offset, since its transaction
    may still abort or its batch may be truncated.
    """
    first_dirty = log_start_offset if checkpoint is None else checkpoint
    is_reset = not log_start_offset <= first_dirty <= log_end_offset
    if is_reset:
        first_dirty = log_start_offset
    bounds = [last_stable_offset, segments[-1].base_offset]
    if min_compaction_lag_ms > 0:
        bounds += [
            segment.base_offset
            for segment in _overlapping(segments[:-1], first_dirty, log_end_offset)
            if segment.largest_timestamp_ms > now_ms - min_compaction_lag_ms
        ][:1]
    return CleanableRange(first_dirty, max(first_dirty, min(bounds)), is_reset)


def cleanable_log(
    partition: TopicPartition,
    segments: Sequence[SegmentFacts],
    span: CleanableRange,
    config: LogConfig,
    *,
    now_ms: int,
) -> CleanableLog:
    """Measure one log. The segment that contains the first dirty offset counts as dirty."""
    closed = segments[:-1]
    dirty = _overlapping(closed, span.first_dirty_offset, span.first_uncleanable_offset)
    first_dirty_base = dirty[0].base_offset if dirty else span.first_dirty_offset
    return CleanableLog(
        partition,
        span,
        clean_bytes=sum(s.size_in_bytes for s in closed if s.base_offset < first_dirty_base),
        cleanable_bytes=sum(s.size_in_bytes for s in dirty),
        overdue_ms=_overdue_ms(dirty, config.max_compaction_lag_ms, now_ms),
        min_cleanable_dirty_ratio=config.min_cleanable_dirty_ratio,
    )


def dirtiest(logs: Iterable[CleanableLog]) -> CleanableLog | None:
    """The log to clean next: overdue logs first, then the one with the highest share of dirty bytes."""
    due = [log for log in logs if log.is_due]
    return max(due, key=lambda log: (log.overdue_ms > 0, log.dirty_ratio), default=None)


def segment_groups(
    segments: Sequence[SegmentFacts], *, max_bytes: int, max_index_bytes: int, end_offset: int
) -> list[list[SegmentFacts]]:
    """Group neighbours that fit into one segment, so that cleaning does not leave many tiny segments.

    `end_offset` is where the last segment's offsets end. A group spans fewer than 2^31 offsets, because index entries
    store relative offsets in 32 bits.
    """
    groups: list[list[SegmentFacts]] = []
    size = index_bytes = 0
    for position, segment in enumerate(segments):
        following = segments[position + 1].base_offset if position + 1 < len(segments) else end_offset
        fits = (
            groups
            and size + segment.size_in_bytes <= max_bytes
            and index_bytes + segment.index_bytes <= max_index_bytes
            and (segment.size_in_bytes == 0 or following - 1 - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET)
        )
        if not fits:
            groups.append([])
            size = index_bytes = 0
        groups[-1].append(segment)
        size += segment.size_in_bytes
        index_bytes += segment.index_bytes
    return groups


def _overlapping(closed: Sequence[SegmentFacts], start: int, end: int) -> list[SegmentFacts]:
    """The segments with offsets in [start, end); the first one may begin before `start`."""
    if start >= end:
        return []
    first = max((i for i, segment in enumerate(closed) if segment.base_offset <= start), default=0)
    return [segment for segment in closed[first:] if segment.base_offset < end]


def _overdue_ms(dirty: Sequence[SegmentFacts], max_compaction_lag_ms: int, now_ms: int) -> int:
    oldest = min((s.first_timestamp_ms for s in dirty if s.first_timestamp_ms > 0), default=None)
    return 0 if oldest is None else max(0, now_ms - max_compaction_lag_ms - oldest)
