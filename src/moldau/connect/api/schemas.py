"""Schemas of keys and values, and short ways to write them down.

A schema is a `DataSchema` of `moldau.formats`, with Connect's name, version, default and parameters. Values:

| schema | Python value |
|---|---|
| int8 to int64 | int |
| float32, float64 | float |
| boolean, string, bytes | bool, str, bytes |
| array, map | list, dict |
| struct | dict by field name; a field that is missing is null or has its default |
| Decimal | decimal.Decimal |
| Date, Time, Timestamp | int: days since the epoch, milliseconds of the day, milliseconds since the epoch |

Data without a schema are the same values, and `datetime.datetime` (UTC) for what Java's converters call a `Date`.
Start at `struct` and `optional`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from moldau.formats.registry.data_schema import (
    DATE as DATE_NAME,
)
from moldau.formats.registry.data_schema import (
    DECIMAL as DECIMAL_NAME,
)
from moldau.formats.registry.data_schema import (
    NO_DEFAULT,
    DataField,
    DataSchema,
    Kind,
)
from moldau.formats.registry.data_schema import (
    TIME as TIME_NAME,
)
from moldau.formats.registry.data_schema import (
    TIMESTAMP as TIMESTAMP_NAME,
)

__all__ = [
    "BOOLEAN",
    "BYTES",
    "DATE",
    "DATE_NAME",
    "DECIMAL_NAME",
    "FLOAT32",
    "FLOAT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "NO_DEFAULT",
    "STRING",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMP_NAME",
    "TIME_NAME",
    "DataField",
    "DataSchema",
    "Kind",
    "array",
    "decimal",
    "field_schema",
    "map_of",
    "optional",
    "struct",
    "with_default",
]

INT8: Final = DataSchema(Kind.INT8)
INT16: Final = DataSchema(Kind.INT16)
INT32: Final = DataSchema(Kind.INT32)
INT64: Final = DataSchema(Kind.INT64)
FLOAT32: Final = DataSchema(Kind.FLOAT32)
FLOAT64: Final = DataSchema(Kind.FLOAT64)
BOOLEAN: Final = DataSchema(Kind.BOOLEAN)
STRING: Final = DataSchema(Kind.STRING)
BYTES: Final = DataSchema(Kind.BYTES)
DATE: Final = DataSchema(Kind.INT32, name=DATE_NAME, version=1)
TIME: Final = DataSchema(Kind.INT32, name=TIME_NAME, version=1)
TIMESTAMP: Final = DataSchema(Kind.INT64, name=TIMESTAMP_NAME, version=1)


def optional(schema: DataSchema) -> DataSchema:
    """The same schema, for values that may be null."""
    return replace(schema, is_optional=True)


def with_default(schema: DataSchema, default: Any) -> DataSchema:
    """The same schema, with the value that stands for a missing one."""
    return replace(schema, default=default)


def decimal(scale: int, precision: int | None = None) -> DataSchema:
    """Exact numbers with `scale` digits after the point."""
    parameters = {"scale": str(scale)}
    if precision is not None:
        parameters["connect.decimal.precision"] = str(precision)
    return DataSchema(Kind.BYTES, name=DECIMAL_NAME, version=1, parameters=parameters)


def array(element: DataSchema) -> DataSchema:
    """Lists of elements."""
    return DataSchema(Kind.ARRAY, value=element)


def map_of(key: DataSchema, value: DataSchema) -> DataSchema:
    """Maps from keys to values."""
    return DataSchema(Kind.MAP, key=key, value=value)


def struct(fields: Mapping[str, DataSchema], *, name: str | None = None, version: int | None = None) -> DataSchema:
    """Structs with these fields, in this order."""
    return DataSchema(
        Kind.STRUCT,
        name=name,
        version=version,
        fields=tuple(DataField(field, schema) for field, schema in fields.items()),
    )


def field_schema(schema: DataSchema, name: str) -> DataSchema | None:
    """The schema of a struct's field, None if it has none of that name."""
    for field in schema.fields:
        if field.name == name:
            return field.schema
    return None
