"""Where batches are cut changes no output of any join: a task made anew from its backends goes on as the old one.

Inputs are generated late, out of order, null and repeated.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.pipeline.cores.small_topologies import (
    STRING,
    Run,
    both,
    function,
    global_table,
    sink,
    stored,
    stream,
    table,
    table_sink,
)

from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.nodes import JoinKind
from moldau.pipeline.ir.windows import JoinWindow

INNER, LEFT, OUTER = JoinKind.INNER, JoinKind.LEFT, JoinKind.OUTER


def stream_stream(kind: JoinKind, **window: int) -> Run:
    left, right = stream("left"), stream("right")
    join = ir.StreamStreamJoin(
        name="join",
        left=left,
        right=right,
        joiner=function(both),
        kind=kind,
        window=JoinWindow(**{"before_ms": 20, "after_ms": 20, "grace_ms": 10} | window),
        left_store=stored("left-window"),
        right_store=stored("right-window"),
    )
    return Run(left, right, join, sink(join), partitions=2)


def stream_self() -> Run:
    source = stream("left")
    join = ir.StreamStreamJoin(
        name="join",
        left=source,
        right=source,
        joiner=function(both),
        kind=INNER,
        window=JoinWindow(before_ms=20, after_ms=20, grace_ms=10),
        left_store=stored("left-window"),
        right_store=stored("right-window"),
    )
    unused = stream("right")
    return Run(source, unused, join, sink(join), sink(unused, "unused"))


def stream_table(kind: JoinKind) -> Run:
    left, right = stream("left"), table("right")
    join = ir.StreamTableJoin(name="join", left=left, right=right, joiner=function(both), kind=kind)
    return Run(left, right, join, sink(join), partitions=2)


def stream_versioned(kind: JoinKind, grace_ms: int | None) -> Run:
    left = stream("left")
    rows = ir.Materialization(
        store="rows", key_serde=STRING, value_serde=STRING, is_queryable=True, is_caching=False, history_ms=60
    )
    right = ir.TableSource(name="right", topics=("right",), key_serde=STRING, value_serde=STRING, table=rows)
    join = ir.StreamTableJoin(
        name="join",
        left=left,
        right=right,
        joiner=function(both),
        kind=kind,
        grace_ms=grace_ms,
        buffer=None if grace_ms is None else stored("buffer"),
    )
    return Run(left, right, join, sink(join), partitions=2)


def stream_global(kind: JoinKind) -> Run:
    left, right = stream("left"), global_table("right")
    join = ir.StreamGlobalTableJoin(
        name="join",
        left=left,
        right=right,
        joiner=function(both),
        kind=kind,
        selector=function(lambda key, value: key),
    )
    return Run(left, right, join, sink(join), partitions=2)


def table_table(kind: JoinKind, *, is_stored: bool) -> Run:
    left, right = table("left"), table("right")
    join = ir.TableTableJoin(
        name="join",
        left=left,
        right=right,
        joiner=function(both),
        kind=kind,
        table=stored("joined", is_queryable=True) if is_stored else None,
    )
    return Run(left, right, join, *table_sink(join), partitions=2)


def foreign_key(kind: JoinKind) -> Run:
    left, right = table("left"), table("right")
    join = ir.ForeignKeyJoin(
        name="join",
        left=left,
        right=right,
        joiner=function(both),
        kind=kind,
        extractor=function(lambda value: None if value == "n" else "abc"[ord(value) % 3]),
        left_table=stored("left-values"),
        right_table=stored("right-values"),
        subscriptions="subscriptions",
        subscription_topic="subscription-topic",
        response_topic="response-topic",
        table=stored("result", is_queryable=True),
    )
    return Run(left, right, join, *table_sink(join), partitions=2)


JOINS: dict[str, Callable[[], Run]] = {
    "stream-stream inner": lambda: stream_stream(INNER),
    "stream-stream left": lambda: stream_stream(LEFT),
    "stream-stream outer": lambda: stream_stream(OUTER),
    "stream-stream outer, uneven": lambda: stream_stream(OUTER, before_ms=35, after_ms=3),
    "stream-stream left, old form": lambda: stream_stream(LEFT, holds_unmatched=False),
    "stream-stream itself": stream_self,
    "stream-table inner": lambda: stream_table(INNER),
    "stream-table left": lambda: stream_table(LEFT),
    "stream-versioned table": lambda: stream_versioned(INNER, None),
    "stream-versioned table, patient": lambda: stream_versioned(LEFT, 20),
    "global inner": lambda: stream_global(INNER),
    "global left": lambda: stream_global(LEFT),
    "table-table inner": lambda: table_table(INNER, is_stored=False),
    "table-table left": lambda: table_table(LEFT, is_stored=True),
    "table-table outer": lambda: table_table(OUTER, is_stored=False),
    "foreign-key inner": lambda: foreign_key(INNER),
    "foreign-key left": lambda: foreign_key(LEFT),
}


def records(seed: int, count: int) -> list[tuple[str, str | None, str | None, int]]:
    """Records of both sides whose time goes on but not steadily."""
    rng = random.Random(seed)
    made: list[tuple[str, str | None, str | None, int]] = []
    now = 100
    for _ in range(count):
        now += rng.choice([0, 0, 1, 2, 5, 30])
        key = rng.choice(["a", "b", "c", "d", None] if rng.random() < 0.1 else ["a", "b", "c", "d"])
        value = None if rng.random() < 0.15 else rng.choice("uvwxyzn")
        made.append((rng.choice(["left", "right"]), key, value, max(0, now - rng.choice([0, 0, 0, 5, 25, 80]))))
    return made


@pytest.mark.parametrize("name", JOINS)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), cuts=st.frozensets(st.integers(0, 119), max_size=40))
def test_batch_cuts_change_no_output(name: str, seed: int, cuts: frozenset[int]) -> None:
    given_records = records(seed, 120)
    assert JOINS[name]().feed(given_records, frozenset()) == JOINS[name]().feed(given_records, cuts)


def test_the_generated_records_make_every_join_tell_something() -> None:
    told = {name: len(make().feed(records(1, 300), frozenset())) for name, make in JOINS.items()}
    assert min(told.values()) > 30, told
