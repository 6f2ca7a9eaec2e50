"""Values of single types from and to their texts and numbers, as all formats share them. Start at `fit_decimal`."""

from __future__ import annotations

import base64
import binascii
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Final

from moldau.core.java_numbers import MAX_PLAIN_ZEROS
from moldau.formats.types import DecimalType

__all__ = ["DAY_MS", "bytes_of_base64", "check_time", "decimal_from_bytes", "decimal_to_bytes", "fit_decimal"]

DAY_MS: Final = 86_400_000
MAX_DECIMAL_BYTES: Final = 4096
"""Longest DECIMAL that is read, about ten thousand digits."""

_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
"""A context that never rounds."""


def fit_decimal(value: Decimal | int, sql_type: DecimalType) -> Decimal:
    """The number with exactly the type's scale; raises `ValueError` if digits would be lost or do not fit.

    Exact and cheap for any exponent: no context, whose precision would round, and no zeros before the check.
    """
    sign, digits, exponent = Decimal(value).as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} does not fit into {sql_type}")
    scale = sql_type.scale
    missing = exponent + scale
    if digits == (0,):
        return Decimal((0, (0,), -scale))
    if missing == 0 and len(digits) <= sql_type.precision:
        return value if isinstance(value, Decimal) else Decimal(value)
    if missing < 0:
        # Digits beyond the scale may go only if they are zeros.
        if any(digits[missing:]) or -missing >= len(digits):
            raise ValueError(_misfit(value, sql_type))
        digits = digits[:missing]
    elif missing > MAX_PLAIN_ZEROS or len(digits) + missing > sql_type.precision:
        raise ValueError(_misfit(value, sql_type))
    else:
        digits = digits + (0,) * missing
    if len(digits) > sql_type.precision:
        raise ValueError(_misfit(value, sql_type))
    return Decimal((sign, digits, -scale))


def _misfit(value: Decimal | int, sql_type: DecimalType) -> str:
    text = str(value)
    short = text if len(text) <= 60 else text[:57] + "..."
    return f"Cannot fit decimal '{short}' into {sql_type} without rounding or overflow"


def decimal_from_bytes(data: bytes, scale: int) -> Decimal:
    """The number whose digits are a big-endian signed integer; raises `ValueError` for one of absurd length."""
    if len(data) > MAX_DECIMAL_BYTES:
        raise ValueError(f"a DECIMAL of {len(data)} bytes is too long")
    return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale, _EXACT)


def decimal_to_bytes(value: Decimal) -> bytes:
    """The digits of a number as the shortest big-endian signed integer; its scale is lost."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    number = int(value.scaleb(-exponent, _EXACT))
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(length, "big", signed=True)


def bytes_of_base64(text: str) -> bytes:
    """The bytes that base64 text stands for; raises `ValueError`."""
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise ValueError("Value is not a valid Base64 encoded string") from None


def check_time(number: int) -> int:
    """Milliseconds of a day; raises `ValueError` for others."""
    if not 0 <= number <= DAY_MS:
        raise ValueError("Time values must use number of milliseconds greater than 0 and less than 86400000.")
    return number
