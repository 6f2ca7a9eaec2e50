"""Columns from the schemas of a registry, and whether rows of columns can be read from data of a schema.

Start at `columns_of`; `value_reader` converts data of a schema to values of a type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Final

from moldau.core.java_numbers import java_double_text
from moldau.formats.columns import Column
from moldau.formats.errors import FormatError, RowError
from moldau.formats.registry import data_schema as logical
from moldau.formats.registry.data_schema import DataSchema, Kind
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
    Field,
    MapType,
    SqlType,
    StructType,
)
from moldau.formats.values import fit_decimal

__all__ = ["DEFAULT_PRECISION", "columns_of", "each_item", "sql_type_of", "struct_reader", "value_reader"]

DEFAULT_PRECISION: Final = 64
"""The precision of a DECIMAL whose schema names only the scale."""

_PLAIN: Final[Mapping[Kind, SqlType]] = {
    Kind.INT8: INTEGER,
    Kind.INT16: INTEGER,
    Kind.INT32: INTEGER,
    Kind.INT64: BIGINT,
    Kind.FLOAT32: DOUBLE,
    Kind.FLOAT64: DOUBLE,
    Kind.BOOLEAN: BOOLEAN,
    Kind.STRING: STRING,
    Kind.BYTES: BYTES,
}
_LOGICAL: Final[Mapping[tuple[Kind, str], SqlType]] = {
    (Kind.INT32, logical.DATE): DATE,
    (Kind.INT32, logical.TIME): TIME,
    (Kind.INT64, logical.TIMESTAMP): TIMESTAMP,
}


def columns_of(
    schema: DataSchema, *, is_key: bool, is_bare: bool = False, keep_case: bool = False
) -> tuple[Column, ...]:
    """The columns of data with this schema.

    A record's fields are columns, unless it `is_bare`: then, as any other value, it is one column `ROWKEY` or `ROWVAL`.
    `keep_case` keeps the names of the schema; otherwise they are in upper case, so that SQL finds them unquoted.
    Raises `FormatError` for a schema in which nothing can be a column.
    """
    if is_bare or schema.kind is not Kind.STRUCT:
        return (Column("ROWKEY" if is_key else "ROWVAL", sql_type_of(schema, keep_case=keep_case)),)
    found = sql_type_of(schema, keep_case=keep_case)
    assert isinstance(found, StructType)
    if not found.fields:
        raise FormatError("Schema does not include any columns with types that ksqlDB supports.")
    return tuple(Column(field.name, field.type) for field in found.fields)


def sql_type_of(schema: DataSchema, *, keep_case: bool = False) -> SqlType:
    """The type of data with this schema."""
    match schema.kind:
        case Kind.ARRAY:
            return ArrayType(sql_type_of(schema.element, keep_case=keep_case))
        case Kind.MAP:
            return MapType(STRING, sql_type_of(schema.element, keep_case=keep_case))
        case Kind.STRUCT:
            named = ((field.name if keep_case else field.name.upper(), field.schema) for field in schema.fields)
            return StructType(tuple(Field(name, sql_type_of(inner, keep_case=keep_case)) for name, inner in named))
    if schema.name == logical.DECIMAL:
        precision = int(schema.parameters.get("connect.decimal.precision", DEFAULT_PRECISION))
        return DecimalType(precision, int(schema.parameters.get("scale", "0")))
    return _LOGICAL.get((schema.kind, schema.name or ""), _PLAIN[schema.kind])


# Reading data of a schema as values of a type

Read = Callable[[Any], Any]
"""Converts data that are not null."""

_INTS: Final = frozenset({Kind.INT8, Kind.INT16, Kind.INT32})
_ACCEPTED: Final[Mapping[SqlType, frozenset[Kind]]] = {
    BOOLEAN: frozenset({Kind.BOOLEAN}),
    INTEGER: _INTS,
    BIGINT: _INTS | {Kind.INT64},
    DOUBLE: frozenset({Kind.FLOAT32, Kind.FLOAT64}),
    STRING: frozenset(_PLAIN) - {Kind.BYTES},
    BYTES: frozenset({Kind.BYTES}),
    DATE: _INTS,
    TIME: _INTS,
    TIMESTAMP: _INTS | {Kind.INT64},
}
_TEXTS: Final[Mapping[Kind, Read]] = {
    Kind.BOOLEAN: lambda value: "true" if value else "false",
    Kind.FLOAT32: java_double_text,
    Kind.FLOAT64: java_double_text,
}


def value_reader(schema: DataSchema, sql_type: SqlType, path: str = "") -> Read | None:
    """A function from data of the schema to values of the type, `None` if they are alike.

    Raises `RowError` if no data of the schema can be read as the type. Names of fields match in any case.
    """
    match sql_type, schema.kind:
        case ArrayType(element), Kind.ARRAY:
            return each_item(value_reader(schema.element, element, f"{path}->ARRAY"))
        case MapType(_, value), Kind.MAP:
            return _map_reader(schema, value_reader(schema.element, value, f"{path}->MAP_VAL"))
        case StructType(fields), Kind.STRUCT:
            return struct_reader(schema, [(field.name, field.type) for field in fields], path)
        case DecimalType(), Kind.BYTES if schema.name == logical.DECIMAL:
            return lambda value: fit_decimal(value, sql_type)
    if schema.kind not in _ACCEPTED.get(sql_type, ()) or schema.name == logical.DECIMAL:
        raise RowError(f"Cannot deserialize type {schema.kind.value} as type {sql_type} for path: {path}")
    return _TEXTS.get(schema.kind, str) if sql_type == STRING and schema.kind is not Kind.STRING else None


def struct_reader(schema: DataSchema, fields: list[tuple[str, SqlType]], path: str = "") -> Read:
    """A function from dicts of the schema to tuples of the fields; fields that the schema lacks are null."""
    by_name = {field.name.upper(): field for field in schema.fields}
    places: list[tuple[str | None, Read | None]] = []
    for name, sql_type in fields:
        found = by_name.get(name.upper())
        if found is None:
            places.append((None, None))
        else:
            places.append((found.name, value_reader(found.schema, sql_type, f"{path}->{name}")))

    changed = [(index, convert) for index, (_, convert) in enumerate(places) if convert is not None]
    get = _getter([name for name, _ in places])
    if not changed:
        return get

    def read(value: Mapping[str, Any]) -> tuple[Any, ...]:
        row = list(get(value))
        for index, convert in changed:
            if row[index] is not None:
                row[index] = convert(row[index])
        return tuple(row)

    return read


def _getter(names: list[str | None]) -> Read:
    """A function from a dict to the tuple of the values of these names, null where there is none."""
    present = [name for name in names if name is not None]
    if len(present) == len(names) > 1:
        return itemgetter(*present)
    return lambda value: tuple([None if name is None else value[name] for name in names])


def each_item(convert: Read | None) -> Read | None:
    """The same for arrays: `None` if the elements need no conversion."""
    if convert is None:
        return None
    return lambda items: [None if item is None else convert(item) for item in items]


def _map_reader(schema: DataSchema, convert: Read | None) -> Read | None:
    has_text_keys = schema.key is None or schema.key.kind is Kind.STRING
    if has_text_keys and convert is None:
        return None
    key_kind = Kind.STRING if schema.key is None else schema.key.kind
    text: Read = (lambda key: key) if has_text_keys else _TEXTS.get(key_kind, str)
    return lambda entries: {
        text(key): value if value is None or convert is None else convert(value) for key, value in entries.items()
    }
