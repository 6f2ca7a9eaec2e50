"""GROUP BY: rows under the key of their group, aggregated per group and window. Start at `aggregated`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from moldau.formats.checks import check_columns
from moldau.formats.columns import Column
from moldau.formats.errors import FormatError
from moldau.formats.internal_rows import InternalRowSerde
from moldau.formats.types import BOOLEAN
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.row_functions import (
    AggregatedRow,
    NamedExpression,
    RegroupedRow,
    RowAggregates,
    RowWithKey,
    SelectRow,
)
from moldau.pipeline.ir.sql.expressions import AggregateCall, ColumnAt, Literal
from moldau.pipeline.ksql.catalogue.sources import WINDOW_BOUNDS
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.planning.relation import Graph, Relation
from moldau.pipeline.ksql.planning.steps import columns_of, filtered, mapped, projected, repartitioned, with_key
from moldau.pipeline.ksql.planning.windows import retention_ms_of, window_of
from moldau.pipeline.ksql.syntax import statements as syntax

__all__ = ["AggregationPlan", "aggregate_name", "aggregated"]


def aggregate_name(number: int) -> str:
    """The name of an aggregate's result within rows."""
    return f"KSQL_AGG_VARIABLE_{number}"


@dataclass(frozen=True, slots=True)
class AggregationPlan:
    """What is grouped and aggregated: typed over the rows of the input."""

    group_by: tuple[NamedExpression, ...]
    calls: tuple[AggregateCall, ...]
    window: syntax.Window | None
    is_final: bool
    settings: tuple[tuple[str, object], ...] = ()
    """Properties that functions look at."""


def aggregated(graph: Graph, relation: Relation, plan: AggregationPlan) -> Relation:
    """The groups as a table: rows of the results, then the key's columns, then the window's bounds."""
    arguments = [
        NamedExpression(f"KSQL_INTERNAL_COL_{number}", argument)
        for number, argument in enumerate(argument for call in plan.calls for argument in call.arguments)
    ]
    aggregates = RowAggregates(_over_arguments(plan.calls), plan.settings)
    _check_states(relation, plan.calls)
    if relation.is_table:
        grouped = _grouped_table(graph, relation, plan.group_by, arguments)
    else:
        grouped = _grouped_stream(graph, relation, plan.group_by, arguments)
    return _results(graph, grouped, aggregates, plan)


def _over_arguments(calls: Sequence[AggregateCall]) -> tuple[AggregateCall, ...]:
    """The calls over rows that consist of their arguments, one call's after the other's."""
    made: list[AggregateCall] = []
    position = 0
    for call in calls:
        places = range(position, position + len(call.arguments))
        columns = tuple(ColumnAt(argument.type, place) for argument, place in zip(call.arguments, places, strict=True))
        made.append(replace(call, arguments=columns))
        position += len(call.arguments)
    return tuple(made)


def _check_states(relation: Relation, calls: Sequence[AggregateCall]) -> None:
    columns = tuple(Column(aggregate_name(number), call.state_type) for number, call in enumerate(calls))
    try:
        check_columns(replace(relation.value_format, is_key=False), columns)
    except FormatError:
        raise KsqlError(
            "One of the functions used in the statement has an intermediate type that the value format can not "
            "handle. Please remove the function or change the format."
        ) from None


def _grouped_stream(
    graph: Graph, relation: Relation, group_by: Sequence[NamedExpression], arguments: Sequence[NamedExpression]
) -> Relation:
    has_key = _is_key(relation, group_by)
    if has_key:
        # A record without a value belongs to no group, although its key names one.
        relation = filtered(graph, relation, Literal(BOOLEAN, True), "GROUP BY")
        relation = replace(relation, key=columns_of(group_by))
    else:
        relation = replace(with_key(graph, relation, group_by, drops_nulls=True), window=None)
    relation = projected(graph, relation, arguments)
    return relation if has_key else repartitioned(graph, relation, drops_null_keys=True)


def _is_key(relation: Relation, group_by: Sequence[NamedExpression]) -> bool:
    """Whether the groups are those of the key that the records have already."""
    if relation.window is not None or len(group_by) != len(relation.key):
        return False
    positions = {column.name: position for position, column in enumerate(relation.columns)}
    return all(
        isinstance(one.expression, ColumnAt) and one.expression.position == positions.get(column.name)
        for one, column in zip(group_by, relation.key, strict=True)
    )


def _grouped_table(
    graph: Graph, relation: Relation, group_by: Sequence[NamedExpression], arguments: Sequence[NamedExpression]
) -> Relation:
    selector = RegroupedRow(relation.key_of_row(group_by, drops_nulls=True), SelectRow(tuple(arguments)))
    node = graph.add(ir.GroupTable(name=graph.name("KTABLE-REGROUP-"), input=relation.node, selector=selector))
    relation = replace(relation, node=node, key=columns_of(group_by), columns=columns_of(arguments))
    name = graph.name("KTABLE-REPARTITION-")
    node_again = graph.add(
        ir.Repartition(
            name=name,
            input=node,
            topic=f"{name}-repartition",
            key_serde=relation.key_serde,
            value_serde=relation.value_serde,
            carries_changes=True,
        )
    )
    return relation.with_node(node_again)


def _results(graph: Graph, grouped: Relation, aggregates: RowAggregates, plan: AggregationPlan) -> Relation:
    states = tuple(Column(aggregate_name(number), call.state_type) for number, call in enumerate(aggregates.calls))
    store = ir.Materialization(
        store=graph.names.store("KSTREAM-AGGREGATE-"),
        key_serde=grouped.key_serde,
        value_serde=InternalRowSerde(states),
    )
    window = None
    if grouped.is_table:
        node: ir.Node = ir.AggregateTable(
            name=graph.name("KTABLE-AGGREGATE-"), input=grouped.node, aggregator=aggregates, table=store
        )
    else:
        within = None
        if plan.window is not None:
            within, window = window_of(plan.window, is_final=plan.is_final)
            if plan.window.retention is not None:
                store = replace(store, retention_ms=retention_ms_of(plan.window, is_final=plan.is_final))
        node = ir.Aggregate(
            name=graph.name("KSTREAM-AGGREGATE-"),
            input=grouped.node,
            aggregator=aggregates,
            table=store,
            window=within,
            emit=ir.EmitStrategy.ON_WINDOW_CLOSE if plan.is_final else ir.EmitStrategy.ON_UPDATE,
        )
    graph.add(node)
    results = tuple(Column(aggregate_name(number), call.result_type) for number, call in enumerate(aggregates.calls))
    relation = replace(grouped, node=node, is_table=True, columns=states, window=window)
    relation = mapped(graph, relation, AggregatedRow(aggregates), results)
    bounds = () if window is None else WINDOW_BOUNDS
    columns = results + grouped.key + bounds
    return mapped(graph, relation, RowWithKey(has_window=window is not None), columns)
