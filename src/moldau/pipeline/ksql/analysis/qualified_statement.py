"""A statement with every name written out, as messages quote it: aliases given, columns with their source.

Start at `qualified_text`.
"""

from __future__ import annotations

from dataclasses import replace

from moldau.pipeline.ksql.analysis.query_analysis import QueryAnalysis
from moldau.pipeline.ksql.syntax.statement_printer import render_statement
from moldau.pipeline.ksql.syntax.statements import CreateAsSelect, InsertSelect, Query, SelectExpression

__all__ = ["qualified_text"]


def qualified_text(statement: CreateAsSelect | InsertSelect, analysis: QueryAnalysis) -> str:
    """The text of a statement with all names of its query resolved."""
    return render_statement(replace(statement, query=_qualified(statement.query, analysis)))


def _qualified(query: Query, analysis: QueryAnalysis) -> Query:
    grouping = analysis.grouping
    return replace(
        query,
        select=tuple(SelectExpression(column.expression, column.name) for column in analysis.select),
        joins=tuple(
            replace(join, condition=analysed.condition)
            for join, analysed in zip(query.joins, analysis.joins, strict=True)
        ),
        where=analysis.where,
        group_by=query.group_by if grouping is None else grouping.expressions,
        partition_by=analysis.partition_by,
        having=analysis.having,
    )
