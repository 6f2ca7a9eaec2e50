"""Writes typed rows as JSON: names as in the schema, nulls explicit, numbers as Java prints them.

The fast writer takes dicts; what it would print differently (doubles in Java's notation, decimals) is handed to it as
ready text. Start at `json_writer`.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import orjson

from moldau.core.java_numbers import java_double_text, plain_decimal_text
from moldau.formats.columns import Column
from moldau.formats.errors import RowError
from moldau.formats.types import BYTES, DOUBLE, ArrayType, DecimalType, MapType, SqlType, StructType

__all__ = ["json_writer"]

Write = Callable[[Any], Any]


def json_writer(columns: tuple[Column, ...], *, is_bare: bool) -> Callable[[Any], bytes | None]:
    """A function from a row to a JSON document; a bare null has no document. It raises `RowError`."""
    dumps = orjson.dumps
    if is_bare:
        inner = _writer(columns[0].type)
        convert: Write = lambda row: row[0] if inner is None or row[0] is None else inner(row[0])  # noqa: E731
    else:
        convert = _object_writer([(column.name, column.type) for column in columns])

    def write(row: Any) -> bytes | None:
        try:
            document = convert(row)
            return None if document is None else dumps(document)
        except (TypeError, ValueError, AttributeError) as error:
            raise RowError(f"the row cannot be written as JSON: {error}") from None

    return write


def _writer(sql_type: SqlType) -> Write | None:
    """How a value that is not null is handed to the fast writer; `None` if as it is."""
    match sql_type:
        case DecimalType():
            return lambda value: orjson.Fragment(plain_decimal_text(value))
        case ArrayType(element):
            return _array_writer(_writer(element))
        case MapType(_, value):
            return _map_writer(_writer(value))
        case StructType(fields):
            return _object_writer([(field.name, field.type) for field in fields])
    if sql_type == DOUBLE:
        return _double
    return (lambda value: b64encode(value).decode()) if sql_type == BYTES else None


def _double(value: float) -> Any:
    if 1e-3 <= value < 1e7 or -1e7 < value <= -1e-3:
        return value
    text = java_double_text(value)
    return orjson.Fragment(text) if math.isfinite(value) else text


def _array_writer(inner: Write | None) -> Write | None:
    if inner is None:
        return None
    return lambda items: [None if item is None else inner(item) for item in items]


def _map_writer(inner: Write | None) -> Write:
    def write(entries: Any) -> Any:
        if inner is not None:
            entries = {key: None if value is None else inner(value) for key, value in entries.items()}
        if None in entries:
            # An object has no place for a null key but its name.
            entries = {"null" if key is None else key: value for key, value in entries.items()}
        return entries

    return write


_IN_RANGE = "v{0} is None or 0.001 <= v{0} < 1e7 or -1e7 < v{0} <= -0.001"


def _object_writer(fields: list[tuple[str, SqlType]]) -> Write:
    """A writer of tuples as objects; its code is made for the number and types of fields."""
    indexes = range(len(fields))
    lines = ["def write(row):"]
    if fields:
        lines.append(f"    {''.join(f'v{index}, ' for index in indexes)}= row")
    scope: dict[str, Any] = {}
    for index, (name, sql_type) in enumerate(fields):
        scope[f"n{index}"] = name
        inner = _writer(sql_type)
        if inner is not None:
            scope[f"w{index}"] = inner
            condition = f"not ({_IN_RANGE.format(index)})" if sql_type == DOUBLE else f"v{index} is not None"
            lines += [f"    if {condition}:", f"        v{index} = w{index}(v{index})"]
    lines.append(f"    return {{{', '.join(f'n{index}: v{index}' for index in indexes)}}}")
    exec("\n".join(lines), scope)
    write: Write = scope["write"]
    return write
