"""Encodes records by field tables: the counterpart of `protocol.field_reader`.

Requests and responses are encoded by kio's writers instead (`protocol.messages`). Values out of range raise
`struct.error`: they are bugs in moldau, not invalid input. Start at `struct_writer`.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from moldau.protocol.fields import Field, Struct, default_of

__all__ = ["Write", "struct_writer", "write_uvarint"]

Write: TypeAlias = Callable[[bytearray, Any], None]

_LAYOUTS: Final[dict[str, struct.Struct]] = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
    "uint16": struct.Struct(">H"),
    "uint32": struct.Struct(">I"),
    "float64": struct.Struct(">d"),
    "bool": struct.Struct(">?"),
}
_NO_UUID: Final = bytes(16)


def struct_writer(table: Struct) -> Write:
    """Build the writer of one struct of this table, which takes its fields as attributes."""
    plain = tuple((field.name, _field_writer(field, table.is_flexible)) for field in table.fields if field.tag is None)
    tagged = tuple(
        (field.tag, field, _tagged_writer(field))
        for field in sorted((one for one in table.fields if one.tag is not None), key=lambda one: one.tag or 0)
    )

    def write_struct(output: bytearray, value: Any) -> None:
        for name, write in plain:
            write(output, getattr(value, name))
        if table.is_flexible:
            _write_tags(output, value, tagged)

    return write_struct


def _write_tags(output: bytearray, value: Any, tagged: tuple[tuple[int | None, Field, Write], ...]) -> None:
    """Tags are written in order of their numbers, and only if they differ from the default."""
    parts = []
    for tag, field, write in tagged:
        content = getattr(value, field.name)
        if _is_default(content, field):
            continue
        part = bytearray()
        write(part, content)
        parts.append((tag, part))
    write_uvarint(output, len(parts))
    for tag, part in parts:
        write_uvarint(output, tag or 0)
        write_uvarint(output, len(part))
        output += part


def _is_default(content: Any, field: Field) -> bool:
    if field.is_array and content is not None:
        content = list(content)
    default: Any = default_of(field)
    return bool(content == (list(default) if isinstance(default, tuple) else default))


def _field_writer(field: Field, is_flexible: bool) -> Write:
    if not field.is_array:
        return _value_writer(field, is_flexible)
    write_item = _value_writer(field._replace(is_array=False, is_nullable=False), is_flexible)
    write_count = _write_compact_count if is_flexible else _write_int32_count

    def write_array(output: bytearray, items: Any) -> None:
        write_count(output, None if items is None else len(items), field)
        for item in items or ():
            write_item(output, item)

    return write_array


def _value_writer(field: Field, is_flexible: bool) -> Write:
    if isinstance(field.type, Struct):
        write = struct_writer(field.type)
        return _nullable_struct_writer(write) if field.is_nullable else write
    if field.type in _LAYOUTS:
        return _number_writer(_LAYOUTS[field.type])
    if field.type == "uuid":
        return _write_uuid
    write_count = _write_compact_count if is_flexible else _CLASSIC_COUNTS[field.type]

    def write_sized(output: bytearray, content: Any) -> None:
        raw = content.encode() if isinstance(content, str) else content
        write_count(output, None if raw is None else len(raw), field)
        output += raw or b""

    return write_sized


def _tagged_writer(field: Field) -> Write:
    """Like untagged fields, except for a nullable struct: within a tag 0 means null, and 1 that the struct follows."""
    if field.is_array or not field.is_nullable or not isinstance(field.type, Struct):
        return _field_writer(field, True)
    return _nullable_struct_writer(struct_writer(field.type), null=0)


def _nullable_struct_writer(write: Write, null: int = 0xFF) -> Write:
    def write_nullable(output: bytearray, value: Any) -> None:
        output.append(null if value is None else 1)
        if value is not None:
            write(output, value)

    return write_nullable


def _number_writer(layout: struct.Struct) -> Write:
    def write_number(output: bytearray, value: Any) -> None:
        output += layout.pack(value)

    return write_number


def _write_uuid(output: bytearray, value: uuid.UUID | None) -> None:
    output += _NO_UUID if value is None else value.bytes


def write_uvarint(output: bytearray, value: int) -> None:
    while value > 0x7F:
        output.append(value & 0x7F | 0x80)
        value >>= 7
    output.append(value)


def _check_null(count: int | None, field: Field) -> None:
    if count is None and not field.is_nullable:
        raise ValueError(f"{field.name} must not be null")


def _write_compact_count(output: bytearray, count: int | None, field: Field) -> None:
    _check_null(count, field)
    write_uvarint(output, 0 if count is None else count + 1)


def _write_int32_count(output: bytearray, count: int | None, field: Field) -> None:
    _check_null(count, field)
    output += _LAYOUTS["int32"].pack(-1 if count is None else count)


def _write_int16_count(output: bytearray, count: int | None, field: Field) -> None:
    _check_null(count, field)
    output += _LAYOUTS["int16"].pack(-1 if count is None else count)


_CLASSIC_COUNTS: Final = {"string": _write_int16_count, "bytes": _write_int32_count, "records": _write_int32_count}
