"""Aggregates that calculate: counts, sums, averages, deviations, extremes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from moldau.formats.types import (
    BIGINT,
    DOUBLE,
    INTEGER,
    ArrayType,
    DecimalType,
    Field,
    SqlType,
    StructType,
    Value,
)
from moldau.pipeline.cores.sql.arithmetic import EXACT, wrap_int, wrap_long
from moldau.pipeline.cores.sql.failures import FatalExpressionError
from moldau.pipeline.cores.sql.functions.registry import BUILTIN, Aggregation, Settings, state_is_result
from moldau.pipeline.cores.sql.operations import order

Types = Sequence[SqlType | None]


# --- COUNT ---------------------------------------------------------------------------------------------------


@BUILTIN.aggregate("COUNT", "(value T) -> BIGINT", is_undoable=True)
def count(types: Types, constants: Sequence[Value], settings: Settings) -> Aggregation:
    """How many rows there are, or how many have a value."""
    return Aggregation(
        initial=lambda: 0,
        add=lambda state, value: state if value is None else state + 1,
        undo=lambda state, value: state if value is None else state - 1,
        merge=lambda one, other: one + other,
        result=state_is_result,
        result_type=BIGINT,
        state_type=BIGINT,
    )


# --- SUM -----------------------------------------------------------------------------------------------------


def _plus(of: SqlType) -> tuple[Any, Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """Zero, addition and subtraction within a type; a DECIMAL that no longer fits ends the query."""
    if of == INTEGER:
        return 0, lambda a, b: wrap_int(a + b), lambda a, b: wrap_int(a - b)
    if of == BIGINT:
        return 0, lambda a, b: wrap_long(a + b), lambda a, b: wrap_long(a - b)
    if isinstance(of, DecimalType):
        limit = Decimal((0, (1,), of.precision - of.scale))

        def fit(value: Decimal) -> Decimal:
            if abs(value) >= limit:
                raise FatalExpressionError(f"Numeric field overflow: a sum does not fit {of}")
            return value

        zero = Decimal((0, (0,), -of.scale))
        return zero, lambda a, b: fit(EXACT.add(a, b)), lambda a, b: fit(EXACT.subtract(a, b))
    return 0.0, lambda a, b: a + b, lambda a, b: a - b


def _number_type(types: Types) -> SqlType:
    return types[0] or DOUBLE


@BUILTIN.aggregate(
    "SUM",
    "(value INTEGER) -> INTEGER",
    "(value BIGINT) -> BIGINT",
    "(value DOUBLE) -> DOUBLE",
    "(value DECIMAL) -> DECIMAL",
    is_undoable=True,
)
def total(types: Types, constants: Sequence[Value], settings: Settings) -> Aggregation:
    """The sum of the values."""
    of = _number_type(types)
    zero, plus, minus = _plus(of)
    return Aggregation(
        initial=lambda: zero,
        add=lambda state, value: state if value is None else plus(state, value),
        undo=lambda state, value: state if value is None else minus(state, value),
        merge=plus,
        result=state_is_result,
        result_type=of,
        state_type=of,
    )


@BUILTIN.aggregate(
    "SUM_LIST",
    "(values ARRAY<INTEGER>) -> INTEGER",
    "(values ARRAY<BIGINT>) -> BIGINT",
    "(values ARRAY<DOUBLE>) -> DOUBLE",
    "(values ARRAY<DECIMAL>) -> DECIMAL",
    is_undoable=True,
)
def sum_list(types: Types, constants: Sequence[Value], settings: Settings) -> Aggregation:
    """The sum of all elements of arrays."""
    array = types[0]
    of = array.element if isinstance(array, ArrayType) else DOUBLE
    zero, plus, minus = _plus(of)

    def each(step: Callable[[Any, Any], Any]) -> Callable[..., Value]:
        def fold(state: Any, values: list[Any] | None) -> Value:
            for value in values or ():
                if value is not None:
                    state = step(state, value)
            return state

        return fold

    return Aggregation(
        initial=lambda: zero,
        add=each(plus),
        undo=each(minus),
        merge=plus,
        result=state_is_result,
        result_type=of,
        state_type=of,
    )


# --- averages and deviations ---------------------------------------------------------------------------------


@BUILTIN.aggregate(
    "AVG", "(value INTEGER) -> DOUBLE", "(value BIGINT) -> DOUBLE", "(value DOUBLE) -> DOUBLE", is_undoable=True
)
def average(types: Types, constants: Sequence[Value], settings: Settings) -> Aggregation:
    """The mean of the values."""
    of = _number_type(types)
    zero, plus, minus = _plus(of)
    return Aggregation(
        initial=lambda: (zero, 0),
        add=lambda state, value: state if value is None else (plus(state[0], value), state[1] + 1),
        undo=lambda state, value: state if value is None else (minus(state[0], value), state[1] - 1),
        merge=lambda one, other: (plus(one[0], other[0]), one[1] + other[1]),
        result=lambda state: float(state[0]) / state[1] if state[1] else 0.0,
        result_type=DOUBLE,
        state_type=StructType((Field("SUM", of), Field("COUNT", BIGINT))),
    )


def _deviation(finish: Callable[[float], float]) -> Callable[[Types, Sequence[Value], Settings], Aggregation]:
    """Sum, count and the sum of squared distances from the mean, each updated value by value."""

    def build(types: Types, constants: Sequence[Value], settings: Settings) -> Aggregation:
        of = _number_type(types)
        zero, plus, minus = _plus(of)

        def add(state: Any, value: Any) -> Value:
            if value is None:
                return state
            grown, number = plus(state[0], value), state[1] + 1
            squares = state[2]
            if number > 1:
                distance = number * float(value) - float(grown)
                squares += distance * distance / (number * (number - 1))
            return grown, number, squares

        def undo(state: Any, value: Any) -> Value:
            if value is None:
                return state
            number = state[1] - 1
            if number <= 1:
                return minus(state[0], value), number, 0.0
            distance = state[1] * float(value) - float(state[0])
            return minus(state[0], value), number, state[2] - distance * distance / (state[1] * number)

        def merge(one: Any, other: Any) -> Value:
            if not one[1] or not other[1]:
                return one if other[1] == 0 else other
            number = one[1] + other[1]
            distance = float(other[0]) / other[1] - float(one[0]) / one[1]
            squares = one[2] + other[2] + distance * distance * one[1] * other[1] / number
            return plus(one[0], other[0]), number, squares

        return Aggregation(
            initial=lambda: (zero, 0, 0.0),
            add=add,
            undo=undo,
            merge=merge,
            result=lambda state: finish(state[2] / (state[1] - 1)) if state[1] > 1 else 0.0,
            result_type=DOUBLE,
            state_type=StructType((Field("SUM", of), Field("COUNT", BIGINT), Field("M2", DOUBLE))),
        )

    return build


for _name, _finish, _about in (
    ("STDDEV_SAMP", lambda variance: variance, "The sample variance of the values; see STDDEV_SAMPLE."),
    ("STDDEV_SAMPLE", lambda variance: math.sqrt(max(variance, 0.0)), "The sample standard deviation of the values."),
):
    _build = _deviation(_finish)
    _build.__doc__ = _about
    BUILTIN.aggregate(
        _name, "(value INTEGER) -> DOUBLE", "(value BIGINT) -> DOUBLE", "(value DOUBLE) -> DOUBLE", is_undoable=True
    )(_build)


_SUMS = ("SUM_X", "SUM_Y", "SUM_X_SQUARED", "SUM_Y_SQUARED", "SUM_X_Y")


@BUILTIN.aggregate(
    "CORRELATION",
    "(x INTEGER, y INTEGER) -> DOUBLE",
    "(x BIGINT, y BIGINT) -> DOUBLE",
    "(x DOUBLE, y DOUBLE) -> DOUBLE",
    is_undoable=True,
)
def correlation(types: Types, constants: Sequence[Value], settings: Settings) -> Aggregation:
    """Pearson's correlation of two columns; rows with a NULL do not count."""

    def step(sign: int) -> Callable[..., Value]:
        def moved(state: Any, x: Any, y: Any) -> Value:
            if x is None or y is None:
                return state
            a, b = float(x), float(y)
            terms = (a, b, a * a, b * b, a * b)
            return (state[0] + sign, *(old + sign * term for old, term in zip(state[1:], terms, strict=True)))

        return moved

    def result(state: Any) -> Value:
        number, x, y, xx, yy, xy = state
        if number < 2:
            return math.nan
        below = math.sqrt(max(number * xx - x * x, 0.0)) * math.sqrt(max(number * yy - y * y, 0.0))
        return (number * xy - x * y) / below if below else math.nan

    return Aggregation(
        initial=lambda: (0, 0.0, 0.0, 0.0, 0.0, 0.0),
        add=step(1),
        undo=step(-1),
        merge=lambda one, other: tuple(a + b for a, b in zip(one, other, strict=True)),
        result=result,
        result_type=DOUBLE,
        state_type=StructType((Field("COUNT", BIGINT), *(Field(name, DOUBLE) for name in _SUMS))),
    )


# --- extremes ------------------------------------------------------------------------------------------------


def _extreme(sign: int) -> Callable[[Types, Sequence[Value], Settings], Aggregation]:
    def better(one: Any, other: Any) -> Any:
        if one is None or other is None:
            return one if other is None else other
        return one if order(one, other) * sign >= 0 else other

    def build(types: Types, constants: Sequence[Value], settings: Settings) -> Aggregation:
        of = _number_type(types)
        return Aggregation(
            initial=lambda: None,
            add=better,
            merge=better,
            result=state_is_result,
            result_type=of,
            state_type=of,
        )

    return build


_ORDERED = ("INTEGER", "BIGINT", "DOUBLE", "DECIMAL", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP")
for _name, _sign, _about in (("MAX", 1, "The largest value."), ("MIN", -1, "The smallest value.")):
    _build = _extreme(_sign)
    _build.__doc__ = _about
    BUILTIN.aggregate(_name, *(f"(value {kind}) -> {kind}" for kind in _ORDERED))(_build)
