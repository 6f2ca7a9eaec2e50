"""Tumbling, hopping and unlimited windows: which windows a record falls into, grace, and results at close."""

from __future__ import annotations

from tests.unit.pipeline.cores.piped_tables import Build, Pipe

from moldau.pipeline.dsl.options.windows import TimeWindows, UnlimitedWindows
from moldau.pipeline.ir.nodes import EmitStrategy


def counted(windows: TimeWindows | UnlimitedWindows, *, at_close: bool = False) -> Build:
    emit = EmitStrategy.ON_WINDOW_CLOSE if at_close else EmitStrategy.ON_UPDATE

    def build(stream):  # type: ignore[no-untyped-def]
        windowed = stream.group_by_key().windowed_by(windows)
        return (windowed.emit_strategy(emit) if at_close else windowed).count()

    return build


def test_a_tumbling_window_begins_anew_at_its_end() -> None:
    pipe = Pipe(counted(TimeWindows.of_size_with_no_grace(10)))

    assert pipe("a", "x", 0) == [("a@0-10", 1, 0)]
    assert pipe("a", "x", 9) == [("a@0-10", 2, 9)]
    assert pipe("a", "x", 10) == [("a@10-20", 1, 10)]


def test_hopping_windows_are_told_from_the_earliest_to_the_latest() -> None:
    pipe = Pipe(counted(TimeWindows.of_size_and_grace(10, 0).advance_by(4)))

    assert pipe("a", "x", 9) == [("a@0-10", 1, 9), ("a@4-14", 1, 9), ("a@8-18", 1, 9)]


def test_the_first_hopping_windows_do_not_begin_before_time_zero() -> None:
    pipe = Pipe(counted(TimeWindows.of_size_and_grace(10, 0).advance_by(4)))

    assert pipe("a", "x", 1) == [("a@0-10", 1, 1)]


def test_a_window_is_closed_when_its_end_is_as_old_as_the_grace() -> None:
    pipe = Pipe(counted(TimeWindows.of_size_and_grace(10, 5)))
    pipe("a", "x", 14)

    assert pipe("a", "in time", 3) == [("a@0-10", 1, 3)]
    assert pipe("a", "x", 15) == [("a@10-20", 2, 15)]
    assert pipe("a", "late", 4) == []
    assert pipe.dropped() == {"expired window": 1}


def test_one_record_may_be_late_for_some_windows_only() -> None:
    pipe = Pipe(counted(TimeWindows.of_size_with_no_grace(10).advance_by(5)))
    pipe("b", "x", 12)

    assert pipe("a", "late for the first", 9) == [("a@5-15", 1, 9)]


def test_time_is_that_of_the_partition_not_of_the_key() -> None:
    pipe = Pipe(counted(TimeWindows.of_size_with_no_grace(10)))
    pipe("b", "x", 100)

    assert pipe("a", "late", 3) == []


def test_each_partition_has_its_own_time() -> None:
    pipe = Pipe(counted(TimeWindows.of_size_with_no_grace(10)), partitions=2)
    pipe("b", "x", 100, partition=1)

    assert pipe("a", "not late here", 3, partition=0) == [("a@0-10", 1, 3)]


def test_a_record_without_value_is_folded_too() -> None:
    pipe = Pipe(counted(TimeWindows.of_size_with_no_grace(10)))

    assert pipe("a", None, 1) == [("a@0-10", 1, 1)]
    assert pipe(None, "x", 1) == []


def test_a_result_at_close_comes_with_the_record_that_moves_time() -> None:
    pipe = Pipe(counted(TimeWindows.of_size_and_grace(10, 3), at_close=True))

    assert pipe("b", "x", 1) + pipe("a", "x", 2) + pipe("a", "x", 4) == []
    assert pipe("c", "x", 12) == []
    assert pipe("c", "x", 13) == [("a@0-10", 2, 4), ("b@0-10", 1, 1)]
    assert pipe("c", "x", 14) == []


def test_a_jump_beyond_the_retention_loses_windows_that_never_closed() -> None:
    pipe = Pipe(counted(TimeWindows.of_size_and_grace(10, 0), at_close=True))
    pipe("a", "x", 1)

    assert pipe("a", "x", 100) == []


def test_a_cache_still_shows_them() -> None:
    pipe = Pipe(counted(TimeWindows.of_size_and_grace(10, 0), at_close=True), is_caching=True)
    pipe("a", "x", 1)

    assert pipe("a", "x", 1_000_000) == [("a@0-10", 1, 1)]


def test_an_unlimited_window_never_closes() -> None:
    pipe = Pipe(counted(UnlimitedWindows.of().start_on(5)))

    assert pipe("a", "before", 4) == []
    assert pipe("a", "x", 5) == [("a@5-9223372036854775807", 1, 5)]
    assert pipe("a", "x", 10**12) == [("a@5-9223372036854775807", 2, 10**12)]
