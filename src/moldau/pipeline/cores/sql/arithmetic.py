"""Arithmetic as Java does it: integers wrap around, doubles follow IEEE 754, decimals are exact or fail.

Operands are never None here; the compiled code has looked. Start at `operation`.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from moldau.formats.types import BIGINT, DOUBLE, INTEGER, STRING, DecimalType, SqlType
from moldau.pipeline.cores.sql.failures import ExpressionError
from moldau.pipeline.ir.sql.expressions import ArithmeticOperator

__all__ = [
    "EXACT",
    "INT_MAX",
    "INT_MIN",
    "LONG_MAX",
    "LONG_MIN",
    "MAX_DIGITS",
    "divide_integers",
    "double_to_integer",
    "fit_decimal",
    "operation",
    "without_negative_zero",
    "wrap_int",
    "wrap_long",
]

INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1
LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1

MAX_DIGITS = 10_000
"""No decimal of ours has more digits: bounds what one multiplication may cost."""

EXACT = decimal.Context(
    prec=MAX_DIGITS,
    rounding=decimal.ROUND_HALF_UP,
    Emin=decimal.MIN_EMIN,
    Emax=decimal.MAX_EMAX,
    traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
)
"""Enough digits for every value that has a type; rounding happens only where a function asks for it."""


def wrap_int(value: int) -> int:
    """The low 32 bits as a signed number."""
    return ((value - INT_MIN) & 0xFFFFFFFF) + INT_MIN


def wrap_long(value: int) -> int:
    """The low 64 bits as a signed number."""
    return ((value - LONG_MIN) & 0xFFFFFFFFFFFFFFFF) + LONG_MIN


def divide_integers(left: int, right: int) -> int:
    """The quotient, towards zero."""
    if right == 0:
        raise ExpressionError("division by zero")
    return left // right if (left >= 0) == (right > 0) else -(-left // right)


def _modulus_integers(left: int, right: int) -> int:
    """The remainder, with the sign of the dividend."""
    if right == 0:
        raise ExpressionError("division by zero")
    remainder = left % right
    return remainder - right if remainder and (left < 0) != (right < 0) else remainder


def double_to_integer(value: float, low: int, high: int) -> int:
    """The whole part, held within the range; NaN is 0."""
    if math.isnan(value):
        return 0
    if value <= low:
        return low
    return high if value >= high else int(value)


def _divide_doubles(left: float, right: float) -> float:
    if right == 0:
        if left == 0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    return left / right


def _modulus_doubles(left: float, right: float) -> float:
    if right == 0 or not math.isfinite(left) or math.isnan(right):
        return math.nan
    return math.fmod(left, right)


def fit_decimal(value: Decimal, target: DecimalType) -> Decimal:
    """The value with the scale of a type, rounded half up; fails if there are too many whole digits."""
    if not value.is_finite():
        raise ExpressionError(f"{value} cannot be a DECIMAL")
    if value.adjusted() > target.precision:
        raise _overflow(target)
    result = value.quantize(_quantum(target.scale), context=EXACT)
    if not result:
        return without_negative_zero(result)
    if result.adjusted() >= target.precision - target.scale:
        raise _overflow(target)
    return result


def without_negative_zero(value: Decimal) -> Decimal:
    """Java's decimals know one zero only, Python's have a sign."""
    return value if value else value.copy_abs()


def _overflow(target: DecimalType) -> ExpressionError:
    return ExpressionError(
        f"Numeric field overflow: A field with precision {target.precision} and scale {target.scale} "
        f"must round to an absolute value less than 10^{target.precision - target.scale}."
    )


@lru_cache(maxsize=256)
def _quantum(scale: int) -> Decimal:
    return Decimal((0, (1,), -scale))


def operation(operator: ArithmeticOperator, of: SqlType) -> Callable[[Any, Any], Any]:
    """The function of two values, both of the kind of number that the result is."""
    if isinstance(of, DecimalType):
        return _decimal_operation(operator, of)
    return _OPERATIONS[of][operator]


def _decimal_operation(operator: ArithmeticOperator, of: DecimalType) -> Callable[[Decimal, Decimal], Decimal]:
    precise = decimal.Context(
        prec=min(of.precision, MAX_DIGITS),
        Emin=decimal.MIN_EMIN,
        Emax=decimal.MAX_EMAX,
        traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow, decimal.Inexact],
    )
    compute: Callable[[Decimal, Decimal], Decimal] = {
        ArithmeticOperator.ADD: precise.add,
        ArithmeticOperator.SUBTRACT: precise.subtract,
        ArithmeticOperator.MULTIPLY: precise.multiply,
        ArithmeticOperator.DIVIDE: precise.divide,
        ArithmeticOperator.MODULUS: EXACT.remainder,
    }[operator]
    quantum, spacious = _quantum(of.scale), _with_inexact_trap()

    def exact(left: Decimal, right: Decimal) -> Decimal:
        try:
            return without_negative_zero(compute(left, right).quantize(quantum, context=spacious))
        except (decimal.DivisionByZero, decimal.DivisionUndefined):
            raise ExpressionError("division by zero") from None
        except decimal.DecimalException:
            raise ExpressionError(f"the result does not fit {of} exactly") from None

    return exact


@lru_cache(maxsize=1)
def _with_inexact_trap() -> decimal.Context:
    context = EXACT.copy()
    context.traps[decimal.Inexact] = True
    return context


_INTEGERS: dict[ArithmeticOperator, Callable[[int, int], int]] = {
    ArithmeticOperator.ADD: lambda left, right: left + right,
    ArithmeticOperator.SUBTRACT: lambda left, right: left - right,
    ArithmeticOperator.MULTIPLY: lambda left, right: left * right,
    ArithmeticOperator.DIVIDE: divide_integers,
    ArithmeticOperator.MODULUS: _modulus_integers,
}


def _wrapping(wrap: Callable[[int], int], compute: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda left, right: wrap(compute(left, right))


_OPERATIONS: dict[SqlType, dict[ArithmeticOperator, Callable[[Any, Any], Any]]] = {
    INTEGER: {operator: _wrapping(wrap_int, compute) for operator, compute in _INTEGERS.items()},
    BIGINT: {operator: _wrapping(wrap_long, compute) for operator, compute in _INTEGERS.items()},
    DOUBLE: {
        ArithmeticOperator.ADD: lambda left, right: left + right,
        ArithmeticOperator.SUBTRACT: lambda left, right: left - right,
        ArithmeticOperator.MULTIPLY: lambda left, right: left * right,
        ArithmeticOperator.DIVIDE: _divide_doubles,
        ArithmeticOperator.MODULUS: _modulus_doubles,
    },
    STRING: {ArithmeticOperator.ADD: lambda left, right: left + right},
}
