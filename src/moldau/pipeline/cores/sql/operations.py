"""What compiled expressions call for operators that Python has no short form of: comparisons, LIKE, subscripts."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any

from moldau.core.java_numbers import java_double_text
from moldau.formats.types import BIGINT, DOUBLE, INTEGER, DecimalType, SqlType, Value
from moldau.pipeline.cores.sql.failures import ExpressionError, null_operand
from moldau.pipeline.ir.sql.expressions import ComparisonOperator

__all__ = ["array_item", "closure", "comparable", "comparison", "like", "like_literal", "order", "utf16_order"]

Preparation = tuple[Callable[[Any], Any], Callable[[Any], Any]]

_COMPARE: dict[ComparisonOperator, Callable[[Any, Any], bool]] = {
    ComparisonOperator.EQUAL: operator.eq,
    ComparisonOperator.NOT_EQUAL: operator.ne,
    ComparisonOperator.LESS_THAN: operator.lt,
    ComparisonOperator.LESS_THAN_OR_EQUAL: operator.le,
    ComparisonOperator.GREATER_THAN: operator.gt,
    ComparisonOperator.GREATER_THAN_OR_EQUAL: operator.ge,
    ComparisonOperator.IS_DISTINCT_FROM: operator.ne,
    ComparisonOperator.IS_NOT_DISTINCT_FROM: operator.eq,
}
_NULLS_ARE_EQUAL = (ComparisonOperator.IS_DISTINCT_FROM, ComparisonOperator.IS_NOT_DISTINCT_FROM)


# --- comparisons ---------------------------------------------------------------------------------------------


def comparable(left: SqlType | None, right: SqlType | None) -> Preparation | None:
    """What to do to both sides before they are compared; None where Python compares them as Java does."""
    for one, other, is_swapped in ((left, right, False), (right, left, True)):
        if one == DOUBLE and isinstance(other, DecimalType):
            return (_same, decimal_of_double) if is_swapped else (decimal_of_double, _same)
        if one == DOUBLE and other in (INTEGER, BIGINT):
            return (float, _same) if is_swapped else (_same, float)
    return None


def _same(value: Value) -> Value:
    return value


def decimal_of_double(value: float) -> Decimal:
    """The decimal that a double prints as."""
    if not math.isfinite(value):
        raise ExpressionError(f"{java_double_text(value)} cannot be compared with a DECIMAL")
    return Decimal(repr(value))


def comparison(of: ComparisonOperator, prepare: Preparation | None) -> Callable[[Any, Any], bool]:
    """A comparison that is false where a side is NULL; without preparation it is one of texts or bytes."""
    compare = _COMPARE[of]
    if prepare is None:
        return lambda left, right: left is not None and right is not None and compare(order(left, right), 0)
    one, other = prepare
    if of in _NULLS_ARE_EQUAL:
        return lambda left, right: compare(None if left is None else one(left), None if right is None else other(right))
    return lambda left, right: left is not None and right is not None and compare(one(left), other(right))


_SIGNED = bytes((value ^ 0x80) for value in range(256))
"""Java's bytes are signed: 0x80 comes before 0x00."""


def order(left: Any, right: Any) -> int:
    """Below, at or above 0 as a value comes before, is, or comes after another of its type, as Java compares them."""
    if isinstance(left, str):
        return utf16_order(left, right)
    if isinstance(left, bytes):
        left, right = left.translate(_SIGNED), right.translate(_SIGNED)
    return int(left > right) - int(left < right)


def utf16_order(left: str, right: str) -> int:
    """Below, at or above 0 as the first text comes before, is, or comes after the second, by UTF-16 code units.

    Python compares code points, which differs only for characters outside the basic plane.
    """
    if left == right:
        return 0
    if left.isascii() or right.isascii():
        return -1 if left < right else 1
    return -1 if left.encode("utf-16-be", "surrogatepass") < right.encode("utf-16-be", "surrogatepass") else 1


# --- LIKE ----------------------------------------------------------------------------------------------------

_LINE_END = re.compile("[\n\r\x85\u2028\u2029]")
"""What Java's `.`, and with it `%` and `_`, does not match."""


def like_literal(pattern: str, escape: str | None) -> Callable[[str], bool]:
    """Whether a text is like a pattern that is known; a bad pattern fails for each text, as it does in ksqlDB."""
    try:
        return _like_pattern(pattern, escape)
    except ExpressionError:
        return partial(like, pattern=pattern, escape=escape)


def like(value: str, pattern: str, escape: str | None) -> bool:
    """Whether a text is like a pattern."""
    return _like_pattern(pattern, escape)(value)


@lru_cache(maxsize=1024)
def _like_pattern(pattern: str, escape: str | None) -> Callable[[str], bool]:
    """The pattern as pieces between `%`, found one after the other: time at most text length x pattern length."""
    pieces: list[list[str | None]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if escape is not None and character == escape:
            escaped = next(characters, None)
            if escaped is None:
                raise ExpressionError(f"LIKE pattern must not end with the escape character: {pattern}")
            pieces[-1].append(escaped)
        elif character == "%":
            pieces.append([])
        else:
            pieces[-1].append(None if character == "_" else character)
    compiled = [_piece(piece) for piece in pieces]
    if len(compiled) == 1:
        return lambda value: compiled[0].fullmatch(value) is not None
    first, *middle, last = compiled
    return partial(_matches_pieces, first, middle, last, len(pieces[-1]))


def _piece(characters: list[str | None]) -> re.Pattern[str]:
    source = "".join("." if character is None else re.escape(character) for character in characters)
    return re.compile(source)


def _matches_pieces(
    first: re.Pattern[str], middle: list[re.Pattern[str]], last: re.Pattern[str], last_length: int, value: str
) -> bool:
    start = first.match(value)
    if start is None:
        return False
    at = start.end()
    for piece in middle:
        found = piece.search(value, at)
        if found is None or _LINE_END.search(value, at, found.start()):
            return False
        at = found.end()
    # What a piece matches is as long as its pattern, so the last one can only stand at the end.
    end = len(value) - last_length
    return end >= at and last.fullmatch(value, end) is not None and not _LINE_END.search(value, at, end)


# --- subscripts and lambdas ----------------------------------------------------------------------------------


def array_item(values: list[Value], index: int | None) -> Value:
    """The item at an index from 1, from -1 backwards; None outside."""
    if index is None:
        raise null_operand("[]")
    if index > 0:
        return values[index - 1] if index <= len(values) else None
    return values[index] if index != 0 and -index <= len(values) else None


def closure(function: Callable[..., Value], *reach: Value) -> Callable[..., Value]:
    """A lambda of the expression: its function with the row and the outer parameters filled in."""
    return partial(function, *reach)
