"""Conversions between types: which casts there are, and the function of each.

A converter takes a value that is not None and raises ExpressionError where that value has no counterpart. Texts of
composed values look as Java prints collections. Start at `converter`.
"""

from __future__ import annotations

import base64
import binascii
import decimal
import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

from moldau.core.java_numbers import java_double_text, plain_decimal_text
from moldau.formats.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    MapType,
    SqlType,
    StructType,
    Value,
)
from moldau.pipeline.cores.sql.arithmetic import (
    EXACT,
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    double_to_integer,
    fit_decimal,
    without_negative_zero,
    wrap_int,
    wrap_long,
)
from moldau.pipeline.cores.sql.failures import ExpressionError
from moldau.pipeline.cores.sql.map_order import in_java_order
from moldau.pipeline.cores.sql.time import calendar

__all__ = ["Converter", "converter", "parse_decimal", "text_of"]

Converter = Callable[[Any], Value]

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,9})?", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d{1,40}", re.ASCII)


def converter(source: SqlType, target: SqlType) -> Converter | None:
    """The function that casts values of one type to another, None if there is no such cast."""
    if source == target:
        return _same
    if target == STRING:
        return text_of(source)
    if isinstance(target, DecimalType):
        return _to_decimal(source, target)
    if isinstance(source, DecimalType):
        return _FROM_DECIMAL.get(target)
    composed = _composed_converter(source, target)
    return composed if composed is not None else _SIMPLE.get((source, target))


def _same(value: Value) -> Value:
    return value


# --- to text -------------------------------------------------------------------------------------------------


def text_of(source: SqlType) -> Converter | None:
    """The function that gives the text of values of a type; BYTES have none, alone or inside others."""
    match source:
        case DecimalType():
            return plain_decimal_text
        case ArrayType():
            return _list_text(source)
        case MapType():
            return _map_text(source)
        case StructType():
            return _struct_text(source)
    return _TEXTS.get(source)


def _or_null(text: Converter) -> Callable[[Value], str]:
    return lambda value: "null" if value is None else str(text(value))


def _list_text(source: ArrayType) -> Converter | None:
    element = text_of(source.element)
    if element is None:
        return None
    shown = _or_null(element)
    return lambda values: f"[{', '.join(map(shown, values))}]"


def _map_text(source: MapType) -> Converter | None:
    key, value = text_of(source.key), text_of(source.value)
    if key is None or value is None:
        return None
    key_text, value_text = _or_null(key), _or_null(value)
    return lambda entries: "{" + ", ".join(f"{key_text(k)}={value_text(v)}" for k, v in in_java_order(entries)) + "}"


def _struct_text(source: StructType) -> Converter | None:
    texts = [text_of(field.type) for field in source.fields]
    if None in texts:
        return None
    named = [(field.name, text) for field, text in zip(source.fields, texts, strict=True) if text is not None]

    def struct_text(values: tuple[Value, ...]) -> str:
        parts = [
            f"{name}={text(value)}" for (name, text), value in zip(named, values, strict=False) if value is not None
        ]
        return f"Struct{{{','.join(parts)}}}"

    return struct_text


_TEXTS: dict[SqlType, Converter] = {
    BOOLEAN: lambda value: "true" if value else "false",
    INTEGER: str,
    BIGINT: str,
    DOUBLE: java_double_text,
    STRING: _same,
    DATE: calendar.date_text,
    TIME: calendar.time_text,
    TIMESTAMP: calendar.timestamp_text,
}


# --- from text -----------------------------------------------------------------------------------------------


def _boolean_of_text(text: str) -> bool:
    lowered = text.lower()
    return bool(lowered) and ("true".startswith(lowered) or "yes".startswith(lowered))


def _integer_of_text(text: str, low: int, high: int) -> int:
    stripped = text.strip()
    if _INTEGER.fullmatch(stripped) and low <= (number := int(stripped)) <= high:
        return number
    raise ExpressionError(f'For input string: "{text}"')


def _double_of_text(text: str) -> float:
    stripped = text.strip()
    if not _NUMBER.fullmatch(stripped):
        raise ExpressionError(f'For input string: "{text}"')
    return float(stripped)


def parse_decimal(text: str) -> Decimal:
    """A number with the digits written; raises ExpressionError for other texts."""
    stripped = text.strip()
    if not _NUMBER.fullmatch(stripped):
        raise ExpressionError(f'"{text}" is not a number')
    return without_negative_zero(EXACT.create_decimal(stripped))


def _bytes_of_text(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ExpressionError("a string that is cast to BYTES must be base64, and this one is not") from None


# --- numbers -------------------------------------------------------------------------------------------------


def _to_decimal(source: SqlType, target: DecimalType) -> Converter | None:
    if isinstance(source, DecimalType):
        return partial(fit_decimal, target=target)
    if source in (INTEGER, BIGINT):
        return lambda value: fit_decimal(Decimal(value), target)
    if source == STRING:
        return lambda value: fit_decimal(parse_decimal(value), target)
    return _double_to_decimal(target) if source == DOUBLE else None


def _double_to_decimal(target: DecimalType) -> Converter:
    rounding = decimal.Context(prec=min(target.precision, 2000), rounding=decimal.ROUND_HALF_UP)

    def convert(value: float) -> Decimal:
        if not math.isfinite(value):
            raise ExpressionError(f"{java_double_text(value)} cannot be a DECIMAL")
        return fit_decimal(rounding.create_decimal(value), target)

    return convert


_FROM_DECIMAL: dict[SqlType, Converter] = {
    INTEGER: lambda value: wrap_int(int(value)),
    BIGINT: lambda value: wrap_long(int(value)),
    DOUBLE: float,
}

_SIMPLE: dict[tuple[SqlType, SqlType], Converter] = {
    (INTEGER, BIGINT): _same,
    (INTEGER, DOUBLE): float,
    (BIGINT, INTEGER): wrap_int,
    (BIGINT, DOUBLE): float,
    (DOUBLE, INTEGER): partial(double_to_integer, low=INT_MIN, high=INT_MAX),
    (DOUBLE, BIGINT): partial(double_to_integer, low=LONG_MIN, high=LONG_MAX),
    (STRING, BOOLEAN): _boolean_of_text,
    (STRING, INTEGER): partial(_integer_of_text, low=INT_MIN, high=INT_MAX),
    (STRING, BIGINT): partial(_integer_of_text, low=LONG_MIN, high=LONG_MAX),
    (STRING, DOUBLE): _double_of_text,
    (STRING, BYTES): _bytes_of_text,
    (STRING, DATE): calendar.parse_date,
    (STRING, TIME): calendar.parse_time,
    (STRING, TIMESTAMP): calendar.parse_timestamp,
    (TIMESTAMP, DATE): lambda ms: ms // calendar.MS_PER_DAY,
    (TIMESTAMP, TIME): lambda ms: ms % calendar.MS_PER_DAY,
    (DATE, TIMESTAMP): lambda days: days * calendar.MS_PER_DAY,
}


# --- composed values -----------------------------------------------------------------------------------------


def _composed_converter(source: SqlType, target: SqlType) -> Converter | None:
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return _convert_list(converter(source.element, target.element))
    if isinstance(source, MapType) and isinstance(target, MapType):
        return _convert_map(converter(source.key, target.key), converter(source.value, target.value))
    if isinstance(source, StructType) and isinstance(target, StructType):
        return _convert_struct(source, target)
    return None


def _convert_list(element: Converter | None) -> Converter | None:
    if element is None:
        return None
    return lambda values: [None if value is None else element(value) for value in values]


def _convert_map(key: Converter | None, value: Converter | None) -> Converter | None:
    if key is None or value is None:
        return None
    return lambda entries: {None if k is None else key(k): None if v is None else value(v) for k, v in entries.items()}


def _convert_struct(source: StructType, target: StructType) -> Converter | None:
    steps: list[tuple[int, Converter] | None] = []
    for field in target.fields:
        position = source.position(field.name)
        if position is None:
            steps.append(None)
            continue
        convert = converter(source.fields[position].type, field.type)
        if convert is None:
            return None
        steps.append((position, convert))

    def convert_struct(values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(None if step is None or (value := values[step[0]]) is None else step[1](value) for step in steps)

    return convert_struct
