"""Texts that are compared with the time of a row mean a point in time: they become numbers. Start at `with_times`."""

from __future__ import annotations

from dataclasses import replace

from moldau.pipeline.cores.sql.failures import ExpressionError
from moldau.pipeline.cores.sql.time.calendar import parse_timestamp
from moldau.pipeline.ksql.analysis.expression_tree import rewritten
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax.expressions import (
    Between,
    ColumnReference,
    Comparison,
    Expression,
    LongLiteral,
    StringLiteral,
)

__all__ = ["with_times"]

TIMES = frozenset({"ROWTIME", "WINDOWSTART", "WINDOWEND"})


def with_times(expression: Expression) -> Expression:
    """The expression with texts that are compared with ROWTIME, WINDOWSTART or WINDOWEND as milliseconds."""

    def change(part: Expression) -> Expression | None:
        match part:
            case Comparison(left=left, right=StringLiteral() as text) if _is_time(left):
                return replace(part, right=_milliseconds(text))
            case Comparison(left=StringLiteral() as text, right=right) if _is_time(right):
                return replace(part, left=_milliseconds(text))
            case Between(value=value, low=low, high=high) if _is_time(value):
                return replace(part, low=_bind_times(low), high=_bind_times(high))
            case _:
                return None

    return rewritten(expression, change)


def _is_time(expression: Expression) -> bool:
    return isinstance(expression, ColumnReference) and expression.name in TIMES


def _bind_times(expression: Expression) -> Expression:
    return _milliseconds(expression) if isinstance(expression, StringLiteral) else expression


def _milliseconds(text: StringLiteral) -> Expression:
    try:
        return LongLiteral(parse_timestamp(text.value), location=text.location)
    except ExpressionError as error:
        raise KsqlError(f"Failed to parse timestamp '{text.value}': {error}") from None
