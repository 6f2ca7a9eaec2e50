"""The part of a table that a condition on its key can be true for, as a range of serialized keys.

A range may be larger than the condition, since the plan of the query decides on every row; it only saves reading the
rest of the table. Start at `key_range`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from moldau.formats.types import BIGINT, INTEGER, STRING, SqlType, Value
from moldau.ksql.queries.pull_keys import key_constant
from moldau.pipeline.ksql.catalogue.sources import Source
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax.expressions import (
    Between,
    ColumnReference,
    Comparison,
    ComparisonOperator,
    Expression,
    Logical,
    LogicalOperator,
)
from moldau.pipeline.ksql.syntax.statements import Query

__all__ = ["KeyRange", "key_range"]

_MIRRORED = {
    ComparisonOperator.LESS_THAN: ComparisonOperator.GREATER_THAN,
    ComparisonOperator.LESS_THAN_OR_EQUAL: ComparisonOperator.GREATER_THAN_OR_EQUAL,
    ComparisonOperator.GREATER_THAN: ComparisonOperator.LESS_THAN,
    ComparisonOperator.GREATER_THAN_OR_EQUAL: ComparisonOperator.LESS_THAN_OR_EQUAL,
}
_LOWER = frozenset({ComparisonOperator.GREATER_THAN, ComparisonOperator.GREATER_THAN_OR_EQUAL})
_WIDTHS: dict[SqlType, int] = {INTEGER: 4, BIGINT: 8}
FIRST_SURROGATE = "\ud800"


class KeyRange(NamedTuple):
    """Serialized keys from `low` to `high`, both included; no `high` is no end."""

    low: bytes
    high: bytes | None


def key_range(query: Query, source: Source) -> KeyRange | None:
    """The keys that WHERE can be true for; None if any."""
    if query.where is None or len(source.schema.key) != 1 or source.key_format.format.name != "KAFKA":
        return None
    column = source.schema.key[0]
    lows: list[Value] = []
    highs: list[Value] = []
    for operator, value in _bounds(query.where, column.name):
        try:
            constant = key_constant(value, column.type)
        except KsqlError:
            continue  # the plan says what is wrong with it
        (lows if operator in _LOWER else highs).append(constant)
    if not lows and not highs:
        return None
    if column.type == STRING:
        return _text_range([str(one) for one in lows], [str(one) for one in highs])
    if column.type in _WIDTHS:
        return _number_range([int(str(one)) for one in lows], [int(str(one)) for one in highs], _WIDTHS[column.type])
    return None


def _bounds(where: Expression, name: str) -> Iterator[tuple[ComparisonOperator, Expression]]:
    """The comparisons of a column that all hold where the condition does, as if the column were on the left."""
    match where:
        case Logical(operator=LogicalOperator.AND, left=left, right=right):
            yield from _bounds(left, name)
            yield from _bounds(right, name)
        case Between(value=ColumnReference() as column, low=low, high=high) if column.name == name:
            yield ComparisonOperator.GREATER_THAN_OR_EQUAL, low
            yield ComparisonOperator.LESS_THAN_OR_EQUAL, high
        case Comparison(operator=operator, left=ColumnReference() as column, right=value) if (
            column.name == name and operator in _MIRRORED
        ):
            yield operator, value
        case Comparison(operator=operator, left=value, right=ColumnReference() as column) if (
            column.name == name and operator in _MIRRORED
        ):
            yield _MIRRORED[operator], value


def _text_range(lows: list[str], highs: list[str]) -> KeyRange | None:
    # Texts compare by UTF-16 units, bytes by code points: the same where a bound has no character from here on.
    if any(character >= FIRST_SURROGATE for bound in (*lows, *highs) for character in bound):
        return None
    return KeyRange(max(lows, default="").encode(), min(highs).encode() if highs else None)


def _number_range(lows: list[int], highs: list[int], width: int) -> KeyRange | None:
    low, largest = max(lows, default=-1), 2 ** (8 * width - 1) - 1
    if low < 0:
        return None  # negative numbers are behind the others as bytes
    high = max(low, min([*highs, largest]))
    return KeyRange(low.to_bytes(width), high.to_bytes(width))
