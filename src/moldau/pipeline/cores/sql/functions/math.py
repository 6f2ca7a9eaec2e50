"""Functions on numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Any

from moldau.formats.types import DOUBLE, DecimalType, SqlType, Value
from moldau.pipeline.cores.sql.arithmetic import (
    EXACT,
    LONG_MAX,
    LONG_MIN,
    double_to_integer,
    fit_decimal,
    without_negative_zero,
    wrap_int,
    wrap_long,
)
from moldau.pipeline.cores.sql.failures import ExpressionError
from moldau.pipeline.cores.sql.functions.registry import BUILTIN
from moldau.pipeline.cores.sql.operations import order

_MATH = "MATHEMATICAL"
_REALS = ("(value INTEGER) -> DOUBLE", "(value BIGINT) -> DOUBLE", "(value DOUBLE) -> DOUBLE")


def same_type(arguments: Sequence[SqlType | None]) -> SqlType:
    """The result has the type of the first argument."""
    first = arguments[0]
    return DecimalType(1, 0) if first is None else first


# --- functions of one real number ----------------------------------------------------------------------------


def _or_nan(compute: Callable[[float], float]) -> Callable[[float], float]:
    """Python raises where Java gives NaN (outside the domain) or an infinity (overflow)."""

    def computed(value: float) -> float:
        try:
            return compute(value)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return computed


def _sinh(value: float) -> float:
    try:
        return math.sinh(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _ln(value: float) -> float:
    return -math.inf if value == 0 else math.log(value)


def _cube_root(value: float) -> float:
    """The double nearest to the root: of what the C library gives and its neighbours, the one whose cube is closest."""
    near = math.cbrt(value)
    if not math.isfinite(value):
        return near
    exact = Fraction(value)
    around = (near, math.nextafter(near, math.inf), math.nextafter(near, -math.inf))
    return min(around, key=lambda root: abs(Fraction(root) ** 3 - exact))


def _radians(degrees: float) -> float:
    """In Java's order of operations, so that the last digit is the same."""
    return degrees / 180.0 * math.pi


def _degrees(radians: float) -> float:
    return radians * 180.0 / math.pi


def _cot(value: float) -> float:
    tangent = math.tan(value)
    return math.copysign(math.inf, tangent) if tangent == 0 else 1.0 / tangent


for _name, _compute, _about in (
    ("acos", math.acos, "The arc cosine, in radians."),
    ("asin", math.asin, "The arc sine, in radians."),
    ("atan", math.atan, "The arc tangent, in radians."),
    ("cbrt", _cube_root, "The cube root."),
    ("cos", math.cos, "The cosine of an angle in radians."),
    ("cosh", math.cosh, "The hyperbolic cosine."),
    ("cot", _cot, "The cotangent of an angle in radians; infinite at 0."),
    ("degrees", _degrees, "An angle in radians as degrees."),
    ("exp", math.exp, "Euler's number raised to a power."),
    ("ln", _ln, "The natural logarithm; minus infinity of 0, NaN of negative numbers."),
    ("radians", _radians, "An angle in degrees as radians."),
    ("sin", math.sin, "The sine of an angle in radians."),
    ("sinh", _sinh, "The hyperbolic sine."),
    ("sqrt", math.sqrt, "The square root; NaN of negative numbers."),
    ("tan", math.tan, "The tangent of an angle in radians."),
    ("tanh", math.tanh, "The hyperbolic tangent."),
):
    _implementation = _or_nan(_compute)
    _implementation.__doc__ = _about
    BUILTIN.scalar(_name, *_REALS, category=_MATH)(_implementation)


_PAIRS = tuple(f"(a {kind}, b {kind}) -> DOUBLE" for kind in ("INTEGER", "BIGINT", "DOUBLE"))


@BUILTIN.scalar("atan2", *_PAIRS, category=_MATH)
def atan2(y: float, x: float) -> float:
    """The angle of the point (x, y), in radians."""
    return math.atan2(y, x)


@BUILTIN.scalar("power", *_PAIRS, category=_MATH)
def power(base: float, exponent: float) -> float:
    """A base raised to an exponent."""
    try:
        return math.pow(base, exponent)
    except OverflowError:
        is_odd = exponent == math.floor(exponent) and exponent % 2 == 1
        return -math.inf if base < 0 and is_odd else math.inf
    except ValueError:
        if base == 0:
            return (
                -math.inf if math.copysign(1, base) < 0 and exponent % 2 == -1 % 2 and exponent % 1 == 0 else math.inf
            )
        return math.nan


@BUILTIN.scalar("log", *_REALS, *_PAIRS, category=_MATH)
def log(base: float, value: float | None = None) -> float:
    """The logarithm to a base, or the natural one if only a value is given."""
    if value is None:
        return _or_nan(_ln)(base)
    if base <= 0 or base == 1:
        return math.nan
    top = _or_nan(_ln)(value)
    return top / math.log(base)


@BUILTIN.scalar("pi", "() -> DOUBLE", category=_MATH)
def pi() -> float:
    """The number pi."""
    return math.pi


@BUILTIN.scalar("Random", "() -> DOUBLE", category=_MATH)
def random_number() -> float:
    """A random number from 0 up to, not including, 1."""
    return random.random()


# --- rounding and signs --------------------------------------------------------------------------------------


@BUILTIN.scalar("Abs", "(value INTEGER) -> INTEGER", category=_MATH)
def abs_integer(value: int) -> int:
    """The absolute value."""
    return wrap_int(abs(value))


@BUILTIN.scalar("Abs", "(value BIGINT) -> BIGINT", category=_MATH)
def abs_bigint(value: int) -> int:
    """The absolute value."""
    return wrap_long(abs(value))


@BUILTIN.scalar("Abs", "(value DOUBLE) -> DOUBLE", category=_MATH)
def abs_double(value: float) -> float:
    """The absolute value."""
    return abs(value)


@BUILTIN.scalar("Abs", "(value DECIMAL) -> DECIMAL", category=_MATH, returns=same_type)
def abs_decimal(value: Decimal) -> Decimal:
    """The absolute value."""
    return value.copy_abs()


@BUILTIN.scalar(
    "sign", "(value INTEGER) -> INTEGER", "(value BIGINT) -> INTEGER", "(value DOUBLE) -> INTEGER", category=_MATH
)
def sign(value: float) -> int:
    """-1, 0 or 1."""
    return (value > 0) - (value < 0)


def _whole(rounding: str, compute: Callable[[float], int]) -> Callable[..., Any]:
    def build(arguments: Sequence[SqlType | None], result: SqlType) -> Callable[[Any], Value]:
        if isinstance(result, DecimalType):
            decimal_type = result

            def round_decimal(value: Decimal) -> Decimal:
                return fit_decimal(value.to_integral_value(rounding, context=EXACT), decimal_type)

            return round_decimal
        if result == DOUBLE:
            return lambda value: float(compute(value)) if math.isfinite(value) else value
        return lambda value: value

    return build


_SAME_NUMBERS = tuple(f"(value {kind}) -> {kind}" for kind in ("INTEGER", "BIGINT", "DOUBLE"))
for _name, _rounding, _to_whole, _about in (
    ("Ceil", ROUND_CEILING, math.ceil, "The smallest whole number that is not below."),
    ("Floor", ROUND_FLOOR, math.floor, "The largest whole number that is not above."),
):
    _build = _whole(_rounding, _to_whole)
    _build.__doc__ = _about
    BUILTIN.scalar(_name, *_SAME_NUMBERS, category=_MATH, is_typed=True)(_build)
    BUILTIN.scalar(_name, "(value DECIMAL) -> DECIMAL", category=_MATH, is_typed=True, returns=same_type)(_build)


def _without_fraction(arguments: Sequence[SqlType | None]) -> SqlType:
    first = arguments[0]
    return (
        DecimalType(max(first.precision - first.scale, 1), 0) if isinstance(first, DecimalType) else DecimalType(1, 0)
    )


@BUILTIN.scalar("Round", "(value INTEGER) -> BIGINT", "(value BIGINT) -> BIGINT", category=_MATH)
def round_whole(value: int) -> int:
    """A number rounded to a whole one, or to a number of places after the point; ties go up."""
    return value


@BUILTIN.scalar("Round", "(value DOUBLE) -> BIGINT", category=_MATH)
def round_double(value: float) -> int:
    """A number rounded to a whole one; ties go up."""
    if not math.isfinite(value):
        return double_to_integer(value, LONG_MIN, LONG_MAX)
    return double_to_integer(float(math.floor(Decimal(value) + Decimal("0.5"))), LONG_MIN, LONG_MAX)


def _half_up(value: Decimal, places: int) -> Decimal:
    """Ties go towards plus infinity."""
    if places < -value.adjusted() - 2:
        return Decimal(0)
    if places >= -int(value.as_tuple().exponent):
        return value
    shifted = EXACT.add(EXACT.scaleb(value, places), Decimal("0.5"))
    return without_negative_zero(EXACT.scaleb(shifted.to_integral_value(ROUND_FLOOR, context=EXACT), -places))


@BUILTIN.scalar("Round", "(value DOUBLE, places INTEGER) -> DOUBLE", category=_MATH)
def round_double_places(value: float, places: int) -> float:
    """A number rounded to a number of places after the point; ties go up."""
    return value if not math.isfinite(value) else float(_half_up(Decimal(repr(value)), places))


@BUILTIN.scalar("Round", "(value DECIMAL) -> DECIMAL", category=_MATH, returns=_without_fraction, is_typed=True)
def round_decimal(arguments: Sequence[SqlType | None], result: SqlType) -> Callable[[Decimal], Decimal]:
    """A number rounded to a whole one; ties go up."""
    return lambda value: EXACT.quantize(_half_up(value, 0), Decimal(1))


@BUILTIN.scalar("Round", "(value DECIMAL, places INTEGER) -> DECIMAL", category=_MATH, returns=same_type, is_typed=True)
def round_decimal_places(arguments: Sequence[SqlType | None], result: SqlType) -> Callable[[Decimal, int], Decimal]:
    """A number rounded to a number of places after the point; ties go up."""
    assert isinstance(result, DecimalType)
    return lambda value, places: fit_decimal(_half_up(value, places), result)


@BUILTIN.scalar("trunc", "(value INTEGER) -> BIGINT", "(value BIGINT) -> BIGINT", category=_MATH)
def truncate_whole(value: int) -> int:
    """A number without its fraction, or cut to a number of places after the point."""
    return value


@BUILTIN.scalar("trunc", "(value DOUBLE) -> BIGINT", category=_MATH)
def truncate_double(value: float) -> int:
    """A number without its fraction."""
    return double_to_integer(value, LONG_MIN, LONG_MAX)


def _cut(value: Decimal, places: int) -> Decimal:
    if places < -value.adjusted() - 2:
        return Decimal(0)
    if places >= -int(value.as_tuple().exponent):
        return value
    cut = EXACT.scaleb(value, places).to_integral_value(ROUND_DOWN, context=EXACT)
    return without_negative_zero(EXACT.scaleb(cut, -places))


@BUILTIN.scalar("trunc", "(value DOUBLE, places INTEGER) -> DOUBLE", category=_MATH)
def truncate_double_places(value: float, places: int) -> float:
    """A number cut to a number of places after the point."""
    return value if not math.isfinite(value) else float(_cut(Decimal(repr(value)), places))


@BUILTIN.scalar("trunc", "(value DECIMAL) -> DECIMAL", category=_MATH, returns=_without_fraction)
def truncate_decimal(value: Decimal) -> Decimal:
    """A number without its fraction."""
    return EXACT.quantize(_cut(value, 0), Decimal(1))


@BUILTIN.scalar("trunc", "(value DECIMAL, places INTEGER) -> DECIMAL", category=_MATH, returns=same_type, is_typed=True)
def truncate_decimal_places(arguments: Sequence[SqlType | None], result: SqlType) -> Callable[[Decimal, int], Decimal]:
    """A number cut to a number of places after the point."""
    assert isinstance(result, DecimalType)
    return lambda value, places: fit_decimal(_cut(value, places), result)


# --- the largest and the smallest ----------------------------------------------------------------------------


def _widest(arguments: Sequence[SqlType | None]) -> SqlType:
    given = [each for each in arguments if isinstance(each, DecimalType)]
    if not given:
        return DecimalType(1, 0)
    scale = max(each.scale for each in given)
    return DecimalType(max(each.precision - each.scale for each in given) + scale, scale)


def _extreme(sign_of_better: int) -> Callable[..., Any]:
    def better(one: Any, other: Any) -> bool:
        return order(one, other) * sign_of_better > 0

    def extreme(*values: Any) -> Any:
        best = None
        for value in values:
            if value is not None and (best is None or better(value, best)):
                best = value
        return best

    return extreme


def _extreme_decimal(sign_of_better: int) -> Callable[..., Any]:
    pick = _extreme(sign_of_better)

    def build(arguments: Sequence[SqlType | None], result: SqlType) -> Callable[..., Value]:
        assert isinstance(result, DecimalType)
        return lambda *values: None if (best := pick(*values)) is None else fit_decimal(best, result)

    return build


_KINDS = ("INTEGER", "BIGINT", "DOUBLE", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP")
_ALIKE = tuple(f"(first {kind}, others {kind}...) -> {kind}" for kind in _KINDS)
for _name, _sign, _about in (
    ("greatest", 1, "The largest of the values that are not NULL."),
    ("least", -1, "The smallest of the values that are not NULL."),
):
    _pick = _extreme(_sign)
    _pick.__doc__ = _about
    BUILTIN.scalar(_name, *_ALIKE, category=_MATH, is_strict=False)(_pick)
    BUILTIN.scalar(
        _name,
        "(first DECIMAL, others DECIMAL...) -> DECIMAL",
        category=_MATH,
        is_strict=False,
        is_typed=True,
        returns=_widest,
    )(_extreme_decimal(_sign))


# --- places on the earth -------------------------------------------------------------------------------------

_RADIUS = {"K": 6371.0, "M": 3959.0}


@BUILTIN.scalar(
    "geo_distance",
    "(lat1 DOUBLE, lon1 DOUBLE, lat2 DOUBLE, lon2 DOUBLE) -> DOUBLE",
    "(lat1 DOUBLE, lon1 DOUBLE, lat2 DOUBLE, lon2 DOUBLE, units STRING) -> DOUBLE",
    category="OTHER",
)
def geo_distance(lat1: float, lon1: float, lat2: float, lon2: float, units: str = "KM") -> float:
    """The distance of two points by the haversine formula, in kilometres (KM) or miles (MILE)."""
    for latitude, longitude in ((lat1, lon1), (lat2, lon2)):
        if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
            raise ExpressionError("latitudes are between -90 and 90, longitudes between -180 and 180")
    radius = _RADIUS.get(units[:1].upper()) if units.lower() in _UNITS else None
    if radius is None:
        raise ExpressionError(f"'{units}' is not a unit of distance: use KM or MILE")
    half_latitude = math.sin(_radians(lat2 - lat1) / 2)
    half_longitude = math.sin(_radians(lon2 - lon1) / 2)
    chord = half_latitude**2 + half_longitude**2 * math.cos(_radians(lat1)) * math.cos(_radians(lat2))
    return 2 * math.asin(math.sqrt(chord)) * radius


_UNITS = ("km", "kilometer", "kilometers", "kilometre", "kilometres", "m", "mi", "mile", "miles", "k")
