"""Session windows: growing, merging, tombstones and lateness."""

from __future__ import annotations

from tests.unit.pipeline.cores.piped_tables import Build, Pipe

from moldau.pipeline.dsl.options.windows import SessionWindows
from moldau.pipeline.ir.nodes import EmitStrategy


def counted(gap: int = 10, grace: int = 100, *, at_close: bool = False) -> Build:
    windows = SessionWindows.of_inactivity_gap_and_grace(gap, grace)

    def build(stream):  # type: ignore[no-untyped-def]
        sessions = stream.group_by_key().windowed_by(windows)
        return (sessions.emit_strategy(EmitStrategy.ON_WINDOW_CLOSE) if at_close else sessions).count()

    return build


def test_a_session_that_grows_ends_with_a_tombstone_and_is_told_anew() -> None:
    pipe = Pipe(counted())

    assert pipe("a", "x", 5) == [("a@5-5", 1, 5)]
    assert pipe("a", "x", 15) == [("a@5-5", None, 5), ("a@5-15", 2, 15)]
    assert pipe("a", "x", 26) == [("a@26-26", 1, 26)]


def test_a_record_between_two_sessions_merges_them() -> None:
    pipe = Pipe(counted())
    pipe("a", "x", 5)
    pipe("a", "x", 25)

    assert pipe("a", "x", 15) == [("a@5-5", None, 5), ("a@25-25", None, 25), ("a@5-25", 3, 25)]


def test_a_record_at_the_very_time_of_a_session_says_no_tombstone() -> None:
    pipe = Pipe(counted())
    pipe("a", "x", 5)

    assert pipe("a", "x", 5) == [("a@5-5", 2, 5)]


def test_a_late_record_may_still_join_a_session_that_is_open() -> None:
    pipe = Pipe(counted(grace=0))
    pipe("a", "x", 100)

    assert pipe("a", "in time", 91) == [("a@100-100", None, 100), ("a@91-100", 2, 100)]
    assert pipe("a", "late", 79) == []
    assert pipe.dropped() == {"expired window": 1}


def test_sessions_are_told_at_close_once_and_by_end() -> None:
    pipe = Pipe(counted(grace=5, at_close=True))

    assert pipe("b", "x", 3) + pipe("a", "x", 1) + pipe("a", "x", 4) == []
    assert pipe("c", "x", 19) == [("b@3-3", 1, 3)]
    assert pipe("c", "x", 20) == [("a@1-4", 2, 4)]


def test_merged_sessions_are_combined_by_the_users_merger() -> None:
    def build(stream):  # type: ignore[no-untyped-def]
        sessions = stream.group_by_key().windowed_by(SessionWindows.of_inactivity_gap_and_grace(10, 100))
        return sessions.aggregate(str, lambda key, value, total: total + value, lambda key, one, other: one + other)

    pipe = Pipe(build)
    pipe("a", "x", 0)
    pipe("a", "y", 20)

    assert pipe("a", "z", 10)[-1] == ("a@0-20", "xyz", 20)
