"""Keys and values that are given as JSON: fed as bytes, read back, compared.

Start at `encoded` and `decoded`; `is_equal` compares.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

from moldau.core.java_numbers import java_double_text
from moldau.formats.codec import codec
from moldau.formats.columns import Column
from moldau.formats.format import RowFormat
from moldau.formats.json_reading import json_reader, load_exact
from moldau.formats.json_writing import json_writer
from moldau.formats.registry.avro_rows import avro_reader, avro_writer
from moldau.formats.registry.data_schema import Kind
from moldau.formats.registry.inference import columns_of
from moldau.formats.registry.protobuf_rows import framed_message_reader, framed_message_writer
from moldau.formats.registry.schema_texts import data_schema_of
from moldau.formats.types import ArrayType, MapType, SqlType, StructType
from moldau.schemas.avro.schema import AvroSchema
from moldau.schemas.framing import frame_value, parse_frame
from moldau.schemas.parsed_schema import ParsedSchema
from moldau.schemas.protobuf.codec import decode_indexes
from moldau.schemas.protobuf.schema import ProtobufSchema
from moldau.serdes.schema_source import SchemaSource

__all__ = ["decoded", "encoded", "is_equal", "json_text"]

Columns = tuple[Column, ...]
BARE_DOUBLE = 1e-6
"""How far doubles of binary formats may be from what is expected."""


def encoded(value: Any, form: RowFormat, columns: Columns, topic: str, schemas: SchemaSource) -> bytes | None:
    """The bytes of a key or value as it is given: JSON with exact numbers."""
    name = form.format.name
    if value is None:
        return None
    if form.is_key and not columns:
        # Keyless sources ignore their keys, whatever they are.
        return value.encode() if isinstance(value, str) else json_text(value).encode()
    if name == "NONE":
        return None
    if name == "JSON":
        return json_text(value).encode()
    if name == "DELIMITED":
        return str(value).encode()
    if form.format.uses_registry:
        return _encoded_with_schema(value, form, topic, schemas)
    is_bare = form.is_bare(columns)
    row = json_reader(columns, is_bare=is_bare)(json_text(value).encode())
    return codec(form, columns).encode(row)


def decoded(data: bytes | None, form: RowFormat, columns: Columns, schemas: SchemaSource) -> Any:
    """The value of bytes as it is given in JSON: objects, lists, exact numbers, base64 for bytes."""
    name = form.format.name
    if data is None or name == "NONE" or (form.is_key and not columns):
        return None
    if name == "JSON":
        return load_exact(data)
    if name == "DELIMITED":
        return data.decode()
    if form.format.uses_registry:
        return _decoded_with_schema(data, form, schemas)
    return _shown_row(codec(form, columns).decode(data), columns, is_bare=form.is_bare(columns))


# Formats with a registry. Every value of a schema is a row: its fields, or one bare value.


def _sides(schema: ParsedSchema, full_name: str | None, *, keep_case: bool) -> tuple[Columns, bool]:
    found = data_schema_of(schema, full_name)
    columns = columns_of(found, is_key=False, keep_case=keep_case)
    return columns, found.kind is not Kind.STRUCT


def _encoded_with_schema(value: Any, form: RowFormat, topic: str, schemas: SchemaSource) -> bytes | None:
    registered = schemas.latest(f"{topic}-{form.part}")
    assert registered is not None, f"{topic}-{form.part} has no schema"
    schema = registered.parsed
    columns, is_bare = _sides(schema, form.full_name, keep_case=False)
    row = json_reader(columns, is_bare=is_bare)(json_text(value).encode())
    body: bytes | None
    match schema:
        case AvroSchema():
            body = avro_writer(schema, columns, is_bare=is_bare)(row)
        case ProtobufSchema():
            body = framed_message_writer(schema, columns, form.full_name)(row)
        case _:
            body = json_writer(_sides(schema, form.full_name, keep_case=True)[0], is_bare=is_bare)(row)
    return None if body is None else frame_value(registered.id, body)


def _decoded_with_schema(data: bytes, form: RowFormat, schemas: SchemaSource) -> Any:
    frame = parse_frame(data)
    assert frame.schema_id is not None
    schema = schemas.schema(frame.schema_id).parsed
    name = schema.message_name(decode_indexes(frame.body)[0]) if isinstance(schema, ProtobufSchema) else None
    columns, is_bare = _sides(schema, name, keep_case=True)
    match schema:
        case AvroSchema():
            row = avro_reader(schema, columns, is_bare=is_bare)(frame.body)
        case ProtobufSchema():
            row = framed_message_reader(schema, columns)(frame.body)
        case _:
            return load_exact(frame.body)
    shown = _shown_row(row, columns, is_bare=is_bare)
    # Bytes at the top that are empty count as null in these formats.
    if is_bare:
        return None if row[0] == b"" else shown
    return {column.name: None if row[index] == b"" else shown[column.name] for index, column in enumerate(columns)}


def _shown_row(row: Any, columns: Columns, *, is_bare: bool) -> Any:
    if row is None:
        return None
    values = [_shown(value, column.type) for value, column in zip(row, columns, strict=True)]
    if is_bare:
        return values[0]
    return {column.name: value for column, value in zip(columns, values, strict=True)}


def _shown(value: Any, sql_type: SqlType) -> Any:
    if value is None:
        return None
    match sql_type:
        case ArrayType(element):
            return [_shown(item, element) for item in value]
        case MapType(_, inner):
            return {key: _shown(item, inner) for key, item in value.items()}
        case StructType(fields):
            return {field.name: _shown(item, field.type) for field, item in zip(fields, value, strict=True)}
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def json_text(value: Any) -> str:
    """JSON with every digit of the numbers."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{encode_basestring(key)}:{json_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


# Comparison


def is_equal(actual: Any, expected: Any, *, exact: bool = True) -> bool:
    """Whether a value is as expected. Without `exact`, numbers may differ by a millionth."""
    if isinstance(expected, Mapping):
        return isinstance(actual, Mapping) and _are_equal_objects(actual, expected, exact)
    if isinstance(expected, list):
        return (
            isinstance(actual, list)
            and len(actual) == len(expected)
            and all(is_equal(one, other, exact=exact) for one, other in zip(actual, expected, strict=True))
        )
    if expected is None:
        return actual is None
    if isinstance(expected, bool) or isinstance(actual, bool):
        return actual is expected
    if isinstance(expected, int | Decimal):
        return _is_equal_number(actual, expected, exact)
    return _is_equal_text(actual, expected)


def _are_equal_objects(actual: Mapping[str, Any], expected: Mapping[str, Any], exact: bool) -> bool:
    if len(actual) != len(expected):
        return False
    for name, value in expected.items():
        found = name if name in actual else name.upper()
        # A member that is absent counts as null, as in ksqlDB's own tests.
        if not is_equal(actual.get(found), value, exact=exact):
            return False
    return True


def _is_equal_number(actual: Any, expected: int | Decimal, exact: bool) -> bool:
    if isinstance(actual, float):
        return abs(actual - float(expected)) <= BARE_DOUBLE * max(1.0, abs(float(expected)))
    if not isinstance(actual, int | Decimal):
        return False
    if not exact:
        return abs(float(actual) - float(expected)) <= BARE_DOUBLE
    if isinstance(actual, Decimal) and isinstance(expected, Decimal):
        return actual.as_tuple() == expected.as_tuple()
    return actual == expected


def _is_equal_text(actual: Any, expected: Any) -> bool:
    if isinstance(actual, Decimal):
        return str(actual) == expected or actual == _decimal(expected)
    return java_double_text(actual) == expected if isinstance(actual, float) else bool(actual == expected)


def _decimal(text: str) -> Decimal | None:
    try:
        return Decimal(text)
    except ArithmeticError:
        return None
