from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from moldau.pipeline.ir import windows as ir
from moldau.pipeline.ir.errors import TopologyError
from moldau.streams import JoinWindows, SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("windows", "declared"),
    [
        (TimeWindows.of_size_with_no_grace(MINUTE), ir.TimeWindow(size_ms=60_000, advance_ms=60_000, grace_ms=0)),
        (
            TimeWindows.of_size_and_grace(60_000, MINUTE).advance_by(10_000),
            ir.TimeWindow(size_ms=60_000, advance_ms=10_000, grace_ms=60_000),
        ),
        (
            SlidingWindows.of_time_difference_and_grace(MINUTE, 5),
            ir.SlidingWindow(difference_ms=60_000, grace_ms=5),
        ),
        (SessionWindows.of_inactivity_gap_with_no_grace(7), ir.SessionWindow(gap_ms=7, grace_ms=0)),
        (UnlimitedWindows.of().start_on(9), ir.UnlimitedWindow(start_ms=9)),
        (
            JoinWindows.of_time_difference_with_no_grace(10).before(3).after(-1),
            ir.JoinWindow(before_ms=3, after_ms=-1, grace_ms=0),
        ),
        (
            JoinWindows.of(MINUTE),
            ir.JoinWindow(before_ms=60_000, after_ms=60_000, grace_ms=86_280_000, holds_unmatched=False),
        ),
    ],
)
def test_windows_are_declared_as_they_were_said(windows: Any, declared: Any) -> None:
    assert windows.ir_window == declared


def test_retention_is_at_least_what_a_window_needs() -> None:
    assert TimeWindows.of_size_and_grace(10, 5).least_retention_ms == 15
    assert SlidingWindows.of_time_difference_and_grace(10, 5).least_retention_ms == 25
    assert SessionWindows.of_inactivity_gap_and_grace(10, 5).least_retention_ms == 15


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: TimeWindows.of_size_with_no_grace(0), "the size of a window must be at least 1 ms, not 0 ms"),
        (lambda: TimeWindows.of_size_and_grace(1, -1), "the grace of a window must be at least 0 ms"),
        (lambda: TimeWindows.of_size_with_no_grace(1.5), "must be a timedelta or whole milliseconds, not 1.5"),
        (lambda: TimeWindows.of_size_with_no_grace(True), "must be a timedelta or whole milliseconds, not True"),
        (lambda: TimeWindows.of_size_with_no_grace(5).advance_by(6), "cannot advance by 6 ms"),
        (lambda: TimeWindows.of(5), "how late records may be: TimeWindows.of_size_and_grace"),
        (lambda: SessionWindows.with_(5), "how late records may be: SessionWindows.of_inactivity_gap_and_grace"),
        (lambda: JoinWindows.of_time_difference_with_no_grace(5).before(-6), "is empty: no record can match"),
    ],
)
def test_windows_that_make_no_sense_are_refused_with_the_users_line(declare: Callable[[], Any], message: str) -> None:
    with pytest.raises(TopologyError, match=rf"{message}.*\(test_windows.py:\d+\)"):
        declare()
