"""Expressions of SQL as Spark columns, each with the rows for which the column is not what Python would compute.

Spark's own functions differ from SQL's here and there: an operand that is NULL is an error to be logged, numbers wrap
around, NaN equals nothing. Wherever a row comes near such a difference `fails` is true, and the row is computed by
Python, which knows what to log. So `fails` may be true too often, but never too rarely. Start at `lower`; `checks`
tells which expressions can be lowered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from moldau.formats.types import BIGINT, DOUBLE, INTEGER, STRING, DecimalType
from moldau.pipeline.cores.sql.failures import MAX_SIZE
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
)
from moldau.pipeline.spark.native.sql.types import WHOLE, spark_name

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["Lowered", "any_of", "double_text", "lower"]


@dataclass(frozen=True)
class Lowered:
    """A value, and whether Python has to compute it; None if never."""

    value: Column
    fails: Column | None = None


def any_of(conditions: Iterable[Column | None]) -> Column | None:
    """Whether any of the conditions holds; None for none."""
    given = [one for one in conditions if one is not None]
    return reduce(lambda one, other: one | other, given) if given else None


def lower(expression: SqlExpression, row: Sequence[Column]) -> Lowered:
    """The expression over the columns of a row; only for what `checks` allows."""
    return _LOWERINGS[type(expression)](expression, row)


def _literal(node: Literal, row: Sequence[Column]) -> Lowered:
    from pyspark.sql import functions as f

    return Lowered(f.lit(node.value).cast(spark_name(node.type)))


def _column(node: ColumnAt, row: Sequence[Column]) -> Lowered:
    return Lowered(row[node.position])


# --- numbers ---------------------------------------------------------------------------------------------------


def _arithmetic(node: Arithmetic, row: Sequence[Column]) -> Lowered:
    from pyspark.sql import functions as f

    left, right = lower(node.left, row), lower(node.right, row)
    one, other = left.value, right.value
    if node.type == STRING:
        return _bounded_text(f.concat(one, other), [left.fails, right.fails, one.isNull(), other.isNull()])
    one, other = (side.cast(spark_name(node.type)) if node.type in _PLAIN else side for side in (one, other))
    is_division = node.operator in (ArithmeticOperator.DIVIDE, ArithmeticOperator.MODULUS)
    divisor = f.when(other != 0, other) if is_division else other
    value = _OPERATIONS[node.operator, node.type in WHOLE](one, divisor)
    # An overflow, a division by zero or an operand that is NULL leave no value.
    return Lowered(value, any_of([left.fails, right.fails, value.isNull()]))


_PLAIN = (INTEGER, BIGINT, DOUBLE)


def _operations() -> dict[tuple[ArithmeticOperator, bool], Callable[[Any, Any], Any]]:
    def f() -> Any:
        from pyspark.sql import functions

        return functions

    def quotient(one: Any, other: Any) -> Any:
        # The only quotient that overflows is that of the smallest number and -1.
        safe = f().when(other != -1, other)
        divided = f().call_function("div", one.cast("bigint"), safe.cast("bigint"))
        return f().when(other == -1, f().try_subtract(one * 0, one)).otherwise(divided)

    operator = ArithmeticOperator
    return {
        (operator.ADD, True): lambda one, other: f().try_add(one, other),
        (operator.SUBTRACT, True): lambda one, other: f().try_subtract(one, other),
        (operator.MULTIPLY, True): lambda one, other: f().try_multiply(one, other),
        (operator.DIVIDE, True): quotient,
        (operator.MODULUS, True): lambda one, other: one % other,
        (operator.ADD, False): lambda one, other: one + other,
        (operator.SUBTRACT, False): lambda one, other: one - other,
        (operator.MULTIPLY, False): lambda one, other: one * other,
        (operator.DIVIDE, False): lambda one, other: one / other,
        (operator.MODULUS, False): lambda one, other: one % other,
    }


_OPERATIONS = _operations()


def _negate(node: Negate, row: Sequence[Column]) -> Lowered:
    from pyspark.sql import functions as f

    operand = lower(node.value, row)
    value = f.try_subtract(operand.value * 0, operand.value) if node.type in WHOLE else -operand.value
    return Lowered(value, any_of([operand.fails, value.isNull()]))


# --- conditions ------------------------------------------------------------------------------------------------


def _comparison(node: Comparison, row: Sequence[Column]) -> Lowered:
    from pyspark.sql import functions as f

    left, right = lower(node.left, row), lower(node.right, row)
    one, other = left.value, right.value
    fails = [left.fails, right.fails]
    if DOUBLE in (node.left.type, node.right.type):
        one, other = one.cast("double"), other.cast("double")
        # Spark's NaN equals itself and is the largest number.
        fails += [f.coalesce(f.isnan(side), f.lit(False)) for side in (one, other)]
    operator = node.operator
    if node.left.type == STRING and operator in _ORDERED:
        # Code points and UTF-16 have the same order unless both texts have characters beyond ASCII.
        fails.append(f.coalesce(~is_ascii(one) & ~is_ascii(other), f.lit(False)))
    if operator is ComparisonOperator.IS_NOT_DISTINCT_FROM:
        return Lowered(one.eqNullSafe(other), any_of(fails))
    if operator is ComparisonOperator.IS_DISTINCT_FROM:
        return Lowered(~one.eqNullSafe(other), any_of(fails))
    return Lowered(f.coalesce(_COMPARE[operator](one, other), f.lit(False)), any_of(fails))


_COMPARE: dict[ComparisonOperator, Callable[[Any, Any], Any]] = {
    ComparisonOperator.EQUAL: lambda one, other: one == other,
    ComparisonOperator.NOT_EQUAL: lambda one, other: one != other,
    ComparisonOperator.LESS_THAN: lambda one, other: one < other,
    ComparisonOperator.LESS_THAN_OR_EQUAL: lambda one, other: one <= other,
    ComparisonOperator.GREATER_THAN: lambda one, other: one > other,
    ComparisonOperator.GREATER_THAN_OR_EQUAL: lambda one, other: one >= other,
}
_ORDERED = frozenset(_COMPARE) - {ComparisonOperator.EQUAL, ComparisonOperator.NOT_EQUAL}


def is_ascii(text: Column) -> Column:
    """Whether a text has only ASCII characters; null for null."""
    from pyspark.sql import functions as f

    return f.octet_length(text) == f.length(text)


def _conditions(node: AllOf | AnyOf, row: Sequence[Column]) -> Lowered:
    """A condition is looked at, and can fail, only if those before it have not decided."""
    from pyspark.sql import functions as f

    decides = isinstance(node, AnyOf)
    reached: Column | None = None
    values: list[Column] = []
    fails: list[Column | None] = []
    for condition in node.conditions:
        made = lower(condition, row)
        own = any_of([made.fails, made.value.isNull()])
        fails.append(own if reached is None or own is None else reached & own)
        value = f.coalesce(made.value, f.lit(decides))
        values.append(value)
        goes_on = ~value if decides else value
        reached = goes_on if reached is None else reached & goes_on
    combine = (lambda one, other: one | other) if decides else (lambda one, other: one & other)
    return Lowered(reduce(combine, values), any_of(fails))


def _not(node: Not, row: Sequence[Column]) -> Lowered:
    operand = lower(node.value, row)
    return Lowered(~operand.value, any_of([operand.fails, operand.value.isNull()]))


def _is_null(node: IsNull, row: Sequence[Column]) -> Lowered:
    operand = lower(node.value, row)
    return Lowered(operand.value.isNotNull() if node.is_negated else operand.value.isNull(), operand.fails)


def _in(node: In, row: Sequence[Column]) -> Lowered:
    from pyspark.sql import functions as f

    operand = lower(node.value, row)
    options = [lower(one, row).value for one in node.options]
    return Lowered(f.coalesce(operand.value.isin(*options), f.lit(False)), operand.fails)


def _like(node: Like, row: Sequence[Column]) -> Lowered:
    """As a regular expression of Java's, whose `.` does not match the end of a line: such texts are left to Python."""
    assert isinstance(node.pattern, Literal)
    operand = lower(node.value, row)
    matches = operand.value.rlike(_regex(str(node.pattern.value)))
    has_lines = operand.value.rlike("[\n\r\x85\u2028\u2029]")
    return Lowered(matches, any_of([operand.fails, operand.value.isNull(), has_lines]))


def _regex(pattern: str) -> str:
    parts = [{"%": ".*", "_": "."}.get(one) or _quote(one) for one in pattern]
    return f"^{''.join(parts)}\\z"


def _quote(character: str) -> str:
    return f"\\{character}" if re.fullmatch(r"[^\w\s]", character, re.ASCII) and character.isascii() else character


def _case(node: Case, row: Sequence[Column]) -> Lowered:
    from pyspark.sql import functions as f

    kind = spark_name(node.type)
    default = Lowered(f.lit(None)) if node.default is None else lower(node.default, row)
    value, fails = default.value.cast(kind), default.fails
    for condition, outcome in reversed(node.whens):
        holds, made = lower(condition, row), lower(outcome, row)
        value = f.when(holds.value, made.value.cast(kind)).otherwise(value)
        if made.fails is not None or fails is not None:
            none = f.lit(False)
            fails = f.when(holds.value, none if made.fails is None else made.fails).otherwise(
                none if fails is None else fails
            )
        fails = any_of([holds.fails, holds.value.isNull(), fails])
    return Lowered(value, fails)


# --- casts -----------------------------------------------------------------------------------------------------


def _cast(node: Cast, row: Sequence[Column]) -> Lowered:
    from pyspark.sql import functions as f

    operand = lower(node.value, row)
    value, source, target = operand.value, node.value.type, node.type
    if source == target:
        return operand
    if isinstance(target, DecimalType):
        made = value.try_cast(spark_name(target))
        return Lowered(made, any_of([operand.fails, value.isNotNull() & made.isNull()]))
    if source == DOUBLE and target in WHOLE:
        limit = 2.0**31 if target == INTEGER else 2.0**63
        is_inside = f.coalesce((value > -limit) & (value < limit), f.lit(True))
        return Lowered(f.when(is_inside, value).cast(spark_name(target)), any_of([operand.fails, ~is_inside]))
    if source == BIGINT and target == INTEGER:
        return Lowered(f.shiftright(f.shiftleft(value, 32), 32).cast("int"), operand.fails)
    if source == DOUBLE and target == STRING:
        text, is_unsure = double_text(value)
        return Lowered(text, any_of([operand.fails, is_unsure]))
    if source == STRING:
        made = f.when(value.rlike(r"^[+-]?[0-9]{1,19}\z"), value).try_cast(spark_name(target))
        return Lowered(made, any_of([operand.fails, value.isNotNull() & made.isNull()]))
    return Lowered(value.cast(spark_name(target)), operand.fails)


def double_text(value: Column) -> tuple[Column, Column]:
    """A double as text, and whether Java's text may be another than ours.

    Before Java 19 the digits are not always the fewest. Texts of at most 15 digits cannot differ, since no two of them
    are the same number.
    """
    from pyspark.sql import functions as f

    text = value.cast("string")
    has_zero = f.endswith(text, f.lit("0")) & ~f.endswith(text, f.lit(".0"))
    return text, f.coalesce((f.length(text) > 16) | has_zero, f.lit(False))


# --- functions -------------------------------------------------------------------------------------------------


def _call(node: Call, row: Sequence[Column]) -> Lowered:
    arguments = [lower(one, row) for one in node.arguments]
    made = _CALLS[node.function.upper()]([one.value for one in arguments], node)
    return Lowered(made.value, any_of([*(one.fails for one in arguments), made.fails]))


def _bounded_text(text: Column, fails: Iterable[Column | None]) -> Lowered:
    """A text that is not larger than any record."""
    from pyspark.sql import functions as f

    return Lowered(text, any_of([*fails, f.coalesce(f.octet_length(text) > MAX_SIZE, f.lit(False))]))


def _calls() -> dict[str, Callable[[list[Any], Call], Lowered]]:
    def f() -> Any:
        from pyspark.sql import functions

        return functions

    def not_ascii(text: Any) -> Any:
        return f().coalesce(~is_ascii(text), f().lit(False))

    def absolute(arguments: list[Any], node: Call) -> Lowered:
        (value,) = arguments
        if node.type == DOUBLE:
            return Lowered(f().abs(value))
        lowest = -(2**31) if node.type == INTEGER else -(2**63)
        is_lowest = f().coalesce(value == f().lit(lowest), f().lit(False))
        return Lowered(f().abs(f().when(~is_lowest, value)), is_lowest)

    def concat(arguments: list[Any], node: Call) -> Lowered:
        return _bounded_text(f().concat(*(f().coalesce(one, f().lit("")) for one in arguments)), [])

    def substring(arguments: list[Any], node: Call) -> Lowered:
        text, *places = arguments
        length = places[1] if len(places) > 1 else f().lit(2**31 - 1)
        return Lowered(f().substring(text, places[0], length), not_ascii(text))

    def coalesce(arguments: list[Any], node: Call) -> Lowered:
        return Lowered(f().coalesce(*arguments))

    def of_ascii(function: str) -> Callable[[list[Any], Call], Lowered]:
        return lambda arguments, node: Lowered(getattr(f(), function)(arguments[0]), not_ascii(arguments[0]))

    def trim(arguments: list[Any], node: Call) -> Lowered:
        blanks = f().lit("".join(map(chr, range(0x21))))
        return Lowered(f().call_function("btrim", arguments[0], blanks))

    def same(arguments: list[Any], node: Call) -> Lowered:
        return Lowered(arguments[0])

    return {
        "ABS": absolute,
        "AS_VALUE": same,
        "CEIL": same,
        "COALESCE": coalesce,
        "CONCAT": concat,
        "FLOOR": same,
        "IFNULL": coalesce,
        "LCASE": of_ascii("lower"),
        "LEN": of_ascii("length"),
        "SIGN": lambda arguments, node: Lowered(f().signum(arguments[0]).cast("int")),
        "SUBSTRING": substring,
        "TRIM": trim,
        "UCASE": of_ascii("upper"),
    }


_CALLS = _calls()

_LOWERINGS: dict[type[SqlExpression], Callable[[Any, Sequence[Any]], Lowered]] = {
    Literal: _literal,
    ColumnAt: _column,
    Arithmetic: _arithmetic,
    Negate: _negate,
    Comparison: _comparison,
    AllOf: _conditions,
    AnyOf: _conditions,
    Not: _not,
    IsNull: _is_null,
    In: _in,
    Like: _like,
    Case: _case,
    Cast: _cast,
    Call: _call,
}
