from __future__ import annotations

from moldau.core.ids import TopicPartition
from moldau.log.cleaning.compaction import (
    CleanableLog,
    CleanableRange,
    SegmentFacts,
    cleanable_log,
    cleanable_range,
    dirtiest,
    segment_groups,
)
from moldau.log.config import LogConfig

ORDERS = TopicPartition("orders", 0)
DAY_MS = 86_400_000


def segments(*bases: int, size: int = 100) -> list[SegmentFacts]:
    return [SegmentFacts(base, size, first_timestamp_ms=base + 1, largest_timestamp_ms=base + 9) for base in bases]


def span_of(facts: list[SegmentFacts], **changes: int | None) -> CleanableRange:
    known: dict[str, int | None] = {
        "checkpoint": None,
        "log_start_offset": 0,
        "log_end_offset": 35,
        "last_stable_offset": 35,
        "min_compaction_lag_ms": 0,
        "now_ms": 1_000,
    }
    return cleanable_range(facts, **(known | changes))  # type: ignore[arg-type]


def test_everything_below_the_active_segment_is_cleanable_at_first() -> None:
    assert span_of(segments(0, 10, 20, 30)) == CleanableRange(0, 30)


def test_a_lone_segment_is_active_and_never_cleaned() -> None:
    assert span_of(segments(0)) == CleanableRange(0, 0)


def test_cleaning_goes_on_at_the_checkpoint() -> None:
    assert span_of(segments(0, 10, 20, 30), checkpoint=20) == CleanableRange(20, 30)


def test_nothing_at_or_above_the_last_stable_offset_is_cleaned() -> None:
    assert span_of(segments(0, 10, 20, 30), last_stable_offset=17) == CleanableRange(0, 17)


def test_a_checkpoint_beyond_the_log_starts_over() -> None:
    assert span_of(segments(0, 10, 20, 30), checkpoint=99) == CleanableRange(0, 30, is_reset=True)


def test_a_checkpoint_below_the_log_start_moves_up_to_it() -> None:
    found = span_of(segments(10, 20, 30), checkpoint=3, log_start_offset=10)
    assert found == CleanableRange(10, 30, is_reset=True)


def test_a_segment_with_a_record_younger_than_the_lag_ends_the_range() -> None:
    young = SegmentFacts(20, 100, first_timestamp_ms=21, largest_timestamp_ms=990)
    facts = [*segments(0, 10), young, *segments(30)]
    assert span_of(facts, min_compaction_lag_ms=100) == CleanableRange(0, 20)


def test_a_young_segment_in_the_clean_part_does_not_hold_up_the_rest() -> None:
    facts = [SegmentFacts(0, 100, 1, largest_timestamp_ms=990), *segments(10, 20, 30)]
    assert span_of(facts, checkpoint=10, min_compaction_lag_ms=100) == CleanableRange(10, 30)


def test_the_dirty_ratio_is_the_share_of_bytes_not_yet_cleaned() -> None:
    log = cleanable_log(ORDERS, segments(0, 10, 20, 30), CleanableRange(10, 30), LogConfig(), now_ms=1_000)
    assert (log.clean_bytes, log.cleanable_bytes) == (100, 200)
    assert round(log.dirty_ratio, 3) == 0.667
    assert log.is_due


def test_a_log_at_its_ratio_is_not_due_yet() -> None:
    config = LogConfig(min_cleanable_dirty_ratio=0.5)
    log = cleanable_log(ORDERS, segments(0, 10, 20), CleanableRange(10, 20), config, now_ms=1_000)
    assert log.dirty_ratio == 0.5
    assert not log.is_due


def test_an_overdue_log_is_due_whatever_its_ratio() -> None:
    config = LogConfig(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=500)
    log = cleanable_log(ORDERS, segments(0, 10, 20), CleanableRange(10, 20), config, now_ms=1_000)
    assert log.overdue_ms == 1_000 - 500 - 11
    assert log.is_due


def test_a_log_with_nothing_to_clean_is_never_due() -> None:
    config = LogConfig(min_cleanable_dirty_ratio=0.0, max_compaction_lag_ms=1)
    log = cleanable_log(ORDERS, segments(0), CleanableRange(0, 0), config, now_ms=DAY_MS)
    assert not log.is_due


def candidate(name: str, dirty: int, overdue_ms: int = 0) -> CleanableLog:
    return CleanableLog(TopicPartition(name, 0), CleanableRange(0, 10), 100 - dirty, dirty, overdue_ms, 0.1)


def test_the_filthiest_log_is_chosen() -> None:
    chosen = dirtiest([candidate("a", 30), candidate("b", 60), candidate("c", 5)])
    assert chosen is not None
    assert chosen.partition.topic == "b"


def test_overdue_logs_come_before_filthier_ones() -> None:
    chosen = dirtiest([candidate("a", 90), candidate("b", 2, overdue_ms=1)])
    assert chosen is not None
    assert chosen.partition.topic == "b"


def test_no_log_is_chosen_when_none_is_due() -> None:
    assert dirtiest([candidate("a", 1)]) is None


def bases(groups: list[list[SegmentFacts]]) -> list[list[int]]:
    return [[segment.base_offset for segment in group] for group in groups]


def test_neighbours_are_grouped_up_to_the_segment_size() -> None:
    found = segment_groups(segments(0, 10, 20, 30), max_bytes=250, max_index_bytes=1_000, end_offset=40)
    assert bases(found) == [[0, 10], [20, 30]]


def test_a_segment_larger_than_the_limit_stays_alone() -> None:
    found = segment_groups(
        [*segments(0), *segments(10, size=900), *segments(20)], max_bytes=250, max_index_bytes=9, end_offset=30
    )
    assert bases(found) == [[0], [10], [20]]


def test_indexes_limit_a_group_too() -> None:
    facts = [SegmentFacts(base, 10, index_bytes=60) for base in (0, 10, 20)]
    assert bases(segment_groups(facts, max_bytes=1_000, max_index_bytes=120, end_offset=30)) == [[0, 10], [20]]


def test_a_group_never_spans_more_offsets_than_an_index_entry_can_tell() -> None:
    facts = segments(0, 2**30, 2**31 - 5, 2**31 + 5)
    found = segment_groups(facts, max_bytes=10_000, max_index_bytes=10_000, end_offset=2**31 + 10)
    assert bases(found) == [[0, 2**30], [2**31 - 5, 2**31 + 5]]
