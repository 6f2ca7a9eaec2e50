"""Checks that the defaults of a schema's fields fit their types: otherwise a reader would fail.

A union's default must fit its first branch, which readers of all Avro versions support.
Start at `check_defaults`.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.schemas.avro.types import Array, AvroType, Enum, Fixed, Map, Named, Primitive, Record, Union
from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.json_text import Json, render

__all__ = ["check_defaults", "fits"]


def check_defaults(named: Iterable[Named]) -> None:
    """Raise for the first field of the given types whose default does not fit."""
    for record in named:
        if not isinstance(record, Record):
            continue
        for field in record.fields:
            if field.has_default and not fits(field.default, field.type):
                raise InvalidSchemaError(
                    f"Invalid default for field {record.full_name}.{field.name}: "
                    f"{_brief(field.default)} is no {_describe_type(field.type)}"
                )


def fits(value: Json, avro_type: AvroType) -> bool:
    """Whether the default `value` fits `avro_type`. Recurses as deep as the value, not as the type."""
    match avro_type:
        case Primitive(kind):
            return _fits_primitive(value, kind)
        case Enum():
            return isinstance(value, str) and value in avro_type.known_symbols
        case Fixed():
            return _is_bytes(value) and len(value) == avro_type.size
        case Array():
            return isinstance(value, list) and all(fits(item, avro_type.items) for item in value)
        case Map():
            return isinstance(value, dict) and all(fits(item, avro_type.values) for item in value.values())
        case Record():
            return isinstance(value, dict) and all(
                fits(value[field.name], field.type) if field.name in value else field.has_default
                for field in avro_type.fields
            )
        case Union():
            return bool(avro_type.branches) and fits(value, avro_type.branches[0])


def _fits_primitive(value: Json, kind: str) -> bool:
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            bits = 31 if kind == "int" else 63
            return isinstance(value, int) and not isinstance(value, bool) and -(2**bits) <= value < 2**bits
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "bytes":
            return _is_bytes(value)
    return isinstance(value, str)


def _is_bytes(value: Json) -> bool:
    """Whether a value is bytes, written as text: each character is the byte with the same number."""
    return isinstance(value, str) and all(ord(character) < 256 for character in value)


def _describe_type(avro_type: AvroType) -> str:
    if isinstance(avro_type, Record | Enum | Fixed):
        return f"{avro_type.kind} {avro_type.full_name}"
    if isinstance(avro_type, Union):
        first = f", whose first branch is {_describe_type(avro_type.branches[0])}" if avro_type.branches else ""
        return f"union{first}"
    return avro_type.kind


def _brief(value: Json) -> str:
    text = render(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
