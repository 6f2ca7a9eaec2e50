"""Sliding windows: one for every set of records that are close to each other."""

from __future__ import annotations

from tests.unit.pipeline.cores.piped_tables import Pipe, Told

from moldau.pipeline.dsl.options.windows import SlidingWindows


def joined(grace: int = 100, difference: int = 10) -> Pipe:
    windows = SlidingWindows.of_time_difference_and_grace(difference, grace)
    return Pipe(lambda stream: stream.group_by_key().windowed_by(windows).reduce(lambda before, value: before + value))


def final(pipe: Pipe, records: list[tuple[str, str, int]]) -> dict[str | None, str]:
    """The last value of each window."""
    told: list[Told] = [result for record in records for result in pipe(*record)]
    return {key: value for key, value, _ in told}


def test_a_record_alone_has_the_window_that_ends_with_it() -> None:
    assert joined()("a", "x", 50) == [("a@40-50", "x", 50)]


def test_a_second_record_gives_the_first_its_right_window() -> None:
    pipe = joined()
    pipe("a", "x", 50)

    assert pipe("a", "y", 55) == [("a@51-61", "y", 55), ("a@45-55", "xy", 55)]


def test_every_set_of_near_records_has_its_window_in_any_order() -> None:
    records = [("a", "x", 50), ("a", "y", 55), ("a", "z", 63)]
    expected = {
        frozenset("x"): "a@40-50",
        frozenset("xy"): "a@45-55",
        frozenset("yz"): "a@53-63",
    }

    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]):
        windows = final(joined(), [records[index] for index in order])
        assert {frozenset(value): key for key, value in windows.items() if key in expected.values()} == expected


def test_a_record_at_the_same_time_joins_the_windows_that_are_there() -> None:
    pipe = joined()
    pipe("a", "x", 50)

    assert pipe("a", "y", 50) == [("a@40-50", "xy", 50)]


def test_records_before_the_first_difference_share_the_window_from_zero() -> None:
    pipe = joined()

    assert pipe("a", "x", 3) == [("a@0-10", "x", 3)]
    assert pipe("a", "y", 6) == [("a@4-14", "y", 6), ("a@0-10", "xy", 6)]
    assert pipe("a", "w", 1) == [("a@2-12", "xy", 6), ("a@0-10", "xyw", 6)]


def test_a_late_record_is_dropped_when_its_own_window_has_closed() -> None:
    pipe = joined(grace=5)
    pipe("a", "x", 100)

    assert pipe("a", "late", 84) == []
    assert pipe("a", "in time", 90)[0][1] != "late"
    assert pipe.dropped()["expired window"] >= 1
