"""Which columns a format can hold, for keys and for values, with the messages that users of ksqlDB know.

Rules that need no registry; `schema_columns` compares with registered schemas. Start at `check_columns`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from moldau.formats.columns import Column
from moldau.formats.errors import FormatError
from moldau.formats.format import RowFormat
from moldau.formats.types import (
    BIGINT,
    BYTES,
    DOUBLE,
    INTEGER,
    STRING,
    ArrayType,
    MapType,
    SqlType,
    StructType,
)
from moldau.formats.types_within import base_name, contains, types_within

__all__ = ["MAX_TYPE_DEPTH", "check_columns", "check_depth", "check_key_types"]

MAX_TYPE_DEPTH: Final = 100
"""Deepest nesting of a column's type: rows are read and written by functions that call each other."""

Columns = tuple[Column, ...]
_KAFKA_TYPES: Final = (INTEGER, BIGINT, DOUBLE, STRING, BYTES)


def check_columns(row_format: RowFormat, columns: Columns) -> None:
    """Raise `FormatError` if the format cannot hold these columns as a key or a value."""
    if row_format.is_key:
        check_key_types(columns)
    check_depth(columns)
    check = _CHECKS.get(row_format.format.name)
    if check is None:
        return
    try:
        check(row_format, columns)
    except FormatError as error:
        raise FormatError(
            f"{row_format.part.capitalize()} format does not support schema.\nformat: {row_format.format.name}\n"
            f"schema: {_description(row_format, columns)}\nreason: {error}"
        ) from None


def check_key_types(columns: Sequence[Column]) -> None:
    """Raise `FormatError` for a MAP in a key: equal maps need not have equal bytes, so rows would go astray."""
    for column in columns:
        if contains(column.type, MapType):
            raise FormatError(
                "Map keys, including types that contain maps, are not supported as they may lead to unexpected "
                f"behavior due to inconsistent serialization. Key column name: `{column.name}`. Column type: "
                f"{column.type}. See https://github.com/confluentinc/ksql/issues/6621 for more."
            )


def _description(row_format: RowFormat, columns: Columns) -> str:
    names = ", ".join(sorted(feature.value for feature in row_format.features(columns)))
    return f"Persistence{{columns={_column_list(row_format, columns)}, features=[{names}]}}"


def _column_list(row_format: RowFormat, columns: Columns) -> str:
    suffix = " KEY" if row_format.is_key else ""
    return f"[{', '.join(f'{column}{suffix}' for column in columns)}]"


def check_depth(columns: Columns) -> None:
    """Raise `FormatError` for a type that is nested too deep."""
    for column in columns:
        level: list[SqlType] = [column.type]
        depth = 0
        while level:
            depth += 1
            if depth > MAX_TYPE_DEPTH:
                raise FormatError(
                    f"The type of column `{column.name}` is nested more than {MAX_TYPE_DEPTH} levels deep; use a "
                    "flatter type"
                )
            level = [inner for outer in level for inner in _children(outer)]


def _children(sql_type: SqlType) -> list[SqlType]:
    match sql_type:
        case ArrayType(element):
            return [element]
        case MapType(key, value):
            return [key, value]
        case StructType(fields):
            return [field.type for field in fields]
    return []


# One check per format


def _check_none(row_format: RowFormat, columns: Columns) -> None:
    if columns:
        raise FormatError(
            f"The 'NONE' format can only be used when no columns are defined. Got: {_column_list(row_format, columns)}"
        )


def _check_kafka(row_format: RowFormat, columns: Columns) -> None:
    if len(columns) > 1:
        raise FormatError(f"The 'KAFKA' format only supports a single field. Got: {_column_list(row_format, columns)}")
    for column in columns:
        if column.type not in _KAFKA_TYPES:
            raise FormatError(f"The 'KAFKA' format does not support type '{base_name(column.type)}'")


def _check_delimited(row_format: RowFormat, columns: Columns) -> None:
    for column in columns:
        if isinstance(column.type, ArrayType | MapType | StructType):
            raise FormatError(
                f"The 'DELIMITED' format does not support type '{base_name(column.type)}', column: `{column.name}`"
            )


def _map_check(message: str) -> Callable[[RowFormat, Columns], None]:
    def check(row_format: RowFormat, columns: Columns) -> None:
        for column in columns:
            if any(isinstance(inner, MapType) and inner.key != STRING for inner in types_within(column.type)):
                raise FormatError(message)

    return check


_AVRO_MAPS: Final = _map_check("Avro only supports MAPs with STRING keys")


def _check_avro(row_format: RowFormat, columns: Columns) -> None:
    _AVRO_MAPS(row_format, columns)
    if not row_format.is_bare(columns):
        for column in columns:
            _check_avro_name(column.name)
    for column in columns:
        for inner in types_within(column.type):
            if isinstance(inner, StructType):
                for field in inner.fields:
                    _check_avro_name(field.name)


def _check_avro_name(name: str) -> None:
    problem = ""
    if not name:
        problem = "Empty name"
    elif re.match(r"[^\W\d]", name) is None:
        problem = f"Illegal initial character: {name}"
    elif re.fullmatch(r"\w+", name) is None:
        problem = f"Illegal character in: {name}"
    if problem:
        raise FormatError(f"Schema is not compatible with Avro: {problem}")


_JSON_MAPS: Final = _map_check("JSON only supports MAP types with STRING keys")
_PROTOBUF_MAPS: Final = _map_check("PROTOBUF format only supports MAP types with STRING keys")

_CHECKS: Final[Mapping[str, Callable[[RowFormat, Columns], None]]] = {
    "NONE": _check_none,
    "KAFKA": _check_kafka,
    "DELIMITED": _check_delimited,
    "JSON": _JSON_MAPS,
    "JSON_SR": _JSON_MAPS,
    "AVRO": _check_avro,
    "PROTOBUF": _PROTOBUF_MAPS,
    "PROTOBUF_NOSR": _PROTOBUF_MAPS,
}
