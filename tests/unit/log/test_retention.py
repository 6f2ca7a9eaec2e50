"""Which leading segments may go."""

from __future__ import annotations

from moldau.log.config import LogConfig, is_flush_due
from moldau.log.retention import Deletable, SegmentFacts, deletable

SEGMENTS = [SegmentFacts(0, 10, 100), SegmentFacts(10, 20, 100), SegmentFacts(20, 25, 50)]
NEWEST_MS = [1000, 2000, 3000]


def count(
    segments: list[SegmentFacts] = SEGMENTS,
    newest_ms: list[int] = NEWEST_MS,
    *,
    start: int = 0,
    high_watermark: int = 25,
    now_ms: int = 3000,
    **config: object,
) -> int:
    return decision(segments, newest_ms, start=start, high_watermark=high_watermark, now_ms=now_ms, **config).segments


def decision(
    segments: list[SegmentFacts] = SEGMENTS,
    newest_ms: list[int] = NEWEST_MS,
    *,
    start: int = 0,
    high_watermark: int = 25,
    now_ms: int = 3000,
    **config: object,
) -> Deletable:
    settings = LogConfig(**{"retention_ms": -1, "retention_bytes": -1, **config})  # type: ignore[arg-type]
    return deletable(
        segments,
        newest_ms.__getitem__,
        settings,
        log_start_offset=start,
        high_watermark=high_watermark,
        now_ms=now_ms,
    )


def test_nothing_goes_without_a_limit() -> None:
    assert count() == 0


def test_age_is_that_of_the_newest_record() -> None:
    assert count(retention_ms=1500) == 1
    assert count(retention_ms=1000) == 1
    assert count(retention_ms=999) == 2


def test_a_young_segment_protects_all_behind_it() -> None:
    assert count(newest_ms=[9_999_999, 2000, 3000], retention_ms=0) == 0


def test_all_segments_may_go_by_age() -> None:
    assert count(retention_ms=10, now_ms=10_000) == 3


def test_an_empty_last_segment_stays() -> None:
    segments = [*SEGMENTS[:2], SegmentFacts(20, 20, 0)]
    assert count(segments, retention_ms=0, high_watermark=20) == 2


def test_size_keeps_at_least_the_limit() -> None:
    assert count(retention_bytes=250) == 0
    assert count(retention_bytes=150) == 1
    assert count(retention_bytes=149) == 1
    assert count(retention_bytes=0) == 3


def test_nothing_at_or_above_the_high_watermark_goes() -> None:
    assert count(retention_bytes=0, high_watermark=19) == 1
    assert count(retention_bytes=0, high_watermark=9) == 0


def test_log_start_removes_what_lies_wholly_below() -> None:
    assert count(start=10) == 1
    assert count(start=19) == 1
    assert count(start=25) == 2


def test_compaction_alone_knows_only_the_log_start() -> None:
    compact = frozenset({"compact"})
    assert count(cleanup_policy=compact, retention_ms=0, retention_bytes=0) == 0
    assert count(cleanup_policy=compact, start=10) == 1
    assert count(cleanup_policy=frozenset({"compact", "delete"}), retention_bytes=0) == 3


def test_a_flush_is_due_by_messages_or_by_time() -> None:
    config = LogConfig(flush_messages=10, flush_ms=1000)
    assert not is_flush_due(config, unflushed_messages=9, ms_since_flush=999)
    assert is_flush_due(config, unflushed_messages=10, ms_since_flush=0)
    assert is_flush_due(config, unflushed_messages=1, ms_since_flush=1000)
    assert not is_flush_due(config, unflushed_messages=0, ms_since_flush=10**9)


def test_the_reason_is_the_rule_that_lets_go_of_most() -> None:
    assert decision(retention_ms=999).reason == "their records are older than retention.ms=999"
    assert decision(retention_bytes=150).reason == "the log has more than retention.bytes=150"
    assert decision(retention_ms=1500, retention_bytes=0).reason == "the log has more than retention.bytes=0"
    assert decision(start=10).reason == "they lie below the log start offset 10"
