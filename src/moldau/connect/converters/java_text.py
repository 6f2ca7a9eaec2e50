"""Values as the texts that Java's `toString` and Connect's `Values.convertToString` give them.

Two functions, because the two differ: `to_java_string` is what a file sink or the string converter writes,
`to_values_string` what headers and casts to string get. Start at either.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from moldau.connect.api.schemas import DATE_NAME, TIME_NAME, TIMESTAMP_NAME
from moldau.core.java_numbers import java_decimal_text, java_double_text
from moldau.formats.registry.data_schema import DataSchema, Kind

__all__ = ["date_of_logical", "float32_text", "logical_text", "to_java_string", "to_values_string"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
LOGICAL_TIMES = (DATE_NAME, TIME_NAME, TIMESTAMP_NAME)


def date_of_logical(name: str | None, value: Any) -> datetime:
    """The moment that a Date, Time or Timestamp stands for."""
    if isinstance(value, datetime):
        return value
    if name == DATE_NAME:
        return EPOCH + timedelta(days=value)
    return EPOCH + timedelta(milliseconds=value)


def float32_text(value: float) -> str:
    """A 32-bit float as Java prints it."""
    if not math.isfinite(value):
        return java_double_text(value)
    (narrow,) = struct.unpack(">f", struct.pack(">f", value))
    for digits in range(1, 10):
        short = float(f"{narrow:.{digits}g}")
        if struct.pack(">f", short) == struct.pack(">f", narrow):
            return java_double_text(short)
    return java_double_text(narrow)


def to_java_string(schema: DataSchema | None, value: Any) -> str:
    """What `value.toString()` gives in Java; bytes are read as UTF-8, for which Java prints an address."""
    match value:
        case None:
            return "null"
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            if schema is not None and schema.name in LOGICAL_TIMES:
                return _java_date(date_of_logical(schema.name, value))
            return str(value)
        case float():
            is_narrow = schema is not None and schema.kind is Kind.FLOAT32
            return float32_text(value) if is_narrow else java_double_text(value)
        case Decimal():
            return java_decimal_text(value)
        case bytes() | bytearray() | memoryview():
            return bytes(value).decode("utf-8", "replace")
        case datetime():
            return _java_date(value)
        case Mapping():
            return _container_text(schema, value)
        case list() | tuple():
            element = schema.value if schema is not None else None
            return f"[{', '.join(to_java_string(element, one) for one in value)}]"
    return str(value)


def _container_text(schema: DataSchema | None, value: Mapping[Any, Any]) -> str:
    if schema is not None and schema.kind is Kind.STRUCT:
        fields = [
            f"{field.name}={to_java_string(field.schema, value[field.name])}"
            for field in schema.fields
            if value.get(field.name) is not None
        ]
        return f"Struct{{{','.join(fields)}}}"
    key_schema, value_schema = (None, None) if schema is None else (schema.key, schema.value)
    entries = [f"{to_java_string(key_schema, key)}={to_java_string(value_schema, one)}" for key, one in value.items()]
    return f"{{{', '.join(entries)}}}"


def _java_date(moment: datetime) -> str:
    at = moment.astimezone(UTC)
    return f"{_DAYS[at.weekday()]} {_MONTHS[at.month - 1]} {at:%d %H:%M:%S} UTC {at.year:04d}"


def logical_text(name: str | None, value: Any) -> str:
    """A Date, Time or Timestamp in ISO 8601, as `Values` writes them: UTC, with milliseconds."""
    at = date_of_logical(name, value).astimezone(UTC)
    if name == DATE_NAME:
        return f"{at.year:04d}-{at:%m-%d}"
    clock = f"{at:%H:%M:%S}.{at.microsecond // 1000:03d}Z"
    return clock if name == TIME_NAME else f"{at.year:04d}-{at:%m-%d}T{clock}"


def to_values_string(schema: DataSchema | None, value: Any, *, embedded: bool = False) -> str:
    """What `Values.convertToString` gives: JSON-like arrays and maps, ISO dates, base64 of bytes."""
    match value:
        case str():
            if not embedded:
                return value
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            return f'"{escaped}"'
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(bytes(value)).decode()
        case int() if not isinstance(value, bool) and schema is not None and schema.name in LOGICAL_TIMES:
            return logical_text(schema.name, value)
        case datetime():
            return _loose_date(value)
        case date() | time():
            return value.isoformat()
        case Mapping() if schema is None or schema.kind is Kind.MAP:
            key_schema, value_schema = (None, None) if schema is None else (schema.key, schema.value)
            entries = [
                f"{to_values_string(key_schema, key, embedded=True)}:"
                f"{to_values_string(value_schema, one, embedded=True)}"
                for key, one in value.items()
            ]
            return f"{{{','.join(entries)}}}"
        case list() | tuple():
            element = schema.value if schema is not None else None
            return f"[{','.join(to_values_string(element, one, embedded=True) for one in value)}]"
    return to_java_string(schema, value)


def _loose_date(moment: datetime) -> str:
    """`Values` looks at how far a `java.util.Date` is from the epoch: a time, a date or both."""
    millis = (moment - EPOCH) // timedelta(milliseconds=1)
    day_ms = 86_400_000
    if 0 <= millis < day_ms:
        return logical_text(TIME_NAME, millis)
    if millis % day_ms == 0:
        return logical_text(DATE_NAME, millis // day_ms)
    return logical_text(TIMESTAMP_NAME, millis)
