"""Tables that know their past: the store, what late records change, and streams that join as of their own time."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.pipeline.cores.small_topologies import (
    STRING,
    Run,
    both,
    function,
    sink,
    stored,
    stream,
    table,
    table_sink,
)

from moldau.pipeline.cores.stores.backends import MemoryBackend
from moldau.pipeline.cores.stores.cells import Cell
from moldau.pipeline.cores.stores.store import Codec
from moldau.pipeline.cores.stores.versioned_store import Put, VersionedStore
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.nodes import JoinKind

INNER, LEFT = JoinKind.INNER, JoinKind.LEFT
TEXT = Codec(str.encode, bytes.decode, str.encode, bytes.decode, True)


def history(name: str, history_ms: int) -> ir.Materialization:
    return ir.Materialization(
        store=name, key_serde=STRING, value_serde=STRING, is_queryable=True, is_caching=False, history_ms=history_ms
    )


def versioned(topic: str, history_ms: int = 100) -> ir.TableSource:
    return ir.TableSource(
        name=topic,
        topics=(topic,),
        key_serde=STRING,
        value_serde=STRING,
        table=history(f"{topic}-store", history_ms),
    )


# --- the store ---------------------------------------------------------------------------------------------------


def store(backend: MemoryBackend | None = None, observed: Cell | None = None) -> VersionedStore:
    return VersionedStore("store", backend or MemoryBackend(), TEXT, observed=observed or Cell("", -1), history_ms=100)


def test_a_row_is_what_it_was_at_any_time_of_the_history() -> None:
    rows = store()
    assert rows.put("k", "a", 10) is Put.LATEST
    assert rows.put("k", "c", 30) is Put.LATEST
    assert rows.put("k", "b", 20) is Put.OUTDATED
    assert rows.get("k") == ("c", 30)
    found = [rows.get_as_of("k", time) for time in (9, 10, 19, 20, 29, 30, 99)]
    assert found == [None, ("a", 10), ("a", 10), ("b", 20), ("b", 20), ("c", 30), ("c", 30)]


def test_a_deletion_is_a_version() -> None:
    rows = store()
    rows.put("k", "a", 10)
    assert rows.put("k", None, 20) is Put.LATEST
    assert rows.get("k") is None
    assert rows.put("k", "b", 15) is Put.OUTDATED
    assert [rows.get_as_of("k", time) for time in (12, 17, 20)] == [("a", 10), ("b", 15), None]
    assert rows.put("k", "c", 20) is Put.LATEST
    assert rows.get("k") == ("c", 20)


def test_a_row_deleted_at_its_own_time_leaves_a_trace_only_if_a_row_was_before_it() -> None:
    rows = store()
    rows.put("k", "a", 20)
    rows.put("k", None, 20)
    assert rows.put("k", "late", 10) is Put.LATEST

    rows.put("l", "a", 20)
    rows.put("l", "b", 30)
    rows.put("l", None, 30)
    assert rows.put("l", "late", 25) is Put.OUTDATED


def test_a_record_of_the_same_time_replaces_a_version() -> None:
    rows = store()
    rows.put("k", "a", 10)
    rows.put("k", "c", 30)
    assert rows.put("k", "b", 10) is Put.OUTDATED
    assert rows.put("k", "d", 30) is Put.LATEST
    assert [rows.get_as_of("k", time) for time in (10, 30)] == [("b", 10), ("d", 30)]


def test_what_is_older_than_the_history_is_refused_and_not_known() -> None:
    rows = store()
    rows.put("k", "a", 10)
    rows.put("k", "b", 50)
    rows.put("other", "x", 151)
    assert rows.put("k", "c", 50) is Put.REFUSED
    assert rows.put("k", "c", 51) is Put.LATEST
    assert rows.get_as_of("k", 50) is None
    assert rows.get_as_of("k", 51) == ("c", 51)


def test_the_newest_version_never_expires() -> None:
    rows = store()
    rows.put("k", "a", 10)
    rows.put("other", "x", 10_000)
    assert rows.get("k") == ("a", 10)
    assert rows.get_as_of("k", 20) == ("a", 10)


def test_history_survives_and_what_expired_leaves_the_backend() -> None:
    backend, observed = MemoryBackend(), Cell("", -1)
    rows = store(backend, observed)
    for time in range(0, 1000, 10):
        rows.put("k", str(time), time)
    rows.put("gone", "x", 990)
    rows.put("gone", None, 991)
    rows.flush()
    again = store(backend, observed)
    assert again.get_as_of("k", 955) == ("950", 950)
    assert len(backend.entries[b"k"]) < 20 * 20
    again.put("gone", None, 992)
    again.put("k", "new", 2000)
    again.flush()
    assert set(backend.entries) == {b"k"}


# --- tables ------------------------------------------------------------------------------------------------------


def test_a_stream_of_a_versioned_table_shows_late_records_but_none_older_than_the_history() -> None:
    source = versioned("in")
    run = Run(source, *table_sink(source))
    assert run.pipe("in", "k", "b", 200) == [("k", "b", 200)]
    assert run.pipe("in", "k", "a", 150) == [("k", "a", 150)]
    assert run.pipe("in", "k", "x", 99) == []
    assert run.dropped() == {("in", "older than the history"): 1}


def test_a_filter_of_a_versioned_table_sends_a_tombstone_for_every_row_that_does_not_pass() -> None:
    source = versioned("in")
    kept = ir.TableFilter(name="kept", input=source, predicate=function(lambda key, value: value != "no"))
    run = Run(source, kept, *table_sink(kept))
    assert run.pipe("in", "k", "no", 10) == [("k", None, 10)]
    assert run.pipe("in", "k", "yes", 20) == [("k", "yes", 20)]
    assert run.pipe("in", "k", "no", 15) == [("k", None, 15)]


def test_a_named_mapping_of_a_versioned_table_is_an_ordinary_table() -> None:
    source = versioned("in")
    upper = ir.TableMapValues(
        name="upper",
        input=source,
        mapper=function(str.upper),
        table=stored("upper", is_queryable=True, is_caching=True),
    )
    run = Run(source, upper, *table_sink(upper), is_caching=True)
    assert run.pipe("in", "k", None, 10) == []
    assert run.pipe("in", "k", "b", 20) == [("k", "B", 20)]
    assert run.pipe("in", "k", "a", 15) == [("k", "A", 15)]


def test_a_filter_may_begin_a_history_of_its_own() -> None:
    source = table("in", is_queryable=True)
    kept = ir.TableFilter(
        name="kept", input=source, predicate=function(lambda key, value: value != "no"), table=history("kept", 100)
    )
    run = Run(source, kept, *table_sink(kept))
    assert run.pipe("in", "k", "no", 10) == []
    assert run.pipe("in", "k", "yes", 20) == [("k", "yes", 20)]
    assert run.pipe("in", "k", "no", 15) == [("k", None, 15)]


def test_a_mapping_can_forget_the_history_without_keeping_anything() -> None:
    source = versioned("in")
    upper = ir.TableMapValues(name="upper", input=source, mapper=function(str.upper), forgets_history=True)
    group = ir.GroupTable(name="group", input=upper, selector=function(lambda key, value: ("all", value)))
    last = ir.Reduce(function(lambda before, value: before + value), function(lambda text, value: text + "-"))
    total = ir.AggregateTable(name="total", input=group, aggregator=last, table=stored("total"))
    run = Run(source, upper, group, total, *table_sink(total))
    assert run.pipe("in", "k", "b", 20) == [("all", "B", 20)]
    assert run.pipe("in", "k", "a", 10) == [("all", "B-A", 20)]


def test_joins_of_tables_leave_out_what_changes_the_past_only() -> None:
    left, right = versioned("left"), table("right")
    upper = ir.TableMapValues(name="upper", input=left, mapper=function(str.upper))
    join = ir.TableTableJoin(name="join", left=upper, right=right, joiner=function(both), kind=LEFT)
    run = Run(left, right, upper, join, *table_sink(join))
    assert run.pipe("left", "k", "b", 20) == [("k", "B-", 20)]
    assert run.pipe("left", "k", "a", 10) == []
    assert run.pipe("right", "k", "x", 5) == [("k", "Bx", 20)]


def test_aggregations_leave_out_what_changes_the_past_only() -> None:
    source = versioned("in")
    group = ir.GroupTable(name="group", input=source, selector=function(lambda key, value: ("all", value)))
    total = ir.AggregateTable(
        name="total",
        input=group,
        aggregator=ir.Fold(
            initializer=function(str),
            adder=function(lambda key, value, text: text + value),
            subtractor=function(lambda key, value, text: text.replace(value, "")),
        ),
        table=stored("total"),
    )
    run = Run(source, group, total, *table_sink(total))
    assert run.pipe("in", "k", "b", 20) == [("all", "b", 20)]
    assert run.pipe("in", "k", "a", 10) == []
    assert run.pipe("in", "k", "c", 30) == [("all", "c", 30)]


# --- streams that join them --------------------------------------------------------------------------------------


def joined(kind: JoinKind, *, grace_ms: int | None = None, partitions: int = 1) -> Run:
    left, right = stream("stream"), versioned("table")
    join = ir.StreamTableJoin(
        name="join",
        left=left,
        right=right,
        joiner=function(both),
        kind=kind,
        grace_ms=grace_ms,
        buffer=None if grace_ms is None else stored("buffer"),
    )
    return Run(left, right, join, sink(join), partitions=partitions)


@pytest.mark.parametrize(("kind", "alone"), [(INNER, []), (LEFT, [("k", "A-", 5)])])
def test_a_record_meets_the_row_as_it_was_at_the_records_time(kind: JoinKind, alone: list[Any]) -> None:
    run = joined(kind)
    run.pipe("table", "k", "a", 10)
    run.pipe("table", "k", "b", 20)
    assert run.pipe("stream", "k", "A", 5) == alone
    assert run.pipe("stream", "k", "A", 15) == [("k", "Aa", 15)]
    assert run.pipe("stream", "k", "A", 25) == [("k", "Ab", 25)]


def test_with_a_grace_a_record_waits_for_rows_of_its_time() -> None:
    run = joined(LEFT, grace_ms=10)
    assert run.pipe("stream", "k", "A", 100) == []
    run.pipe("table", "k", "a", 99)
    assert run.pipe("stream", "j", "B", 109) == []
    assert run.pipe("stream", "j", "C", 110) == [("k", "Aa", 100)]
    assert run.pipe("stream", "j", "D", 120) == [("j", "B-", 109), ("j", "C-", 110)]


def test_records_that_waited_come_by_time_then_by_key_then_as_they_came() -> None:
    run = joined(LEFT, grace_ms=10)
    for key, value, timestamp in (("b", "1", 100), ("ab", "2", 100), ("a", "3", 100), ("a", "4", 100), ("z", "5", 99)):
        run.pipe("stream", key, value, timestamp)
    told = run.pipe("stream", "x", "6", 111)
    assert [value for _, value, _ in told] == ["5-", "3-", "4-", "2-", "1-"]


def test_a_record_later_than_the_grace_is_joined_at_once() -> None:
    run = joined(LEFT, grace_ms=10)
    run.pipe("stream", "k", "A", 100)
    assert run.pipe("stream", "k", "B", 89) == [("k", "B-", 89)]
    assert run.pipe("stream", "k", "C", 90) == [("k", "C-", 90)]


def test_records_that_waited_keep_their_headers_and_survive_restarts() -> None:
    run = joined(LEFT, grace_ms=10)
    run.run.pipe("stream", b"k", b"A", 100, headers=(("h", b"\xff"), ("n", None)))
    run.run.rebuild()
    run.run.pipe("stream", b"k", b"B", 200)
    assert [row.headers for row in run.run.drain()] == [(("h", b"\xff"), ("n", None))]


def test_a_grace_needs_a_versioned_table() -> None:
    left, right = stream("stream"), table("table")
    join = ir.StreamTableJoin(
        name="join", left=left, right=right, joiner=function(both), kind=LEFT, grace_ms=10, buffer=stored("buffer")
    )
    with pytest.raises(TopologyError, match="join: a grace period needs a versioned table"):
        Run(left, right, join, sink(join))
