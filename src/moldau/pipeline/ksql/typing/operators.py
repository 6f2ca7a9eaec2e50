"""Types of operators: what can be calculated with what, what can be compared with what.

Start at `typed_arithmetic` and `typed_comparison`.
"""

from __future__ import annotations

from moldau.formats.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    MapType,
    SqlType,
    StructType,
)
from moldau.pipeline.cores.sql.arithmetic import MAX_DIGITS
from moldau.pipeline.ir.sql.expressions import (
    Arithmetic,
    ArithmeticOperator,
    Comparison,
    ComparisonOperator,
    SqlExpression,
)
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax import expressions as ast
from moldau.pipeline.ksql.syntax.printer import render
from moldau.pipeline.ksql.typing.coercion import as_decimal, base_name, convert, is_number, widen

__all__ = ["typed_arithmetic", "typed_comparison"]

_EQUALITY = (
    ComparisonOperator.EQUAL,
    ComparisonOperator.NOT_EQUAL,
    ComparisonOperator.IS_DISTINCT_FROM,
    ComparisonOperator.IS_NOT_DISTINCT_FROM,
)
_TIMES = (DATE, TIME, TIMESTAMP)


# --- arithmetic ----------------------------------------------------------------------------------------------


def typed_arithmetic(written: ast.Arithmetic, left: SqlExpression, right: SqlExpression) -> SqlExpression:
    """`left op right`, with both operands converted to the kind of number of the result."""
    operator = ArithmeticOperator(written.operator.value)
    if left.type == STRING == right.type and operator is ArithmeticOperator.ADD:
        return Arithmetic(STRING, operator, left, right)
    if left.type is None or right.type is None or not (is_number(left.type) and is_number(right.type)):
        raise KsqlError(
            f"Error processing expression: {render(written)}. Arithmetic on types "
            f"{_name(left.type)} and {_name(right.type)} are not supported."
        )
    if DOUBLE in (left.type, right.type):
        return Arithmetic(DOUBLE, operator, convert(left, DOUBLE), convert(right, DOUBLE))
    if isinstance(left.type, DecimalType) or isinstance(right.type, DecimalType):
        one, other = as_decimal(left.type), as_decimal(right.type)
        result = _decimal_result(written, operator, one, other)
        return Arithmetic(result, operator, convert(left, one), convert(right, other))
    result_type = BIGINT if BIGINT in (left.type, right.type) else INTEGER
    return Arithmetic(result_type, operator, convert(left, result_type), convert(right, result_type))


def _name(of: SqlType | None) -> str:
    return "null" if of is None else str(of)


def _decimal_result(
    written: ast.Arithmetic, operator: ArithmeticOperator, one: DecimalType, other: DecimalType
) -> DecimalType:
    scale = max(one.scale, other.scale)
    whole_one, whole_other = one.precision - one.scale, other.precision - other.scale
    match operator:
        case ArithmeticOperator.ADD | ArithmeticOperator.SUBTRACT:
            precision = max(whole_one, whole_other) + scale + 1
        case ArithmeticOperator.MULTIPLY:
            scale = one.scale + other.scale
            precision = one.precision + other.precision + 1
        case ArithmeticOperator.DIVIDE:
            scale = max(6, one.scale + other.precision + 1)
            precision = whole_one + other.scale + scale
        case ArithmeticOperator.MODULUS:
            precision = min(whole_one, whole_other) + scale
    if precision > MAX_DIGITS:
        raise KsqlError(
            f"Error processing expression: {render(written)}. Its result would have {precision} digits, more than "
            f"the {MAX_DIGITS} that a DECIMAL may have here; CAST its operands to narrower types."
        )
    return DecimalType(max(precision, 1), scale)


# --- comparison ----------------------------------------------------------------------------------------------


def typed_comparison(written: ast.Comparison, left: SqlExpression, right: SqlExpression) -> SqlExpression:
    """`left op right`; texts compared with times are parsed, dates compared with timestamps become timestamps."""
    operator = ComparisonOperator(written.operator.value)
    if left.type is None or right.type is None:
        names = ("NULL" if each.type is None else base_name(each.type) for each in (left, right))
        raise KsqlError(
            f"Comparison with NULL not supported: {f' {operator.value} '.join(names)}\n"
            "Use 'IS NULL' or 'IS NOT NULL' instead."
        )
    if not _is_comparable(operator, left.type, right.type):
        raise KsqlError(
            f"Cannot compare {render(written.left)} ({left.type}) to {render(written.right)} ({right.type}) "
            f"with {operator.name}."
        )
    left, right = _on_common_ground(left, right), _on_common_ground(right, left)
    return Comparison(BOOLEAN, operator, left, right)


def _is_comparable(operator: ComparisonOperator, left: SqlType, right: SqlType) -> bool:
    if is_number(left):
        return is_number(right)
    if left == STRING:
        return right == STRING or right in _TIMES
    if left in (DATE, TIMESTAMP):
        return right in (DATE, TIMESTAMP, STRING)
    if left == TIME:
        return right in (TIME, STRING)
    if left == BYTES:
        return right == BYTES
    same_kind = left == right if left == BOOLEAN else type(left) is type(right)
    return same_kind and isinstance(left, ArrayType | MapType | StructType | type(BOOLEAN)) and operator in _EQUALITY


def _on_common_ground(side: SqlExpression, other: SqlExpression) -> SqlExpression:
    assert other.type is not None
    if side.type == STRING and other.type in _TIMES:
        return widen(side, other.type)
    if side.type == DATE and other.type == TIMESTAMP:
        return convert(side, TIMESTAMP)
    return side
