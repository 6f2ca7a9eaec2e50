"""Which tables are stored and send old values: it depends on who asks, and on the order in which it was written."""

from __future__ import annotations

import pytest

from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.functions import PythonFunction
from moldau.pipeline.ir.nodes import JoinKind
from moldau.pipeline.ir.old_values import TableTraits, table_plan
from moldau.pipeline.ir.rewrites.foreign_key import lower_foreign_key_joins
from moldau.serdes.plain import StringSerde

STRING = StringSerde()
ANY = PythonFunction(lambda *values: values)

STORED_ONLY = TableTraits(is_materialized=True, sends_old_values=False)
COMPUTED = TableTraits(is_materialized=False, sends_old_values=False)
STORED = TableTraits(is_materialized=True, sends_old_values=True)
COMPUTED_WITH_OLD = TableTraits(is_materialized=False, sends_old_values=True)


def stored(name: str, *, is_queryable: bool = True) -> ir.Materialization:
    return ir.Materialization(store=name, key_serde=STRING, value_serde=STRING, is_queryable=is_queryable)


def table(name: str, *, is_queryable: bool = False) -> ir.TableSource:
    return ir.TableSource(
        name=name, topics=(name,), key_serde=STRING, value_serde=STRING, table=stored(name, is_queryable=is_queryable)
    )


def filtered(source: ir.Node, name: str = "filter", *, is_queryable: bool = False) -> ir.TableFilter:
    return ir.TableFilter(name=name, input=source, predicate=ANY, table=stored(name) if is_queryable else None)


def mapped(source: ir.Node, name: str = "map") -> ir.TableMapValues:
    return ir.TableMapValues(name=name, input=source, mapper=ANY)


def joined(kind: JoinKind, left: ir.Node, right: ir.Node, name: str = "join") -> ir.TableTableJoin:
    return ir.TableTableJoin(name=name, left=left, right=right, joiner=ANY, kind=kind)


def test_a_table_that_nobody_reads_is_not_stored() -> None:
    assert table_plan([table("t")]) == {"t": COMPUTED}


def test_a_table_with_a_named_store_is_stored() -> None:
    assert table_plan([table("t", is_queryable=True)]) == {"t": STORED_ONLY}


def test_a_filter_gets_old_values_from_a_table_that_is_stored_already() -> None:
    source = table("t", is_queryable=True)
    assert table_plan([source, filtered(source)]) == {"t": STORED, "filter": COMPUTED_WITH_OLD}


def test_a_filter_does_not_make_its_table_be_stored() -> None:
    source = table("t")
    assert table_plan([source, filtered(source)]) == {"t": COMPUTED, "filter": COMPUTED}


def test_a_filter_written_before_its_table_was_stored_never_gets_old_values() -> None:
    source, other = table("t"), table("other")
    early, late = filtered(source, "early"), filtered(source, "late")
    plan = table_plan([source, other, early, joined(JoinKind.INNER, source, other), late])
    assert plan["t"] == STORED
    assert plan["early"] == COMPUTED
    assert plan["late"] == COMPUTED_WITH_OLD


def test_an_inner_join_stores_both_sides_and_wants_no_old_values() -> None:
    left, right = table("l"), table("r")
    plan = table_plan([left, right, joined(JoinKind.INNER, left, right)])
    assert plan == {"l": STORED_ONLY, "r": STORED_ONLY, "join": COMPUTED}


def test_a_left_join_wants_old_values_of_its_left_side() -> None:
    left, right = table("l"), table("r")
    plan = table_plan([left, right, joined(JoinKind.LEFT, left, right)])
    assert plan == {"l": STORED, "r": STORED_ONLY, "join": COMPUTED}


def test_an_outer_join_wants_old_values_of_both_sides() -> None:
    left, right = table("l"), table("r")
    plan = table_plan([left, right, joined(JoinKind.OUTER, left, right)])
    assert plan == {"l": STORED, "r": STORED, "join": COMPUTED}


def test_who_groups_a_join_gets_old_values_through_it_and_through_computed_tables() -> None:
    left, right = table("l"), table("r")
    upper = mapped(left)
    join = joined(JoinKind.INNER, upper, right)
    plan = table_plan([left, right, upper, join, ir.GroupTable(name="group", input=join, selector=ANY)])
    assert plan == {"l": STORED, "r": STORED, "map": COMPUTED_WITH_OLD, "join": COMPUTED_WITH_OLD}


def test_a_stream_that_joins_a_computed_table_makes_the_table_below_be_stored() -> None:
    source = table("t")
    upper = mapped(source)
    stream = ir.StreamSource(name="s", topics=("s",), key_serde=STRING, value_serde=STRING)
    join = ir.StreamTableJoin(name="join", left=stream, right=upper, joiner=ANY, kind=JoinKind.INNER)
    assert table_plan([source, upper, stream, join]) == {"t": STORED_ONLY, "map": COMPUTED}


def test_a_stored_filter_answers_for_itself() -> None:
    source = table("t")
    kept = filtered(source, is_queryable=True)
    group = ir.GroupTable(name="group", input=kept, selector=ANY)
    assert table_plan([source, kept, group]) == {"t": COMPUTED, "filter": STORED}


def test_an_aggregate_is_always_stored_and_sends_old_values_when_asked() -> None:
    source = ir.StreamSource(name="s", topics=("s",), key_serde=STRING, value_serde=STRING)
    count = ir.Aggregate(name="count", input=source, aggregator=ir.Count(), table=stored("count", is_queryable=False))
    assert table_plan([source, count]) == {"count": STORED_ONLY}
    assert table_plan([source, count, filtered(count)]) == {"count": STORED, "filter": COMPUTED_WITH_OLD}


def test_suppression_wants_old_values_and_passes_them_on() -> None:
    source = table("t")
    quiet = ir.Suppress(name="quiet", input=source, until_window_close=False, buffer=stored("buffer"))
    assert table_plan([source, quiet]) == {"t": STORED, "quiet": COMPUTED_WITH_OLD}


def history(name: str) -> ir.TableSource:
    rows = ir.Materialization(store=name, key_serde=STRING, value_serde=STRING, is_queryable=True, history_ms=10)
    return ir.TableSource(name=name, topics=(name,), key_serde=STRING, value_serde=STRING, table=rows)


def test_what_is_computed_from_a_versioned_table_is_versioned_until_it_is_stored_without_history() -> None:
    source = history("t")
    upper = mapped(source)
    kept = filtered(upper, is_queryable=True)
    plan = table_plan([source, upper, kept, joined(JoinKind.INNER, source, upper)])
    assert [name for name, traits in plan.items() if traits.is_versioned] == ["t", "map"]


def test_a_versioned_table_cannot_be_suppressed() -> None:
    source = history("t")
    quiet = ir.Suppress(name="quiet", input=source, until_window_close=False, buffer=stored("buffer"))
    with pytest.raises(TopologyError, match="quiet: the changes of a versioned table cannot be suppressed"):
        table_plan([source, quiet])


def test_a_foreign_key_join_wants_old_values_of_both_sides_before_and_after_it_is_taken_apart() -> None:
    left, right = table("l"), table("r")
    join = ir.ForeignKeyJoin(
        name="join",
        left=left,
        right=right,
        joiner=ANY,
        kind=JoinKind.INNER,
        extractor=ANY,
        left_table=stored("l"),
        right_table=stored("r"),
        subscriptions="subscriptions",
        subscription_topic="subscription",
        response_topic="response",
        table=stored("result", is_queryable=False),
    )
    expected = {"l": STORED, "r": STORED, "join": COMPUTED}
    assert table_plan([left, right, join]) == expected
    assert table_plan(lower_foreign_key_joins([left, right, join])) == expected


def test_a_foreign_key_result_is_stored_when_something_downstream_reads_it() -> None:
    left, right, third = table("l"), table("r"), table("third")
    join = ir.ForeignKeyJoin(
        name="fk",
        left=left,
        right=right,
        joiner=ANY,
        kind=JoinKind.LEFT,
        extractor=ANY,
        left_table=stored("l"),
        right_table=stored("r"),
        subscriptions="subscriptions",
        subscription_topic="subscription",
        response_topic="response",
        table=stored("result", is_queryable=False),
    )
    nodes = [left, right, third, join, joined(JoinKind.LEFT, join, third)]
    assert table_plan(lower_foreign_key_joins(nodes))["fk"] == STORED
