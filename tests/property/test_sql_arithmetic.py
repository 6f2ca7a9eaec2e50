"""SQL arithmetic against exact numbers: integers modulo 2^32 and 2^64, decimals equal to fractions or no result."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.formats.types import BIGINT, INTEGER, DecimalType
from moldau.pipeline.cores.sql.arithmetic import fit_decimal, operation
from moldau.pipeline.cores.sql.failures import ExpressionError
from moldau.pipeline.cores.sql.operations import like, utf16_order
from moldau.pipeline.cores.sql.time.calendar import date_of, days_of, parse_timestamp, timestamp_text, zone
from moldau.pipeline.cores.sql.time.formatting import format_timestamp
from moldau.pipeline.cores.sql.time.parsing import parse_timestamp as parse_by_pattern
from moldau.pipeline.ir.sql.expressions import Arithmetic, ArithmeticOperator, ColumnAt
from moldau.pipeline.ksql.syntax import expressions as ast
from moldau.pipeline.ksql.typing.operators import typed_arithmetic

RING = (ArithmeticOperator.ADD, ArithmeticOperator.SUBTRACT, ArithmeticOperator.MULTIPLY)
EXACT = {
    ArithmeticOperator.ADD: lambda a, b: a + b,
    ArithmeticOperator.SUBTRACT: lambda a, b: a - b,
    ArithmeticOperator.MULTIPLY: lambda a, b: a * b,
    ArithmeticOperator.DIVIDE: lambda a, b: a / b,
}


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


@pytest.mark.parametrize(("of", "bits"), [(INTEGER, 32), (BIGINT, 64)])
@given(data=st.data(), operator=st.sampled_from(RING))
def test_integers_wrap_around(of: object, bits: int, data: st.DataObject, operator: ArithmeticOperator) -> None:
    left, right = data.draw(integers(bits)), data.draw(integers(bits))
    found = operation(operator, INTEGER if bits == 32 else BIGINT)(left, right)
    assert -(1 << (bits - 1)) <= found < 1 << (bits - 1)
    assert (found - EXACT[operator](left, right)) % (1 << bits) == 0


@given(integers(64), integers(64).filter(bool))
def test_quotient_and_remainder_belong_together(left: int, right: int) -> None:
    quotient = operation(ArithmeticOperator.DIVIDE, BIGINT)(left, right)
    remainder = operation(ArithmeticOperator.MODULUS, BIGINT)(left, right)
    assert abs(remainder) < abs(right)
    assert remainder == 0 or (remainder < 0) == (left < 0)
    assert (quotient * right + remainder - left) % (1 << 64) == 0


@st.composite
def typed_decimals(draw: st.DrawFn) -> tuple[DecimalType, Decimal]:
    precision = draw(st.integers(1, 40))
    scale = draw(st.integers(0, precision))
    unscaled = draw(st.integers(-(10**precision) + 1, 10**precision - 1))
    return DecimalType(precision, scale), Decimal(unscaled).scaleb(-scale, _WIDE)


_WIDE = Context(prec=200)


@given(typed_decimals(), typed_decimals(), st.sampled_from(list(EXACT)))
def test_decimals_are_exact_or_fail(
    left: tuple[DecimalType, Decimal], right: tuple[DecimalType, Decimal], operator: ArithmeticOperator
) -> None:
    written = ast.Arithmetic(ast.ArithmeticOperator(operator.value), ast.NullLiteral(), ast.NullLiteral())
    typed = typed_arithmetic(written, ColumnAt(left[0], 0), ColumnAt(right[0], 1))
    assert isinstance(typed, Arithmetic)
    of = typed.type
    assert isinstance(of, DecimalType)
    try:
        found = operation(operator, of)(left[1], right[1])
    except ExpressionError:
        assert operator is ArithmeticOperator.DIVIDE
        return
    assert Fraction(found) == EXACT[operator](Fraction(left[1]), Fraction(right[1]))
    assert -int(found.as_tuple().exponent) == of.scale
    assert len(found.as_tuple().digits) <= max(of.precision, 1)


@given(typed_decimals(), typed_decimals())
def test_fitting_rounds_half_up_or_fails(
    value: tuple[DecimalType, Decimal], target: tuple[DecimalType, Decimal]
) -> None:
    of = target[0]
    try:
        found = fit_decimal(value[1], of)
    except ExpressionError:
        assert abs(value[1]) >= Decimal(10) ** (of.precision - of.scale) - Decimal("0.5").scaleb(-of.scale, _WIDE)
        return
    assert -int(found.as_tuple().exponent) == of.scale
    assert abs(Fraction(found) - Fraction(value[1])) <= Fraction(1, 2 * 10**of.scale)


@given(st.integers(-4_000_000, 4_000_000))
def test_days_and_dates_agree(days: int) -> None:
    year, month, day = date_of(days)
    assert days_of(year, month, day) == days
    assert 1 <= month <= 12
    assert 1 <= day <= 31


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_timestamps_survive_their_text(ms: int) -> None:
    assert parse_timestamp(timestamp_text(ms)) == ms
    pattern = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"
    assert parse_by_pattern(format_timestamp(ms, pattern, "UTC", zone("UTC")), pattern, zone("UTC")) == ms


@given(st.text(), st.text())
def test_texts_are_ordered_by_code_units(left: str, right: str) -> None:
    one, other = (text.encode("utf-16-be", "surrogatepass") for text in (left, right))
    assert utf16_order(left, right) == (one > other) - (one < other)


@given(st.text("ab"), st.text("ab%_"))
def test_like_agrees_with_a_simple_matcher(value: str, pattern: str) -> None:
    assert like(value, pattern, None) is _is_like(value, pattern)


def _is_like(value: str, pattern: str) -> bool:
    """Which prefixes of the value match each prefix of the pattern."""
    matched = {0}
    for mark in pattern:
        if mark == "%":
            matched = set(range(min(matched), len(value) + 1)) if matched else set()
        else:
            matched = {at + 1 for at in matched if at < len(value) and mark in ("_", value[at])}
    return len(value) in matched
