"""Values of rows as the JSON of query results: exact numbers, readable times. Start at `row_writer`."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
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
    Row,
    SqlType,
    StructType,
)
from moldau.pipeline.cores.sql.time.calendar import date_text, time_text, timestamp_text

__all__ = ["row_writer", "type_text"]

Write = Callable[[Any], str]


def row_writer(types: Sequence[SqlType]) -> Callable[[Row], str]:
    """A function that writes a row of these types as a JSON array."""
    writers = [_or_null(_writer(sql_type)) for sql_type in types]

    def write(row: Row) -> str:
        return "[" + ",".join([write(value) for write, value in zip(writers, row, strict=True)]) + "]"

    return write


def type_text(sql_type: SqlType) -> str:
    """A type as `columnTypes` names it: field names are quoted only where that is needed."""
    match sql_type:
        case ArrayType():
            return f"ARRAY<{type_text(sql_type.element)}>"
        case MapType():
            return f"MAP<{type_text(sql_type.key)}, {type_text(sql_type.value)}>"
        case StructType():
            fields = ", ".join(f"`{field.name}` {type_text(field.type)}" for field in sql_type.fields)
            return f"STRUCT<{fields}>"
        case _:
            return str(sql_type)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _double(value: float) -> str:
    return java_double_text(value) if math.isfinite(value) else f'"{java_double_text(value)}"'


_WRITERS: dict[SqlType, Write] = {
    BOOLEAN: lambda value: "true" if value else "false",
    INTEGER: str,
    BIGINT: str,
    DOUBLE: _double,
    STRING: _text,
    BYTES: lambda value: f'"{base64.b64encode(value).decode()}"',
    DATE: lambda value: f'"{date_text(value)}"',
    TIME: lambda value: f'"{time_text(value)}"',
    TIMESTAMP: lambda value: f'"{timestamp_text(value)}"',
}


def _or_null(write: Write) -> Write:
    return lambda value: "null" if value is None else write(value)


def _writer(sql_type: SqlType) -> Write:
    match sql_type:
        case DecimalType():
            return plain_decimal_text
        case ArrayType():
            element = _or_null(_writer(sql_type.element))
            return lambda value: "[" + ",".join(map(element, value)) + "]"
        case MapType():
            inner = _or_null(_writer(sql_type.value))
            return lambda value: "{" + ",".join(f"{_text(str(key))}:{inner(one)}" for key, one in value.items()) + "}"
        case StructType():
            return _struct_writer(sql_type)
        case _:
            write: Write = _WRITERS[sql_type]
            return write


def _struct_writer(sql_type: StructType) -> Write:
    fields = [(_text(field.name), _or_null(_writer(field.type))) for field in sql_type.fields]
    return lambda value: (
        "{" + ",".join(f"{name}:{write(one)}" for (name, write), one in zip(fields, value, strict=True)) + "}"
    )
