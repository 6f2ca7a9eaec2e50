"""Joins of two tables: what each change of a side tells, for every kind."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.pipeline.cores.small_topologies import Run, both, function, stored, table, table_sink

from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.nodes import JoinKind

INNER, LEFT, OUTER = JoinKind.INNER, JoinKind.LEFT, JoinKind.OUTER
KINDS = [INNER, LEFT, OUTER]


def join_of(kind: JoinKind, left: ir.Node, right: ir.Node, store: str | None = None) -> ir.TableTableJoin:
    return ir.TableTableJoin(
        name=f"join-{left.name}-{right.name}",
        left=left,
        right=right,
        joiner=function(both),
        kind=kind,
        table=None if store is None else stored(store, is_queryable=True),
    )


def joined(kind: JoinKind, *, store: str | None = None) -> Run:
    left, right = table("left"), table("right")
    join = join_of(kind, left, right, store)
    return Run(left, right, join, *table_sink(join))


A_ALONE = {INNER: [], LEFT: [("k", "A-", 10)], OUTER: [("k", "A-", 10)]}
B_ALONE = {INNER: [], LEFT: [], OUTER: [("k", "-a", 10)]}


@pytest.mark.parametrize("store", [None, "store"])
@pytest.mark.parametrize("kind", KINDS)
def test_both_sides_present_give_a_row_with_the_later_time(kind: JoinKind, store: str | None) -> None:
    run = joined(kind, store=store)
    assert run.pipe("left", "k", "A", 10) == A_ALONE[kind]
    assert run.pipe("right", "k", "a", 20) == [("k", "Aa", 20)]
    assert run.pipe("left", "k", "B", 15) == [("k", "Ba", 20)]
    assert run.pipe("right", "k", "b", 30) == [("k", "Bb", 30)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_side_alone_gives_what_the_kind_allows(kind: JoinKind) -> None:
    assert joined(kind).pipe("left", "k", "A", 10) == A_ALONE[kind]
    assert joined(kind).pipe("right", "k", "a", 10) == B_ALONE[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_equal_values_are_told_again(kind: JoinKind) -> None:
    run = joined(kind)
    run.pipe("left", "k", "A", 10)
    run.pipe("right", "k", "a", 10)
    assert run.pipe("right", "k", "a", 10) == [("k", "Aa", 10)]


@pytest.mark.parametrize(
    ("kind", "told"),
    [(INNER, [("k", None, 30)]), (LEFT, [("k", "A-", 30)]), (OUTER, [("k", "A-", 30)])],
)
def test_deleting_the_right_row(kind: JoinKind, told: list[Any]) -> None:
    run = joined(kind)
    run.pipe("left", "k", "A", 10)
    run.pipe("right", "k", "a", 20)
    assert run.pipe("right", "k", None, 30) == told


@pytest.mark.parametrize(
    ("kind", "told"),
    [(INNER, [("k", None, 30)]), (LEFT, [("k", None, 30)]), (OUTER, [("k", "-a", 30)])],
)
def test_deleting_the_left_row(kind: JoinKind, told: list[Any]) -> None:
    run = joined(kind)
    run.pipe("left", "k", "A", 10)
    run.pipe("right", "k", "a", 20)
    assert run.pipe("left", "k", None, 30) == told


@pytest.mark.parametrize(("kind", "told"), [(INNER, []), (LEFT, [("k", None, 30)]), (OUTER, [("k", None, 30)])])
def test_deleting_the_last_left_row(kind: JoinKind, told: list[Any]) -> None:
    run = joined(kind)
    run.pipe("left", "k", "A", 10)
    assert run.pipe("left", "k", None, 30) == told


@pytest.mark.parametrize(("kind", "told"), [(INNER, []), (LEFT, []), (OUTER, [("k", None, 30)])])
def test_deleting_the_last_right_row(kind: JoinKind, told: list[Any]) -> None:
    run = joined(kind)
    run.pipe("right", "k", "a", 10)
    assert run.pipe("right", "k", None, 30) == told


@pytest.mark.parametrize("kind", KINDS)
def test_deleting_what_never_was_tells_nothing(kind: JoinKind) -> None:
    run = joined(kind)
    assert run.pipe("left", "k", None, 10) == []
    assert run.pipe("right", "k", None, 10) == []


def test_an_inner_join_repeats_a_tombstone_because_it_asks_for_no_old_values() -> None:
    run = joined(INNER)
    run.pipe("right", "k", "a", 20)
    assert run.pipe("left", "k", None, 30) == [("k", None, 30)]


def test_the_time_of_a_tombstone_is_not_before_the_other_rows() -> None:
    run = joined(INNER)
    run.pipe("left", "k", "A", 10)
    run.pipe("right", "k", "a", 50)
    assert run.pipe("left", "k", None, 30) == [("k", None, 50)]


@pytest.mark.parametrize("store", [None, "store"])
def test_a_join_of_a_join_reads_the_first_through_its_parents_or_its_store(store: str | None) -> None:
    one, two, three = table("one"), table("two"), table("three")
    first = join_of(INNER, one, two, store)
    second = join_of(OUTER, first, three)
    run = Run(one, two, three, first, second, *table_sink(second))
    assert run.pipe("three", "k", "c", 5) == [("k", "-c", 5)]
    assert run.pipe("one", "k", "a", 10) == []
    assert run.pipe("two", "k", "b", 12) == [("k", "abc", 12)]
    assert run.pipe("three", "k", "d", 7) == [("k", "abd", 12)]
    assert run.pipe("three", "k", None, 8) == [("k", "ab-", 12)]
    assert run.pipe("one", "k", None, 20) == [("k", None, 20)]


@pytest.mark.parametrize("store", [None, "store"])
@pytest.mark.parametrize("kind", KINDS)
def test_old_results_reach_an_aggregation_behind_the_join(kind: JoinKind, store: str | None) -> None:
    left, right = table("left"), table("right")
    join = join_of(kind, left, right, store)
    group = ir.GroupTable(name="group", input=join, selector=function(lambda key, value: ("all", value)))
    total = ir.AggregateTable(
        name="total",
        input=group,
        aggregator=ir.Fold(
            initializer=function(str),
            adder=function(lambda key, value, text: f"{text}+{value}"),
            subtractor=function(lambda key, value, text: f"{text}-{value}"),
        ),
        table=stored("total"),
    )
    run = Run(left, right, join, group, total, *table_sink(total))
    run.pipe("left", "k", "A", 10)
    run.pipe("right", "k", "a", 10)
    run.pipe("left", "k", "B", 10)
    (told,) = run.pipe("right", "k", "b", 10)[-1:]
    start = {INNER: "+Aa", LEFT: "+A--A-+Aa", OUTER: "+A--A-+Aa"}[kind]
    assert told == ("all", f"{start}-Aa+Ba-Ba+Bb", 10)


def test_a_materialised_join_can_be_read() -> None:
    run = joined(LEFT, store="store")
    run.pipe("left", "k", "A", 10)
    run.pipe("right", "k", "a", 20)
    (store,) = run.run.stores("store")
    assert store.get("k") == ("Aa", 20)  # type: ignore[attr-defined]
    run.pipe("left", "k", None, 30)
    assert store.get("k") is None  # type: ignore[attr-defined]


def test_a_null_key_never_reaches_a_join() -> None:
    run = joined(OUTER)
    assert run.pipe("left", None, "A", 10) == []
