"""Which expressions of SQL have a native form: an allow-list. Pure: does not depend on Spark.

What is allowed here is lowered by `expressions`; tests compare each of them with the Python evaluator. A value that
Spark would compute differently, such as an overflow, is no matter for this list: the row is then marked, and computed
by Python. Start at `expression_reason`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.formats.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING, DecimalType, SqlType
from moldau.pipeline.ir.sql.expressions import (
    AllOf,
    AnyOf,
    Arithmetic,
    ArithmeticOperator,
    Call,
    Case,
    Cast,
    ColumnAt,
    Comparison,
    ComparisonOperator,
    In,
    IsNull,
    Like,
    Literal,
    Negate,
    Not,
    SqlExpression,
    operands_of,
)
from moldau.pipeline.spark.native.sql.types import MAX_PRECISION, TIMES, WHOLE, is_native, whole_digits

__all__ = ["FUNCTIONS", "PLAIN_SCALE", "expression_reason"]

PLAIN_SCALE = 6
"""Decimals with at most so many digits after the point are always printed without an exponent."""

_T = "any type"

FUNCTIONS: dict[str, tuple[tuple[SqlType | str, ...], bool]] = {
    "ABS": ((INTEGER, BIGINT, DOUBLE), False),
    "AS_VALUE": ((_T,), False),
    "CEIL": ((INTEGER, BIGINT), False),
    "COALESCE": ((_T,), True),
    "CONCAT": ((STRING,), True),
    "FLOOR": ((INTEGER, BIGINT), False),
    "IFNULL": ((_T,), True),
    "LCASE": ((STRING,), False),
    "LEN": ((STRING,), False),
    "SIGN": ((INTEGER, BIGINT), False),
    "SUBSTRING": ((STRING, INTEGER), True),
    "TRIM": ((STRING,), False),
    "UCASE": ((STRING,), False),
}
"""The scalar functions with a native form: the types that arguments may have, and whether there may be several."""


def expression_reason(expression: SqlExpression) -> str | None:
    """Why an expression needs Python; None if it has a native form."""
    pending = [expression]
    while pending:
        node = pending.pop()
        check = _CHECKS.get(type(node))
        if check is None:
            return f"{type(node).__name__} is evaluated by Python"
        if not is_native(node.type):
            return f"{'NULL' if node.type is None else node.type} has no native form"
        if (reason := check(node)) is not None:
            return reason
        pending.extend(operands_of(node))
    return None


def _nothing(node: SqlExpression) -> str | None:
    return None


def _arithmetic(node: Arithmetic) -> str | None:
    if not isinstance(node.type, DecimalType):
        return None
    if node.operator not in (ArithmeticOperator.ADD, ArithmeticOperator.SUBTRACT, ArithmeticOperator.MULTIPLY):
        return f"{node.operator.value} of DECIMAL is exact in Python only"
    left, right = whole_digits(node.left.type), whole_digits(node.right.type)
    if left is None or right is None or node.type != _exact_result(node.operator, left, right):
        return f"{node.operator.value} of {node.left.type} and {node.right.type} is exact in Python only"
    return None


def _exact_result(operator: ArithmeticOperator, left: tuple[int, int], right: tuple[int, int]) -> DecimalType:
    """The type that holds all results, which is Spark's too as long as it has no more than 38 digits."""
    if operator is ArithmeticOperator.MULTIPLY:
        return DecimalType(sum(left) + sum(right) + 1, left[1] + right[1])
    scale = max(left[1], right[1])
    return DecimalType(max(left[0], right[0]) + scale + 1, scale)


_ORDERING = (
    ComparisonOperator.LESS_THAN,
    ComparisonOperator.LESS_THAN_OR_EQUAL,
    ComparisonOperator.GREATER_THAN,
    ComparisonOperator.GREATER_THAN_OR_EQUAL,
)


def _comparison(node: Comparison) -> str | None:
    left, right = node.left.type, node.right.type
    if left == right and (left in (STRING, DOUBLE, *TIMES) or (left == BOOLEAN and node.operator not in _ORDERING)):
        return None
    if {left, right} <= {INTEGER, BIGINT, DOUBLE}:
        return None
    one, other = whole_digits(left), whole_digits(right)
    if one is not None and other is not None and max(one[0], other[0]) + max(one[1], other[1]) < MAX_PRECISION:
        return None
    return f"{left} {node.operator.value} {right} is compared by Python"


def _in(node: In) -> str | None:
    if node.value.type not in (STRING, INTEGER, BIGINT, BOOLEAN):
        return f"IN of {node.value.type} is evaluated by Python"
    if not all(isinstance(one, Literal) and one.value is not None for one in node.options):
        return "IN with anything but constants is evaluated by Python"
    return None


def _like(node: Like) -> str | None:
    pattern = node.pattern
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return "LIKE with a pattern that is no constant is evaluated by Python"
    return None if node.escape is None else "LIKE with ESCAPE is evaluated by Python"


def _cast(node: Cast) -> str | None:
    source, target = node.value.type, node.type
    if source == target or (source, target) in _CASTS:
        return None
    if isinstance(target, DecimalType) and (source in WHOLE or isinstance(source, DecimalType)):
        return None
    if isinstance(source, DecimalType) and target == STRING and source.scale <= PLAIN_SCALE:
        return None
    return f"the cast from {source} to {target} is done by Python"


_CASTS = {
    (INTEGER, BIGINT),
    (INTEGER, DOUBLE),
    (BIGINT, DOUBLE),
    (BIGINT, INTEGER),
    (DOUBLE, INTEGER),
    (DOUBLE, BIGINT),
    (INTEGER, STRING),
    (BIGINT, STRING),
    (BOOLEAN, STRING),
    (DOUBLE, STRING),
    (STRING, INTEGER),
    (STRING, BIGINT),
}


def _call(node: Call) -> str | None:
    known = FUNCTIONS.get(node.function.upper())
    if known is None:
        return f"{node.function.upper()} is evaluated by Python"
    types, _ = known
    for argument in node.arguments:
        if types[0] != _T and argument.type not in types:
            return f"{node.function.upper()} of {argument.type} is evaluated by Python"
        if types[0] == _T and argument.type != node.type:
            return f"{node.function.upper()} of different types is evaluated by Python"
    if node.function.upper() == "SUBSTRING" and not all(_is_positive(one) for one in node.arguments[1:]):
        return "SUBSTRING from or of anything but constants above 0 is evaluated by Python"
    return None


def _is_positive(expression: SqlExpression) -> bool:
    return isinstance(expression, Literal) and isinstance(expression.value, int) and expression.value > 0


_CHECKS: dict[type[SqlExpression], Callable[[Any], str | None]] = {
    Literal: _nothing,
    ColumnAt: _nothing,
    Arithmetic: _arithmetic,
    Negate: _nothing,
    Comparison: _comparison,
    AllOf: _nothing,
    AnyOf: _nothing,
    Not: _nothing,
    IsNull: _nothing,
    In: _in,
    Like: _like,
    Case: _nothing,
    Cast: _cast,
    Call: _call,
}
