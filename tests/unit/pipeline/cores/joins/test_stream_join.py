"""Joins of two streams, each case derived by hand from Kafka Streams' rules."""

from __future__ import annotations

from tests.unit.pipeline.cores.small_topologies import STRING, Run, both, function, sink, stored, stream

from moldau.pipeline.cores.handlers import log_and_continue
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.nodes import JoinKind
from moldau.pipeline.ir.windows import JoinWindow
from moldau.serdes.plain import JsonSerde

INNER, LEFT, OUTER = JoinKind.INNER, JoinKind.LEFT, JoinKind.OUTER


def joined(
    kind: JoinKind,
    *,
    before_ms: int = 10,
    after_ms: int = 10,
    grace_ms: int = 0,
    holds_unmatched: bool = True,
    has_key: bool = False,
) -> Run:
    left, right = stream("left"), stream("right")
    join = ir.StreamStreamJoin(
        name="join",
        left=left,
        right=right,
        joiner=function((lambda key, one, other: key + both(one, other)) if has_key else both),
        kind=kind,
        has_key=has_key,
        window=JoinWindow(before_ms=before_ms, after_ms=after_ms, grace_ms=grace_ms, holds_unmatched=holds_unmatched),
        left_store=stored("left-window"),
        right_store=stored("right-window"),
    )
    return Run(left, right, join, sink(join))


# --- inner -------------------------------------------------------------------------------------------------------


def test_records_of_one_key_within_the_window_make_a_pair_with_the_later_time() -> None:
    run = joined(INNER)
    assert run.pipe("left", "k", "A", 10) == []
    assert run.pipe("right", "k", "a", 20) == [("k", "Aa", 20)]
    assert run.pipe("left", "k", "B", 15) == [("k", "Ba", 20)]


def test_records_of_other_keys_do_not_meet() -> None:
    run = joined(INNER)
    run.pipe("left", "k", "A", 10)
    assert run.pipe("right", "other", "a", 10) == []


def test_both_ends_of_the_window_belong_to_it() -> None:
    run = joined(INNER, before_ms=5, after_ms=10, grace_ms=100)
    run.pipe("left", "k", "A", 100)
    assert run.pipe("right", "k", "a", 95) == [("k", "Aa", 100)]
    assert run.pipe("right", "k", "b", 110) == [("k", "Ab", 110)]
    assert run.pipe("right", "k", "c", 94) == []
    assert run.pipe("right", "k", "d", 111) == []
    assert run.pipe("left", "k", "B", 101) == [("k", "Bb", 110), ("k", "Bd", 111)]


def test_pairs_come_in_order_of_time_then_of_arrival_and_duplicates_all_count() -> None:
    run = joined(INNER, grace_ms=100)
    run.pipe("left", "k", "C", 12)
    run.pipe("left", "k", "A", 10)
    run.pipe("left", "k", "A", 10)
    run.pipe("left", "k", "B", 10)
    assert run.pipe("right", "k", "a", 11) == [("k", "Aa", 11), ("k", "Aa", 11), ("k", "Ba", 11), ("k", "Ca", 12)]


def test_pairs_carry_the_headers_of_the_record_that_came_last() -> None:
    run = joined(INNER)
    run.pipe("left", "k", "A", 10, headers=(("from", b"left"),))
    run.run.pipe("right", b"k", b"a", 10, headers=(("from", b"right"),))
    assert [row.headers for row in run.run.drain()] == [(("from", b"right"),)]


def test_the_joiner_gets_the_key_where_it_asks_for_it() -> None:
    run = joined(INNER, has_key=True)
    run.pipe("left", "k", "A", 10)
    assert run.pipe("right", "k", "a", 10) == [("k", "kAa", 10)]


def test_null_keys_and_null_values_are_dropped() -> None:
    run = joined(INNER)
    for key, value in ((None, "A"), ("k", None), (None, None)):
        assert run.pipe("left", key, value, 10) == []
    assert run.pipe("right", "k", "a", 10) == []
    assert run.dropped() == {("join", "null key or value"): 3}


def test_what_is_older_than_window_and_grace_finds_nothing_and_is_not_kept() -> None:
    run = joined(INNER, grace_ms=5)  # kept for 10 + 10 + 5: at 125 that is from 101 on
    run.pipe("right", "k", "a", 100)
    run.pipe("right", "k", "b", 101)
    run.pipe("right", "other", "x", 125)
    assert run.pipe("left", "k", "A", 105) == [("k", "Ab", 105)]
    run.pipe("left", "other", "y", 160)
    run.pipe("left", "k", "B", 130)
    assert run.pipe("right", "k", "c", 135) == []


def test_each_side_keeps_by_its_own_time() -> None:
    run = joined(INNER, grace_ms=0)
    run.pipe("left", "k", "A", 10)
    run.pipe("right", "other", "x", 1000)
    assert run.pipe("right", "k", "a", 12) == [("k", "Aa", 12)]


def test_a_stream_joined_with_itself_meets_itself_last() -> None:
    source = stream("in")
    join = ir.StreamStreamJoin(
        name="join",
        left=source,
        right=source,
        joiner=function(both),
        kind=INNER,
        window=JoinWindow(before_ms=10, after_ms=10, grace_ms=0),
        left_store=stored("left-window"),
        right_store=stored("right-window"),
    )
    run = Run(source, join, sink(join))
    assert run.pipe("in", "k", "A", 10) == [("k", "AA", 10)]
    assert run.pipe("in", "k", "B", 12) == [("k", "BA", 12), ("k", "AB", 12), ("k", "BB", 12)]


# --- left --------------------------------------------------------------------------------------------------------


def test_a_left_record_alone_is_told_when_its_window_and_grace_have_passed() -> None:
    run = joined(LEFT, grace_ms=5)
    assert run.pipe("left", "k", "A", 100) == []
    assert run.pipe("right", "other", "x", 115) == []
    assert run.pipe("right", "other", "x", 116) == [("k", "A-", 100)]
    assert run.pipe("right", "other", "x", 117) == []


def test_held_records_are_told_before_the_result_of_the_record_that_closed_them() -> None:
    run = joined(LEFT)
    run.pipe("left", "k", "A", 100)
    run.pipe("right", "j", "b", 108)
    assert run.pipe("left", "j", "B", 111) == [("k", "A-", 100), ("j", "Bb", 111)]


def test_held_records_carry_the_headers_of_the_record_that_closed_them() -> None:
    run = joined(LEFT)
    run.pipe("left", "k", "A", 100, headers=(("from", b"A"),))
    run.run.pipe("left", b"j", b"B", 111, headers=(("from", b"B"),))
    assert [row.headers for row in run.run.drain()] == [(("from", b"B"),)]


def test_a_left_record_that_found_a_partner_is_never_told_alone() -> None:
    run = joined(LEFT)
    run.pipe("left", "k", "A", 100)
    assert run.pipe("right", "k", "a", 105) == [("k", "Aa", 105)]
    assert run.pipe("left", "other", "x", 200) == []


def test_a_right_record_alone_says_nothing_in_a_left_join() -> None:
    run = joined(LEFT)
    assert run.pipe("right", "k", "a", 100) == []
    assert run.pipe("right", "k", "b", 200) == []
    assert run.pipe("left", "k", "A", 195) == [("k", "Ab", 200)]


def test_a_late_left_record_without_partner_is_told_at_once_even_within_grace() -> None:
    run = joined(LEFT, grace_ms=50)
    run.pipe("right", "other", "x", 120)
    assert run.pipe("left", "k", "A", 109) == [("k", "A-", 109)]
    assert run.pipe("left", "k", "B", 110) == []
    assert run.pipe("right", "k", "a", 112) == [("k", "Aa", 112), ("k", "Ba", 112)]


def test_only_a_record_at_the_head_of_time_closes_windows() -> None:
    run = joined(LEFT)
    run.pipe("left", "k", "A", 100)
    run.pipe("left", "k", "B", 100)
    run.pipe("right", None, "x", 150)
    assert run.pipe("right", "other", "x", 149) == []
    assert run.pipe("right", "other", "x", 150) == [("k", "A-", 100), ("k", "B-", 100)]


def test_a_null_value_moves_time_though_it_is_dropped() -> None:
    run = joined(LEFT)
    run.pipe("left", "k", None, 150)
    assert run.pipe("left", "k", "A", 100) == [("k", "A-", 100)]


def test_a_left_record_without_key_is_told_alone_at_once() -> None:
    run = joined(LEFT)
    assert run.pipe("left", None, "A", 100) == [(None, "A-", 100)]
    assert run.pipe("right", None, "a", 100) == []


def test_kafka_looks_for_closed_windows_only_after_the_last_one_it_saw_has_closed() -> None:
    run = joined(LEFT)
    run.pipe("left", "a", "A", 0)
    run.pipe("left", "b", "B", 5)
    run.pipe("left", "c", "C", 7)
    assert run.pipe("right", "x", "x", 11) == [("a", "A-", 0)]
    # The search went on to C at 7, so B, which could be told from 16 on, waits until C's window has closed: 18. But a
    # right record looks from its own side, which is as wide here.
    assert run.pipe("right", "x", "x", 16) == []
    assert run.pipe("right", "x", "x", 17) == []
    assert run.pipe("right", "x", "x", 18) == [("b", "B-", 5), ("c", "C-", 7)]


def test_without_grace_a_left_record_is_told_alone_at_once_and_again_with_each_partner() -> None:
    run = joined(LEFT, grace_ms=86_400_000, holds_unmatched=False)
    assert run.pipe("left", "k", "A", 100) == [("k", "A-", 100)]
    assert run.pipe("right", "k", "a", 105) == [("k", "Aa", 105)]
    assert run.pipe("left", "k", "B", 106) == [("k", "Ba", 106)]
    assert run.pipe("right", "other", "x", 100) == []


# --- outer -------------------------------------------------------------------------------------------------------


def test_both_sides_of_an_outer_join_wait_and_are_told_by_time_then_right_before_left_then_by_key() -> None:
    run = joined(OUTER)
    run.pipe("left", "b", "L1", 100)
    run.pipe("left", "a", "L2", 100)
    run.pipe("right", "z", "R1", 100)
    run.pipe("right", "y", "R2", 99)
    assert run.pipe("left", "x", "X", 111) == [
        ("y", "-R2", 99),
        ("z", "-R1", 100),
        ("a", "L2-", 100),
        ("b", "L1-", 100),
    ]


def test_the_window_of_a_right_record_is_the_mirror_of_the_left() -> None:
    run = joined(OUTER, before_ms=20, after_ms=5)
    run.pipe("left", "l", "L", 100)
    run.pipe("right", "r", "R", 100)
    assert run.pipe("left", "x", "X", 106) == [("l", "L-", 100)]
    assert run.pipe("left", "x", "X", 120) == [("x", "X-", 106)]
    assert run.pipe("left", "x", "X", 121) == [("r", "-R", 100)]


def test_a_partner_releases_all_that_were_held_at_its_time() -> None:
    run = joined(OUTER)
    run.pipe("right", "k", "a", 100)
    run.pipe("right", "k", "b", 100)
    assert run.pipe("left", "k", "A", 101) == [("k", "Aa", 101), ("k", "Ab", 101)]
    assert run.pipe("left", "x", "X", 200) == []


def test_a_late_right_record_of_an_outer_join_is_told_at_once() -> None:
    run = joined(OUTER)
    run.pipe("left", "x", "X", 150)
    assert run.pipe("right", "k", "a", 100) == [("k", "-a", 100)]
    assert run.pipe("right", None, "b", 100) == [(None, "-b", 100)]


def test_without_grace_both_sides_of_an_outer_join_are_told_at_once() -> None:
    run = joined(OUTER, holds_unmatched=False)
    assert run.pipe("right", "k", "a", 100) == [("k", "-a", 100)]
    assert run.pipe("left", "k", "A", 101) == [("k", "Aa", 101)]
    assert run.pipe("left", "j", "B", 101) == [("j", "B-", 101)]


# --- values ------------------------------------------------------------------------------------------------------


def test_a_joiner_that_changes_what_it_is_given_does_not_change_what_is_remembered() -> None:
    def greedy(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
        left |= right
        return left

    json = JsonSerde()
    sides = [
        ir.StreamSource(name=name, topics=(name,), key_serde=STRING, value_serde=json) for name in ("left", "right")
    ]
    stores = [
        ir.Materialization(store=f"{name}-window", key_serde=STRING, value_serde=json) for name in ("left", "right")
    ]
    join = ir.StreamStreamJoin(
        name="join",
        left=sides[0],
        right=sides[1],
        joiner=function(greedy),
        kind=INNER,
        window=JoinWindow(before_ms=10, after_ms=10, grace_ms=0),
        left_store=stores[0],
        right_store=stores[1],
    )
    out = ir.Sink(name="sink", input=join, topic="out", key_serde=STRING, value_serde=json)
    run = Run(*sides, join, out)
    run.pipe("left", "k", '{"a": 1}', 10)
    assert run.pipe("right", "k", '{"b": 2}', 11) == [("k", '{"a":1,"b":2}', 11)]
    assert run.pipe("right", "k", '{"c": 3}', 11) == [("k", '{"a":1,"c":3}', 11)]


def test_a_joiner_that_fails_on_a_held_record_loses_only_that_one() -> None:
    def joiner(one: str | None, other: str | None) -> str:
        return both(one, other) if one != "bad" else str(1 / 0)

    left, right = stream("left"), stream("right")
    join = ir.StreamStreamJoin(
        name="join",
        left=left,
        right=right,
        joiner=function(joiner),
        kind=OUTER,
        window=JoinWindow(before_ms=5, after_ms=5, grace_ms=0),
        left_store=stored("left-window"),
        right_store=stored("right-window"),
    )
    run = Run(left, right, join, sink(join), processing_handler=log_and_continue)
    run.pipe("left", "a", "bad", 0)
    run.pipe("right", "b", "x", 4)

    assert run.pipe("left", "c", "y", 20) == []
    assert run.pipe("left", "c", "z", 40) == [("b", "-x", 4)]


def test_a_record_that_its_side_cannot_remember_does_not_harm_those_that_come_after_it() -> None:
    left, right = stream("left"), stream("right")
    numbers = ir.MapValues(name="numbers", input=left, mapper=function(lambda value: 5 if value == "bad" else value))
    join = ir.StreamStreamJoin(
        name="join",
        left=numbers,
        right=right,
        joiner=function(both),
        kind=INNER,
        window=JoinWindow(before_ms=5, after_ms=5, grace_ms=0),
        left_store=stored("left-window"),
        right_store=stored("right-window"),
    )
    run = Run(left, right, numbers, join, sink(join), processing_handler=log_and_continue)
    run.pipe("left", "k", "bad", 1)

    assert run.pipe("right", "k", "a", 2) == []
    assert run.pipe("left", "k", "A", 3) == [("k", "Aa", 3)]
