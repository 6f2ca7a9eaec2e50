"""Aggregation: which calls are aggregates, and whether everything else in the query follows from GROUP BY.

Start at `analysed_grouping`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from moldau.pipeline.ksql.analysis.expression_tree import expressions_within, rewritten
from moldau.pipeline.ksql.analysis.functions import can_undo, is_aggregate
from moldau.pipeline.ksql.analysis.name_resolution import SourcesInQuery
from moldau.pipeline.ksql.analysis.select_items import SelectedColumn
from moldau.pipeline.ksql.catalogue.sources import WINDOW_BOUNDS
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax.expressions import ColumnReference, Expression, FunctionCall
from moldau.pipeline.ksql.syntax.printer import render

__all__ = ["Grouping", "aggregate_calls", "analysed_grouping", "joined_names"]

BOUNDS = frozenset(column.name for column in WINDOW_BOUNDS)


@dataclass(frozen=True, slots=True)
class Grouping:
    """GROUP BY and the aggregates of a query, with the source of every column."""

    expressions: tuple[Expression, ...]
    aggregates: tuple[FunctionCall, ...]
    """All different aggregate calls of SELECT and HAVING, in the order of their occurrence."""


def aggregate_calls(expression: Expression) -> Iterator[FunctionCall]:
    """The calls of aggregate functions within an expression."""
    return (
        part for part in expressions_within(expression) if isinstance(part, FunctionCall) and is_aggregate(part.name)
    )


def analysed_grouping(
    group_by: Sequence[Expression] | None,
    select: Sequence[SelectedColumn],
    having: Expression | None,
    sources: SourcesInQuery,
    *,
    is_windowed: bool,
    is_table: bool,
) -> Grouping | None:
    """What a query groups and aggregates; None for a query that does neither."""
    parts = [column.expression for column in select] + ([] if having is None else [having])
    aggregates = tuple(dict.fromkeys(call for part in parts for call in aggregate_calls(part)))
    if group_by is None and not aggregates:
        return None
    expressions = tuple(group_by or ())
    _check_group_by(expressions, is_windowed=is_windowed)
    if is_windowed and having is not None:
        _check_bounds(having)
    for call in aggregates:
        _check_call(call, is_windowed=is_windowed)
    if not aggregates:
        raise KsqlError("GROUP BY requires aggregate functions in either the SELECT or HAVING clause.")
    _check_rest(expressions, select, having, sources, is_windowed=is_windowed)
    if is_table:
        _check_undo(aggregates)
    return Grouping(expressions, aggregates)


def _check_group_by(expressions: Sequence[Expression], *, is_windowed: bool) -> None:
    seen: set[Expression] = set()
    for expression in expressions:
        for call in aggregate_calls(expression):
            raise KsqlError(f"GROUP BY does not support aggregate functions: {call.name} is an aggregate function.")
        if is_windowed:
            _check_bounds(expression)
        if expression in seen:
            raise KsqlError(f"Duplicate GROUP BY expression: {render(expression)}")
        seen.add(expression)


def _check_bounds(expression: Expression) -> None:
    for part in expressions_within(expression):
        if isinstance(part, ColumnReference) and part.name in BOUNDS and part.source is None:
            raise KsqlError(
                f"Window bounds column {part.name} can only be used in the SELECT clause of windowed aggregations and "
                "can not be passed to aggregate functions.\nSee https://github.com/confluentinc/ksql/issues/4397"
            )


def _check_call(call: FunctionCall, *, is_windowed: bool) -> None:
    for argument in call.arguments:
        if any(True for _ in aggregate_calls(argument)):
            raise KsqlError(f"Aggregate functions can not be nested: {render(call)}")
        if is_windowed:
            _check_bounds(argument)


def _check_rest(
    grouped: Sequence[Expression],
    select: Sequence[SelectedColumn],
    having: Expression | None,
    sources: SourcesInQuery,
    *,
    is_windowed: bool,
) -> None:
    """Raise for what is neither an aggregate nor follows from the grouping expressions."""
    unmatched = [
        render(sources.in_row(column.expression))
        for column in select
        if not _follows(column.expression, grouped, is_windowed=is_windowed)
    ]
    if unmatched:
        raise KsqlError(
            f"Non-aggregate SELECT expression(s) not part of GROUP BY: {', '.join(unmatched)}\nEither add the "
            "column(s) to the GROUP BY or remove them from the SELECT."
        )
    if having is not None and not _follows(having, grouped, is_windowed=False):
        raise KsqlError(f"Non-aggregate HAVING expression not part of GROUP BY: {render(sources.in_row(having))}")


def _follows(expression: Expression, grouped: Sequence[Expression], *, is_windowed: bool) -> bool:
    """Whether an expression consists of grouping expressions, aggregates, constants and window bounds."""
    left: list[Expression] = []

    def visit(part: Expression) -> Expression | None:
        if part in grouped or (isinstance(part, FunctionCall) and is_aggregate(part.name)):
            return part
        if isinstance(part, ColumnReference):
            if not (is_windowed and part.name in BOUNDS and part.source is None):
                left.append(part)
            return part
        return None

    rewritten(expression, visit)
    return not left


def _check_undo(aggregates: Sequence[FunctionCall]) -> None:
    refused = list(dict.fromkeys(call.name for call in aggregates if not can_undo(call.name)))
    if refused:
        plural = "functions" if len(refused) > 1 else "function"
        raise KsqlError(
            f"The aggregation {plural} {joined_names(refused)} cannot be applied to a table source, only to a stream "
            "source."
        )


def joined_names(names: Sequence[str], word: str = "and") -> str:
    """Names as a sentence lists them: `A, B and C`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"
