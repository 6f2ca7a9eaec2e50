"""Numbers as Java prints and parses them, because data and messages of Java programs hold them in that form.

Start at `java_double_text`; `parse_java_int` and `parse_java_double` are the strict readers.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

__all__ = [
    "java_decimal_text",
    "java_double_text",
    "parse_java_decimal",
    "parse_java_double",
    "parse_java_int",
    "plain_decimal_text",
    "wrap_int",
]

MAX_DIGITS = 1000
"""Longest number in characters; the time to convert a text to a number grows faster than its length."""

MAX_PLAIN_ZEROS = 10_000
"""Largest exponent that is written as zeros: `1E+999999999` would be a gigabyte of them."""

_INT = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DOUBLE = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?|(?P<name>[+-]?(?:NaN|Infinity))",
    re.ASCII,
)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,10})?", re.ASCII)


def java_double_text(value: float) -> str:
    """A double as Java's `Double.toString` prints it: plain from 1/1000 up to ten million, else `1.0E10`.

    Outside of the plain range these are the digits of Java up to version 18, which are not always the shortest ones.
    """
    if 1e-3 <= value < 1e7 or -1e7 < value <= -1e-3:
        text = repr(value)
        return text if "e" not in text else f"{value:.4f}".rstrip("0")
    if value == 0:
        return repr(value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    sign, digits, power = "-" if value < 0 else "", *_java_digits(abs(value))
    text = f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"
    # Of the smallest doubles there are few bits, and few digits are not always those of the same double.
    return text if float(text) == value else _shortest_text(value)


def _shortest_text(value: float) -> str:
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{rest}E{exponent + len(digits) - 1}"


def _java_digits(value: float) -> tuple[str, int]:
    """The digits of a positive double and the power of ten of the first one."""
    mantissa, exponent = _binary_parts(value)
    whole_bits = exponent + mantissa.bit_length()
    if whole_bits <= 63 and value.is_integer():
        return _whole_digits(int(value), exponent - 2)
    return _generated_digits(mantissa, exponent, math.floor(_estimated_power(value, whole_bits - 1)))


def _binary_parts(value: float) -> tuple[int, int]:
    """The integer and the power of two that a double is, the integer with all the bits that the double has."""
    fraction, exponent = math.frexp(value)
    bits = max(1, min(53, exponent + 1074))
    return int(math.ldexp(fraction, bits)), exponent - bits


def _whole_digits(number: int, unknown_bits: int) -> tuple[str, int]:
    """Of a whole number: its decimal digits, without those that its lowest bits, which it does not have, would give."""
    dropped = len(str(1 << unknown_bits)) - 1 if unknown_bits > 1 else 0
    if dropped:
        kept, rest = divmod(number, 10**dropped)
        number = kept + (1 if rest >= 10**dropped // 2 else 0)
    text = str(number)
    return text.rstrip("0"), len(text) - 1 + dropped


def _estimated_power(value: float, binary_power: int) -> float:
    """The power of ten of a number, from its power of two and the straight line through its first bits."""
    first = math.frexp(value)[0] * 2
    return (first - 1.5) * 0.289529654 + 0.176091259 + binary_power * 0.301029995663981


def _generated_digits(mantissa: int, exponent: int, power: int) -> tuple[str, int]:
    """Digits one by one, until the next double on either side is further away than what is left.

    All numbers are scaled by the same factor: `rest` is what is left of the value, `unit` one of the current digit,
    `gap` half of the distance to the next double (a quarter for powers of two, whose lower neighbour is closer).
    """
    is_power_of_two = mantissa & (mantissa - 1) == 0
    scale = 2 if is_power_of_two else 1
    gap, rest, unit = 1, 2 * mantissa * scale, 2 * scale
    if exponent >= 0:
        rest, gap = rest << exponent, gap << exponent
    else:
        unit <<= -exponent
    if power >= 0:
        unit *= 10**power
    else:
        rest, gap = rest * 10**-power, gap * 10**-power
    digits: list[int] = []
    digit, rest = divmod(rest, unit)
    rest, gap, ten_units = rest * 10, gap * 10, unit * 10
    is_low, is_high = rest < gap, rest + gap > ten_units
    if digit == 0 and not is_high:
        power -= 1
    else:
        digits.append(digit)
    if power < -3 or power >= 8:
        # A number with an exponent has at least two digits.
        is_low = is_high = False
    while not (is_low or is_high):
        digit, rest = divmod(rest, unit)
        rest, gap = rest * 10, gap * 10
        is_low, is_high = rest < gap, rest + gap > ten_units
        digits.append(digit)
    return _round_digits(digits, power, is_high and (not is_low or _rounds_up(2 * rest - ten_units, digits[-1])))


def _rounds_up(above_half: int, last_digit: int) -> bool:
    return above_half > 0 or (above_half == 0 and last_digit % 2 == 1)


def _round_digits(digits: list[int], power: int, rounds_up: bool) -> tuple[str, int]:
    text = "".join(map(str, digits))
    if rounds_up:
        raised = str(int(text) + 1)
        power += len(raised) - len(str(int(text)))
        text = raised
    return text.rstrip("0") or "0", power


def java_decimal_text(value: Decimal) -> str:
    """A decimal as `BigDecimal.toString` prints it: Python's text, which follows the same rules."""
    return str(value)


def plain_decimal_text(value: Decimal) -> str:
    """A decimal as `BigDecimal.toPlainString` prints it: no exponent, trailing zeros kept, zero without sign."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) > MAX_PLAIN_ZEROS:
        raise ValueError(f"a number with exponent {exponent} cannot be written without it")
    return f"{value:f}" if value else f"{value.copy_abs():f}"


def parse_java_int(text: str, bits: int) -> int:
    """The number that `Integer.parseInt` (32 bits) or `Long.parseLong` (64) reads; raises `ValueError`."""
    if len(text) < 10 and text.isdigit() and text.isascii():
        return int(text)
    if len(text) > MAX_DIGITS or _INT.fullmatch(text) is None:
        raise ValueError(f"{text[:80]!r} is not a whole number")
    number = int(text)
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise ValueError(f"{text[:80]} does not fit into {bits} bits")
    return number


def parse_java_double(text: str) -> float:
    """The number that `Double.parseDouble` reads, without hexadecimal forms; raises `ValueError`."""
    found = _DOUBLE.fullmatch(text.strip()) if len(text) <= MAX_DIGITS else None
    if found is None:
        raise ValueError(f"{text[:80]!r} is not a number")
    return float(found["number"] or found["name"])


def parse_java_decimal(text: str) -> Decimal:
    """The number that `new BigDecimal(text)` reads; raises `ValueError`."""
    if len(text) > MAX_DIGITS or _DECIMAL.fullmatch(text) is None:
        raise ValueError(f"{text[:80]!r} is not a decimal number")
    return Decimal(text)


def wrap_int(number: int | Decimal | float, bits: int) -> int:
    """The lowest bits of a number's whole part as a signed number, as Java's `intValue` and `longValue` of big numbers.

    Any exponent is cheap: ten to the power of 64 and above has only zeros in its lowest 64 bits.
    """
    if isinstance(number, Decimal):
        exponent = number.as_tuple().exponent
        if not isinstance(exponent, int) or exponent >= bits or number.adjusted() < 0:
            return 0
        if number.adjusted() > MAX_DIGITS:
            raise ValueError(f"a number of {number.adjusted() + 1} digits is too long")
    return ((int(number) + (1 << (bits - 1))) & ((1 << bits) - 1)) - (1 << (bits - 1))
