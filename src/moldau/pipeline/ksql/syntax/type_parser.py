"""The rule of types: `INT`, `DECIMAL(4, 2)`, `ARRAY<STRUCT<A INT>>`, the name of a type that the user has made."""

from __future__ import annotations

from typing import Final

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
from moldau.pipeline.ksql.syntax.cursor import Cursor
from moldau.pipeline.ksql.syntax.expressions import NamedType
from moldau.pipeline.ksql.syntax.literal_parser import parse_whole_number
from moldau.pipeline.ksql.syntax.tokens import INTEGER_VALUE

__all__ = ["PRIMITIVE_TYPES", "parse_type"]

PRIMITIVE_TYPES: Final[dict[str, SqlType]] = {
    "BOOLEAN": BOOLEAN,
    "INT": INTEGER,
    "INTEGER": INTEGER,
    "BIGINT": BIGINT,
    "DOUBLE": DOUBLE,
    "VARCHAR": STRING,
    "STRING": STRING,
    "BYTES": BYTES,
    "DATE": DATE,
    "TIME": TIME,
    "TIMESTAMP": TIMESTAMP,
}
"""The names of the types that have no parameters."""


def parse_type(cursor: Cursor) -> SqlType:
    """Read a type."""
    cursor.deepen()
    depth = cursor.depth
    sql_type = _simple_type(cursor)
    while cursor.accept("ARRAY"):  # `INT ARRAY` is another spelling of `ARRAY<INT>`
        cursor.deepen()
        sql_type = ArrayType(sql_type)
    cursor.depth = depth - 1
    return sql_type


def _simple_type(cursor: Cursor) -> SqlType:
    if cursor.accept("ARRAY", "<"):
        element = parse_type(cursor)
        cursor.expect(">")
        return ArrayType(element)
    if cursor.accept("MAP", "<"):
        key = parse_type(cursor)
        cursor.expect(",")
        value = parse_type(cursor)
        cursor.expect(">")
        return MapType(key, value)
    if cursor.accept("STRUCT", "<"):
        return StructType(_fields(cursor))
    if cursor.accept("STRUCT", "<>"):
        return StructType(())
    if cursor.kind == "DECIMAL":
        return _decimal(cursor)
    return _named_type(cursor)


def _fields(cursor: Cursor) -> tuple[Field, ...]:
    fields: list[Field] = []
    names: set[str] = set()
    if cursor.accept(">"):
        return ()
    while True:
        location = cursor.location()
        name = cursor.identifier()
        if name in names:
            cursor.refuse_prepared(f"Duplicate field names found in STRUCT: '{name}'", at_fault=location)
        names.add(name)
        fields.append(Field(name, parse_type(cursor)))
        if not cursor.accept(","):
            cursor.expect_end_of_list(">")
            return tuple(fields)


def _decimal(cursor: Cursor) -> DecimalType:
    location = cursor.location()
    cursor.expect("DECIMAL", "(")
    precision = parse_whole_number(cursor, "DECIMAL")
    cursor.expect(",")
    scale = parse_whole_number(cursor, "DECIMAL")
    cursor.expect(")")
    reason = None
    if precision < 1:
        reason = "precision must be >= 1"
    elif scale < 0:
        reason = "scale must be >= 0"
    elif scale > precision:
        reason = "precision must be >= scale"
    if reason:
        cursor.refuse_prepared(f"DECIMAL {reason}: DECIMAL({precision},{scale})", at_fault=location)
    return DecimalType(precision, scale)


def _named_type(cursor: Cursor) -> SqlType:
    name = cursor.identifier()
    if cursor.accept("("):
        _ignored_parameters(cursor)
    return PRIMITIVE_TYPES.get(name) or NamedType(name)


def _ignored_parameters(cursor: Cursor) -> None:
    """Read `10)` or `STRING)`: other databases' lengths are accepted and mean nothing."""
    while True:
        if cursor.kind not in ("STRING", INTEGER_VALUE):
            cursor.fail_expecting("STRING", INTEGER_VALUE)
        cursor.advance()
        if not cursor.accept(","):
            break
    cursor.expect(")")
