from __future__ import annotations

from decimal import Decimal

import pytest

from moldau.core.java_numbers import (
    java_double_text,
    parse_java_decimal,
    parse_java_double,
    parse_java_int,
    plain_decimal_text,
    wrap_int,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (9999999.5, "9999999.5"),
        (1e7, "1.0E7"),
        (-123456789.0, "-1.23456789E8"),
        (1e21, "1.0E21"),
        (-0.0, "-0.0"),
        (5e-324, "4.9E-324"),
        (2.0**62, "4.6116860184273879E18"),
        (-2.75839277068998816e17, "-2.75839277068998816E17"),
        (2.0**-72, "2.1175823681357508E-22"),
        (1e23, "9.999999999999999E22"),
        (1600000000000.0, "1.6E12"),
        (9.5e-7, "9.5E-7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_are_printed_as_java_prints_them(value: float, text: str) -> None:
    assert java_double_text(value) == text


@pytest.mark.parametrize("text", ["", " 1", "1 ", "1_000", "1.0", "٣", "0x10", "--1", "2147483648", "9" * 5000])
def test_what_java_does_not_parse_as_int_is_no_int(text: str) -> None:
    with pytest.raises(ValueError):
        parse_java_int(text, 32)


def test_ints_may_have_a_sign() -> None:
    assert [parse_java_int(text, 32) for text in ("+5", "-2147483648", "007")] == [5, -(2**31), 7]


@pytest.mark.parametrize(("text", "value"), [(" 1.5 ", 1.5), ("1e3", 1000.0), (".5", 0.5), ("5.", 5.0), ("1d", 1.0)])
def test_doubles_are_parsed_as_java_parses_them(text: str, value: float) -> None:
    assert parse_java_double(text) == value


@pytest.mark.parametrize("text", ["", "inf", "nan", "1_0", "one", "1e", "9" * 5000])
def test_what_java_does_not_parse_as_double_is_no_double(text: str) -> None:
    with pytest.raises(ValueError):
        parse_java_double(text)


def test_decimals_are_parsed_exactly() -> None:
    assert str(parse_java_decimal("10.1234512345123451234000")) == "10.1234512345123451234000"
    with pytest.raises(ValueError):
        parse_java_decimal("NaN")


def test_plain_text_keeps_zeros_and_refuses_a_gigabyte_of_them() -> None:
    assert plain_decimal_text(Decimal("1.500")) == "1.500"
    assert plain_decimal_text(Decimal("1E+3")) == "1000"
    assert plain_decimal_text(Decimal("-0E-2")) == "0.00"
    with pytest.raises(ValueError):
        plain_decimal_text(Decimal("1E+999999"))


def test_big_numbers_wrap_to_their_lowest_bits_whatever_their_exponent() -> None:
    assert wrap_int(2**31, 32) == -(2**31)
    assert wrap_int(Decimal("-5.9"), 32) == -5
    assert wrap_int(Decimal("1E+900000"), 64) == 0
    assert wrap_int(Decimal("1E-900000"), 64) == 0
    with pytest.raises(ValueError):
        wrap_int(Decimal("9" * 1_000_000 + ".5"), 64)
