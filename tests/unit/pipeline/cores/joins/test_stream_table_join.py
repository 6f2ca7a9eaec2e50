"""Joins of a stream with a table and with a global table."""

from __future__ import annotations

import pytest
from tests.unit.pipeline.cores.small_topologies import Run, both, function, global_table, sink, stream, table

from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.nodes import JoinKind

INNER, LEFT = JoinKind.INNER, JoinKind.LEFT


def joined(kind: JoinKind) -> Run:
    left, right = stream("stream"), table("table")
    join = ir.StreamTableJoin(name="join", left=left, right=right, joiner=function(both), kind=kind)
    return Run(left, right, join, sink(join))


def joined_globally(kind: JoinKind, *, partitions: int = 1) -> Run:
    left, right = stream("stream"), global_table("global")
    join = ir.StreamGlobalTableJoin(
        name="join",
        left=left,
        right=right,
        joiner=function(both),
        kind=kind,
        selector=function(lambda key, value: value.split(":")[0] or None),
    )
    return Run(left, right, join, sink(join), partitions=partitions)


@pytest.mark.parametrize(("kind", "alone"), [(INNER, []), (LEFT, [("k", "A-", 10)])])
def test_a_record_meets_the_row_as_it_is_at_that_moment(kind: JoinKind, alone: list[object]) -> None:
    run = joined(kind)
    assert run.pipe("stream", "k", "A", 10) == alone
    assert run.pipe("table", "k", "a", 5) == []
    assert run.pipe("stream", "k", "A", 10) == [("k", "Aa", 10)]
    assert run.pipe("table", "k", "b", 20) == []
    assert run.pipe("stream", "k", "A", 10) == [("k", "Ab", 10)]
    assert run.pipe("table", "k", None, 30) == []
    assert run.pipe("stream", "k", "A", 10) == alone


def test_results_have_the_time_of_the_streams_record_even_if_the_row_is_younger() -> None:
    run = joined(INNER)
    run.pipe("table", "k", "a", 1000)
    assert run.pipe("stream", "k", "A", 10) == [("k", "Aa", 10)]


@pytest.mark.parametrize(("kind", "told"), [(INNER, []), (LEFT, [(None, "A-", 10)])])
def test_a_record_without_key_has_no_row(kind: JoinKind, told: list[object]) -> None:
    run = joined(kind)
    assert run.pipe("stream", None, "A", 10) == told


@pytest.mark.parametrize("kind", [INNER, LEFT])
def test_a_record_without_value_is_dropped(kind: JoinKind) -> None:
    run = joined(kind)
    run.pipe("table", "k", "a", 5)
    assert run.pipe("stream", "k", None, 10) == []
    assert run.dropped() == {("join", "null value"): 1}


def test_a_table_that_is_computed_from_another_is_read_through_it() -> None:
    left, right = stream("stream"), table("table")
    upper = ir.TableMapValues(name="upper", input=right, mapper=function(str.upper))
    short = ir.TableFilter(name="short", input=upper, predicate=function(lambda key, value: len(value) < 3))
    join = ir.StreamTableJoin(name="join", left=left, right=short, joiner=function(both), kind=LEFT)
    run = Run(left, right, upper, short, join, sink(join))
    run.pipe("table", "k", "ab", 1)
    assert run.pipe("stream", "k", "A", 10) == [("k", "AAB", 10)]
    run.pipe("table", "k", "abc", 1)
    assert run.pipe("stream", "k", "A", 10) == [("k", "A-", 10)]


def test_headers_of_the_streams_record_go_along() -> None:
    run = joined(LEFT)
    run.run.pipe("stream", b"k", b"A", 10, headers=(("one", b"1"),))
    assert [row.headers for row in run.run.drain()] == [(("one", b"1"),)]


@pytest.mark.parametrize(("kind", "alone"), [(INNER, []), (LEFT, [("k", "g:A-", 10)])])
def test_a_global_row_is_found_by_the_selected_key(kind: JoinKind, alone: list[object]) -> None:
    run = joined_globally(kind)
    assert run.pipe("stream", "k", "g:A", 10) == alone
    run.pipe("global", "g", "x", 5)
    assert run.pipe("stream", "k", "g:A", 10) == [("k", "g:Ax", 10)]
    run.pipe("global", "g", None, 6)
    assert run.pipe("stream", "k", "g:A", 10) == alone


def test_a_record_without_key_can_have_a_global_row() -> None:
    run = joined_globally(INNER)
    run.pipe("global", "g", "x", 5)
    assert run.pipe("stream", None, "g:A", 10) == [(None, "g:Ax", 10)]


@pytest.mark.parametrize(("kind", "told"), [(INNER, []), (LEFT, [("k", ":A-", 10)])])
def test_a_selected_key_of_none_has_no_row(kind: JoinKind, told: list[object]) -> None:
    run = joined_globally(kind)
    assert run.pipe("stream", "k", ":A", 10) == told


def test_every_partition_knows_the_whole_global_table() -> None:
    run = joined_globally(INNER, partitions=3)
    run.pipe("global", "g", "x", 5)
    told = [run.pipe("stream", key, "g:A", 10) for key in ("a", "b", "c", "d", "e")]
    assert told == [[(key, "g:Ax", 10)] for key in ("a", "b", "c", "d", "e")]
