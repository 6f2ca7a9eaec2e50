"""Retention: which leading segments of a partition may be deleted.

This module only decides: `log.partition_log` deletes, `log.cleaning.compaction` is the other policy. Start at
`deletable`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, takewhile
from typing import NamedTuple

from moldau.log.config import LogConfig

__all__ = ["Deletable", "SegmentFacts", "count_above_size", "count_below_start", "count_expired", "deletable"]


class SegmentFacts(NamedTuple):
    """The facts about a segment that retention needs."""

    base_offset: int
    end_offset: int
    """The next segment's base offset, or the log end offset for the last one."""
    size: int


class Deletable(NamedTuple):
    """How many leading segments may be deleted, and the rule that applies, as text for the log."""

    segments: int
    reason: str


def deletable(
    segments: Sequence[SegmentFacts],
    newest_timestamp_ms: Callable[[int], int],
    config: LogConfig,
    *,
    log_start_offset: int,
    high_watermark: int,
    now_ms: int,
) -> Deletable:
    """Return the leading segments that may be deleted, by the rule that deletes most; all means: roll a new one first.

    `newest_timestamp_ms` returns the time of a segment's newest record, or of its file if no record has one; it may
    have to read the disk, and is called for no more segments than needed. Never includes a segment with offsets at or
    above the high watermark, nor an empty last one.
    """
    replicated = len(list(takewhile(lambda segment: segment.end_offset <= high_watermark, segments)))
    if replicated == len(segments) and segments and segments[-1].size == 0:
        replicated -= 1
    wanted = Deletable(
        count_below_start(segments, log_start_offset), f"they lie below the log start offset {log_start_offset}"
    )
    if config.is_deleted:
        too_large = count_above_size(segments, config.retention_bytes)
        if too_large > wanted.segments:
            wanted = Deletable(too_large, f"the log has more than retention.bytes={config.retention_bytes}")
        too_old = count_expired(len(segments), newest_timestamp_ms, config.retention_ms, now_ms=now_ms)
        if too_old > wanted.segments:
            wanted = Deletable(too_old, f"their records are older than retention.ms={config.retention_ms}")
    return wanted._replace(segments=min(wanted.segments, replicated))


def count_below_start(segments: Sequence[SegmentFacts], log_start_offset: int) -> int:
    """The number of leading segments entirely below the log start; the last one always stays."""
    return len(list(takewhile(lambda segment: segment.end_offset <= log_start_offset, segments[:-1])))


def count_above_size(segments: Sequence[SegmentFacts], max_bytes: int) -> int:
    """The number of leading segments without which the log would still hold at least `max_bytes`; -1 keeps all."""
    if max_bytes < 0:
        return 0
    excess = sum(segment.size for segment in segments) - max_bytes
    sizes = accumulate(segment.size for segment in segments)
    return len(list(takewhile(lambda size: size <= excess, sizes)))


def count_expired(count: int, newest_timestamp_ms: Callable[[int], int], max_age_ms: int, *, now_ms: int) -> int:
    """The number of leading segments whose newest record is older than `max_age_ms`; -1 keeps all.

    Stops at the first segment that is not expired, so the log never gets a gap.
    """
    if max_age_ms < 0:
        return 0
    cutoff_ms = now_ms - max_age_ms
    return len(list(takewhile(lambda index: newest_timestamp_ms(index) < cutoff_ms, range(count))))
