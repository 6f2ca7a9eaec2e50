"""Functions on JSON in texts."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

from moldau.core.java_numbers import java_double_text, plain_decimal_text
from moldau.formats.types import (
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
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
from moldau.pipeline.cores.sql.failures import ExpressionError
from moldau.pipeline.cores.sql.functions.json_text import (
    JsonNumber,
    as_text,
    read_json,
    read_json_strictly,
    write_json,
)
from moldau.pipeline.cores.sql.functions.registry import BUILTIN
from moldau.pipeline.cores.sql.time import calendar

_JSON = "JSON"
_STEP = re.compile(r"\.([^.\[\]]+)|\[\s*(-?\d+)\s*\]|\[\s*['\"]([^'\"]*)['\"]\s*\]")


@lru_cache(maxsize=1024)
def _path(text: str) -> tuple[str | int, ...]:
    """The steps of a path such as `$.a[0].b`."""
    if not text.startswith("$"):
        raise ExpressionError(f"a JSON path starts with $: {text}")
    steps: list[str | int] = []
    at = 1
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            raise ExpressionError(f"cannot read the JSON path {text} from its character {at + 1} on")
        name, index, quoted = found.groups()
        steps.append(int(index) if index is not None else name if name is not None else quoted)
        at = found.end()
    return tuple(steps)


@BUILTIN.scalar("extractjsonfield", "(input STRING, path STRING) -> STRING", category=_JSON)
def extractjsonfield(text: str, path: str) -> str | None:
    """The value at a path such as $.a[0].b in a JSON text; strings without quotes, others as JSON."""
    steps = _path(path)
    value = read_json(text)
    for step in steps:
        if isinstance(step, int):
            if not isinstance(value, list) or not 0 <= step < len(value):
                return None
            value = value[step]
        else:
            if not isinstance(value, dict) or step not in value:
                return None
            value = value[step]
    return as_text(value)


@BUILTIN.scalar("is_json_string", "(input STRING) -> BOOLEAN", category=_JSON, is_strict=False)
def is_json_string(text: str | None) -> bool:
    """Whether a text is JSON."""
    if text is None:
        return False
    try:
        read_json_strictly(text)
    except ExpressionError:
        return False
    return True


def _number_kind(number: JsonNumber) -> str:
    return "DOUBLE" if any(mark in number for mark in ".eE") else "INTEGER"


def _equals(item: Any, value: Value, of: SqlType | None) -> bool:
    if item is None or value is None:
        return item is value
    if isinstance(item, JsonNumber):
        if of is None or of in (STRING, BOOLEAN):
            return False
        if _number_kind(item) == "DOUBLE":
            return of == DOUBLE and float(item) == value
        return of != DOUBLE and not isinstance(of, DecimalType) and int(item) == value
    if isinstance(item, bool):
        return of == BOOLEAN and item == value
    return isinstance(item, str) and of == STRING and item == value


@BUILTIN.scalar(
    "json_array_contains", "(input STRING, value T) -> BOOLEAN", category=_JSON, is_strict=False, is_typed=True
)
def json_array_contains(arguments: Sequence[SqlType | None], result: SqlType) -> Callable[..., bool]:
    """Whether a JSON array holds a value of exactly that type."""
    of = arguments[1]

    def contains(text: str | None, value: Value) -> bool:
        if text is None:
            return False
        try:
            items = read_json(text)
        except ExpressionError:
            return False
        return isinstance(items, list) and any(_equals(item, value, of) for item in items)

    return contains


@BUILTIN.scalar("json_array_length", "(input STRING) -> INTEGER", category=_JSON)
def json_array_length(text: str) -> int | None:
    """How many elements a JSON array has; NULL if the text is none."""
    items = read_json_strictly(text)
    return len(items) if isinstance(items, list) else None


@BUILTIN.scalar("json_concat", "(inputs STRING...) -> STRING", category=_JSON)
def json_concat(*texts: str) -> str | None:
    """Objects merged into one, or else arrays and values one after the other as an array."""
    if not texts:
        return None
    values = [read_json_strictly(text) for text in texts]
    if all(isinstance(value, dict) for value in values):
        merged: dict[str, Any] = {}
        for value in values:
            merged |= value
        return write_json(merged)
    return write_json([item for value in values for item in (value if isinstance(value, list) else [value])])


@BUILTIN.scalar("json_items", "(input STRING) -> ARRAY<STRING>", category=_JSON)
def json_items(text: str) -> list[str] | None:
    """The elements of a JSON array, each as JSON."""
    items = read_json_strictly(text)
    return [write_json(item) for item in items] if isinstance(items, list) else None


@BUILTIN.scalar("json_keys", "(input STRING) -> ARRAY<STRING>", category=_JSON)
def json_keys(text: str) -> list[str] | None:
    """The names in a JSON object."""
    value = read_json_strictly(text)
    return list(value) if isinstance(value, dict) else None


@BUILTIN.scalar("json_records", "(input STRING) -> MAP<STRING, STRING>", category=_JSON)
def json_records(text: str) -> dict[str, str | None] | None:
    """The names and values of a JSON object; strings without quotes, others as JSON."""
    value = read_json_strictly(text)
    if not isinstance(value, dict):
        return None
    return {key: write_json(item) if item is None else as_text(item) for key, item in value.items()}


# --- writing -------------------------------------------------------------------------------------------------


@BUILTIN.scalar("to_json_string", "(value T) -> STRING", category=_JSON, is_strict=False, is_typed=True)
def to_json_string(arguments: Sequence[SqlType | None], result: SqlType) -> Callable[[Value], str]:
    """The JSON text of any value."""
    of = arguments[0]
    return (lambda value: "null") if of is None else _writer(of)


def _double_json(value: float) -> str:
    text = java_double_text(value)
    return text if text[-1].isdigit() else f'"{text}"'


def _writer(of: SqlType) -> Callable[[Any], str]:
    write = _composed_writer(of) or _WRITERS.get(of, str)
    return lambda value: "null" if value is None else write(value)


def _composed_writer(of: SqlType) -> Callable[[Any], str] | None:
    match of:
        case DecimalType():
            return _decimal_json
        case ArrayType():
            element = _writer(of.element)
            return lambda values: f"[{','.join(map(element, values))}]"
        case MapType():
            value_json = _writer(of.value)
            return lambda entries: _object(
                (key if isinstance(key, str) else str(key), value_json(value)) for key, value in entries.items()
            )
        case StructType():
            fields = [(field.name, _writer(field.type)) for field in of.fields]
            return lambda values: _object(
                (name, write(value)) for (name, write), value in zip(fields, values, strict=True)
            )
    return None


def _decimal_json(value: Decimal) -> str:
    return plain_decimal_text(value)


def _object(entries: Any) -> str:
    return "{" + ",".join(f"{encode_basestring(name)}:{text}" for name, text in sorted(entries)) + "}"


_WRITERS: dict[SqlType, Callable[[Any], str]] = {
    BOOLEAN: lambda value: "true" if value else "false",
    DOUBLE: _double_json,
    STRING: encode_basestring,
    BYTES: lambda value: f'"{base64.b64encode(value).decode()}"',
    DATE: lambda value: f'"{calendar.date_text(value)}"',
    TIME: lambda value: f'"{calendar.time_text(value)}"',
    TIMESTAMP: lambda value: f'"{calendar.timestamp_text(value)}"',
}
