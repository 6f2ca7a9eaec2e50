"""Whatever the double: the digits that Java prints stand for the same double, and are plain where Java's are."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from moldau.core.java_numbers import java_double_text, parse_java_double, wrap_int


@given(st.floats(allow_nan=False))
def test_printed_doubles_are_read_as_the_same_doubles(value: float) -> None:
    text = java_double_text(value)
    assert parse_java_double(text) == value
    assert ("E" in text) == (value != 0 and abs(value) != float("inf") and not 1e-3 <= abs(value) < 1e7)


@given(st.integers(-1074, 1023), st.integers(-2, 2))
def test_powers_of_two_and_their_neighbours_are_read_as_the_same_doubles(power: int, steps: int) -> None:
    value = 2.0**power * (1 + steps * 2.0**-52)
    assert float(java_double_text(value)) == value


@given(st.decimals(allow_nan=False, allow_infinity=False), st.sampled_from([32, 64]))
def test_big_numbers_wrap_as_their_whole_parts_do(value: Decimal, bits: int) -> None:
    if abs(value.adjusted()) < 300:
        whole = int(value)
        assert (wrap_int(value, bits) - whole) % 2**bits == 0
        assert wrap_int(value, bits) == wrap_int(whole, bits)
