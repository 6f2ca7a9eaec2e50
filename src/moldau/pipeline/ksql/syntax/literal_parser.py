"""The rule of literals: numbers with their ranges, texts, TRUE, FALSE, NULL; and of the whole numbers of clauses."""

from __future__ import annotations

import decimal
import math
from typing import Final, NoReturn

from moldau.pipeline.ksql.syntax.cursor import Cursor
from moldau.pipeline.ksql.syntax.errors import excerpt
from moldau.pipeline.ksql.syntax.expressions import (
    BooleanLiteral,
    DecimalLiteral,
    DoubleLiteral,
    IntegerLiteral,
    Location,
    LongLiteral,
    NullLiteral,
    StringLiteral,
)
from moldau.pipeline.ksql.syntax.statements import Literal
from moldau.pipeline.ksql.syntax.tokens import DECIMAL_VALUE, FLOATING_POINT_VALUE, INTEGER_VALUE, TEXT

__all__ = ["NUMBER_KINDS", "decimal_literal", "parse_literal", "parse_number", "parse_whole_number"]

NUMBER_KINDS: Final = frozenset({INTEGER_VALUE, DECIMAL_VALUE, FLOATING_POINT_VALUE})

_EXACT: Final = decimal.Context(prec=decimal.MAX_PREC, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
_INT_LIMIT: Final = 2**31
_LONG_LIMIT: Final = 2**63
_LONGEST_LONG: Final = len(str(_LONG_LIMIT))
_MOST_DECIMAL_DIGITS: Final = 10_000
"""More digits than any column holds; a limit, because arithmetic on decimals takes more than linear time, and because
`DECIMAL '1E999999999'` is short."""


def parse_literal(cursor: Cursor) -> Literal:
    """Read a value that is written out."""
    location, kind = cursor.location(), cursor.kind
    if kind == TEXT:
        return StringLiteral(cursor.string(), location=location)
    if kind == "-" or kind in NUMBER_KINDS:
        return parse_number(cursor)
    if kind not in ("NULL", "TRUE", "FALSE"):
        cursor.fail_near()
    cursor.advance()
    return NullLiteral(location=location) if kind == "NULL" else BooleanLiteral(kind == "TRUE", location=location)


def parse_number(cursor: Cursor) -> IntegerLiteral | LongLiteral | DecimalLiteral | DoubleLiteral:
    """Read a number; its sign is part of it."""
    location = cursor.location()
    sign = "-" if cursor.accept("-") else ""
    kind, text = cursor.kind, sign + cursor.text()
    if kind not in NUMBER_KINDS:
        cursor.fail_near()
    cursor.advance()
    if kind == INTEGER_VALUE:
        return _integer_literal(cursor, text, location)
    if kind == DECIMAL_VALUE:
        return decimal_literal(cursor, text, location)
    value = float(text)
    if math.isinf(value):
        _refuse_number(cursor, f"Number overflows DOUBLE: {excerpt(text)}", location)
    return DoubleLiteral(value, location=location)


def _integer_literal(cursor: Cursor, text: str, location: Location) -> IntegerLiteral | LongLiteral:
    digits = text.lstrip("-0")
    value = int(text) if len(digits) <= _LONGEST_LONG and len(text) < _MOST_DECIMAL_DIGITS else _LONG_LIMIT
    if -_INT_LIMIT <= value < _INT_LIMIT:
        return IntegerLiteral(value, location=location)
    if not -_LONG_LIMIT <= value < _LONG_LIMIT:
        _refuse_number(cursor, f"Invalid numeric literal: {excerpt(text)}", location)
    return LongLiteral(value, location=location)


def decimal_literal(cursor: Cursor, text: str, location: Location) -> DecimalLiteral:
    """The literal for the text of a decimal number."""
    try:
        value = _EXACT.create_decimal(text) if len(text) <= _MOST_DECIMAL_DIGITS else None
    except decimal.InvalidOperation:
        value = None
    if value is None or not value.is_finite() or abs(value.adjusted()) > _MOST_DECIMAL_DIGITS:
        _refuse_number(cursor, f"Invalid numeric literal: {excerpt(text)}", location)
    return DecimalLiteral(
        decimal.Decimal(format(value, "f")), location=location
    )  # no exponent: scales are not negative


def _refuse_number(cursor: Cursor, reason: str, location: Location) -> NoReturn:
    # ksqlDB counts the column of a number from one twice; clients compare the text.
    reason = f"line {location.line}:{location.column + 1}: {reason}"
    cursor.refuse_prepared(reason, at_fault=location)


def parse_whole_number(cursor: Cursor, command: str) -> int:
    """Read the number of a clause such as LIMIT; it may be negative, which the clause's user refuses."""
    if cursor.kind != "-" and cursor.kind not in NUMBER_KINDS:
        cursor.fail_expecting("-", INTEGER_VALUE, DECIMAL_VALUE, FLOATING_POINT_VALUE)
    location = cursor.location()
    number = parse_number(cursor)
    if not isinstance(number, IntegerLiteral):
        cursor.refuse_prepared(f"Value must be integer for command: {command}", at_fault=location)
    return number.value
