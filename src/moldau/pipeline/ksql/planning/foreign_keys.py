"""Joins of tables on a foreign key: an expression of the left table names the key of the right one.

Start at `foreign_key_joined`.
"""

from __future__ import annotations

from dataclasses import replace

from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.row_functions import JoinedRow, NamedExpression
from moldau.pipeline.ksql.analysis.joins import AnalysedJoin
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.planning.joins import JoinSide, check_join, with_keys_of
from moldau.pipeline.ksql.planning.relation import Graph, Relation
from moldau.pipeline.ksql.syntax.statements import JoinKind

__all__ = ["foreign_key_joined", "is_foreign_key_join"]


def is_foreign_key_join(left: JoinSide, right: JoinSide) -> bool:
    """Whether two tables are joined on something else than the key of the left one."""
    return left.relation.is_table and right.relation.is_table and right.is_on_key and not left.is_on_key


def foreign_key_joined(graph: Graph, join: AnalysedJoin, left: JoinSide, right: JoinSide) -> Relation:
    """The rows of both tables next to each other, under the key of the left one."""
    check_join(join, left, right)
    if join.kind in (JoinKind.RIGHT, JoinKind.FULL):
        word = "RIGHT OUTER" if join.kind is JoinKind.RIGHT else "FULL OUTER"
        raise KsqlError(f"{word} JOIN on a foreign key is not supported")
    if left.relation.window is not None or right.relation.window is not None:
        raise KsqlError("Foreign-key table-table joins are not supported on windowed tables.")
    # Equal keys with ids of different schemas in them may be in different partitions.
    one, other = (
        with_keys_of(graph, side, side.key_format, is_forced=side.key_format.format.uses_registry)
        for side in (left.relation, right.relation)
    )
    result = Relation(
        one.node, True, one.columns + other.columns, one.key, one.key_format, one.value_format, one.window
    )
    name = graph.name("KTABLE-FK-JOIN-OUTPUT-")
    extractor = one.key_of_row([NamedExpression(left.key_name, left.expression)], drops_nulls=True)
    node = graph.add(
        ir.ForeignKeyJoin(
            name=name,
            left=one.node,
            right=other.node,
            joiner=JoinedRow(len(one.columns), len(other.columns)),
            has_key=True,
            kind=ir.JoinKind.LEFT if join.kind is JoinKind.LEFT else ir.JoinKind.INNER,
            extractor=extractor,
            extractor_has_key=True,
            left_table=replace(graph.store(f"{name}-LEFT-", one), is_caching=False),
            right_table=replace(graph.store(f"{name}-RIGHT-", other), is_caching=False),
            subscriptions=f"{name}-SUBSCRIPTION-STATE-STORE",
            subscription_topic=f"{name}-SUBSCRIPTION-REGISTRATION-topic",
            response_topic=f"{name}-SUBSCRIPTION-RESPONSE-topic",
            table=graph.store("KTABLE-FK-JOIN-OUTPUT-", result),
        )
    )
    return result.with_node(node)
