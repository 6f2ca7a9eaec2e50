"""Single steps on relations: filter, project, explode, re-key, repartition. Start at `filtered`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from moldau.formats.columns import Column
from moldau.formats.types import SqlType
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.row_functions import (
    ExplodedRow,
    NamedExpression,
    RowCondition,
    RowFunction,
    RowSteps,
    SelectRow,
)
from moldau.pipeline.ir.sql.expressions import SqlExpression, TableFunctionCall
from moldau.pipeline.ksql.planning.relation import Graph, Relation

__all__ = ["columns_of", "exploded", "filtered", "mapped", "projected", "repartitioned", "with_key"]


def filtered(graph: Graph, relation: Relation, condition: SqlExpression, clause: str) -> Relation:
    """The rows for which a condition holds; in a table, a row that stops passing is deleted."""
    predicate = RowCondition(condition, clause)
    if relation.is_table:
        node: ir.Node = ir.TableFilter(name=graph.name("KTABLE-FILTER-"), input=relation.node, predicate=predicate)
    else:
        node = ir.Filter(name=graph.name("KSTREAM-FILTER-"), input=relation.node, predicate=predicate)
    return relation.with_node(graph.add(node))


def projected(graph: Graph, relation: Relation, columns: Sequence[NamedExpression]) -> Relation:
    """Rows of other columns under the same keys."""
    return mapped(graph, relation, SelectRow(tuple(columns)), columns_of(columns))


def mapped(graph: Graph, relation: Relation, function: RowFunction, columns: tuple[Column, ...]) -> Relation:
    """Rows made by a function of key and value; functions that follow each other share a node."""
    before: ir.Node = relation.node
    steps: tuple[RowFunction, ...] = (function,)
    if isinstance(before, ir.MapValues | ir.TableMapValues) and isinstance(before.mapper, RowSteps):
        steps = (*before.mapper.steps, function)
        graph.take_back(before)
        before = before.input
    kind = ir.TableMapValues if relation.is_table else ir.MapValues
    name = graph.name("KTABLE-MAPVALUES-" if relation.is_table else "KSTREAM-MAPVALUES-")
    node = graph.add(kind(name=name, input=before, mapper=RowSteps(steps), has_key=True))
    return replace(relation, node=node, columns=columns)


def columns_of(columns: Sequence[NamedExpression]) -> tuple[Column, ...]:
    """The columns that expressions give."""
    return tuple(Column(one.name, _known(one.expression)) for one in columns)


def _known(expression: SqlExpression) -> SqlType:
    assert expression.type is not None, "analysis refuses columns without a type"
    return expression.type


def exploded(graph: Graph, relation: Relation, calls: Sequence[TableFunctionCall], names: Sequence[str]) -> Relation:
    """For each row, one row per element of the lists that table functions give."""
    node = graph.add(
        ir.FlatMapValues(
            name=graph.name("KSTREAM-FLATMAPVALUES-"), input=relation.node, mapper=ExplodedRow(tuple(calls))
        )
    )
    made = tuple(Column(name, call.result_type) for name, call in zip(names, calls, strict=True))
    return replace(relation, node=node, columns=relation.columns + made)


def with_key(
    graph: Graph, relation: Relation, key: Sequence[NamedExpression], *, drops_nulls: bool = False
) -> Relation:
    """The same rows under another key."""
    selector = relation.key_of_row(key, drops_nulls=drops_nulls)
    node = graph.add(ir.SelectKey(name=graph.name("KSTREAM-KEY-SELECT-"), input=relation.node, selector=selector))
    return replace(relation, node=node, key=columns_of(key))


def repartitioned(graph: Graph, relation: Relation, *, drops_null_keys: bool) -> Relation:
    """The same records in the partitions of their keys."""
    name = graph.name("KSTREAM-REPARTITION-")
    node = graph.add(
        ir.Repartition(
            name=name,
            input=relation.node,
            topic=f"{name}-repartition",
            key_serde=relation.key_serde,
            value_serde=relation.value_serde,
            drops_null_keys=drops_null_keys,
        )
    )
    return relation.with_node(node)
