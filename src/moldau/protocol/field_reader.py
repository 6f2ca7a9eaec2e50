"""Decodes messages by field tables, from untrusted bytes.

Each length is checked against the bytes left before anything is allocated, unknown tags are skipped, and invalid bytes
raise one of `DAMAGE`, which every entry point converts to its own error. A reader is built once per table. Start at
`struct_reader`.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from moldau.protocol.fields import Field, Struct, default_of

__all__ = ["DAMAGE", "NO_LIMIT", "Cursor", "DamagedError", "Read", "read_uvarint", "skip_tags", "struct_reader"]

NO_LIMIT: Final = 2**63


class DamagedError(Exception):
    """Bytes that do not match the table; never raised outside of `moldau.protocol`."""


DAMAGE: Final = (DamagedError, struct.error, IndexError)


class Cursor:
    """A position in some bytes, and how many array elements may still be created from them.

    Elements are limited because an empty one takes a byte or two on the wire and hundreds in memory.
    """

    __slots__ = ("data", "elements_left", "position")

    def __init__(self, data: bytes, position: int = 0, elements_left: int = NO_LIMIT) -> None:
        self.data = data
        self.position = position
        self.elements_left = elements_left

    def take(self, size: int) -> bytes:
        start = self.position
        end = start + size
        if end > len(self.data):
            raise DamagedError(f"{size} bytes claimed, {len(self.data) - start} left")
        self.position = end
        return self.data[start:end]


Read: TypeAlias = Callable[[Cursor], Any]


# --- structs ----------------------------------------------------------------------------------------


def struct_reader(table: Struct) -> Read:
    """Build the reader of one struct of this table, including nested ones."""
    plain = tuple((field.name, _field_reader(field, table.is_flexible)) for field in table.fields if field.tag is None)
    build = table.build
    if not table.is_flexible:
        return lambda cursor: build(**{name: read(cursor) for name, read in plain})

    tagged = {field.tag: (field.name, _tagged_reader(field)) for field in table.fields if field.tag is not None}
    with_tags = tuple(field for field in table.fields if field.tag is not None)

    def read_flexible(cursor: Cursor) -> Any:
        values = {name: read(cursor) for name, read in plain}
        _read_tags(cursor, tagged, values)
        for field in with_tags:
            if field.name not in values:
                values[field.name] = default_of(field)
        return build(**values)

    return read_flexible


def _read_tags(cursor: Cursor, known: Mapping[int, tuple[str, Read]], values: dict[str, Any]) -> None:
    """Read the known tags, each exactly as long as it claims, and skip the rest."""
    count = read_uvarint(cursor)
    if count:
        _check_count(cursor, count, 2)
    for _ in range(count):
        tag = read_uvarint(cursor)
        size = read_uvarint(cursor)
        end = cursor.position + size
        if end > len(cursor.data):
            raise DamagedError(f"tag {tag} claims {size} bytes, {len(cursor.data) - cursor.position} are left")
        if tag in known:
            name, read = known[tag]
            if name in values:
                raise DamagedError(f"tag {tag} comes twice")
            values[name] = read(cursor)
            if cursor.position != end:
                raise DamagedError(f"tag {tag} claims {size} bytes and has {size + cursor.position - end}")
        cursor.position = end


def skip_tags(cursor: Cursor) -> None:
    """Skip tagged fields, all of which are unknown."""
    _read_tags(cursor, {}, {})


def _field_reader(field: Field, is_flexible: bool) -> Read:
    if not field.is_array:
        return _value_reader(field, is_flexible)
    read_count = _COUNTS[is_flexible, field.is_nullable]
    if not isinstance(field.type, Struct) and field.type in _NUMBERS:
        return _number_array_reader(_NUMBERS[field.type], read_count)
    item = field._replace(is_array=False, is_nullable=False)
    return _array_reader(_value_reader(item, is_flexible), _least_size(item, is_flexible), read_count)


def _value_reader(field: Field, is_flexible: bool) -> Read:
    if isinstance(field.type, Struct):
        read = struct_reader(field.type)
        return _nullable_struct_reader(read) if field.is_nullable else read
    if field.type in _NUMBERS:
        return _number_reader(_NUMBERS[field.type])
    if field.type == "uuid":
        return _read_uuid
    if field.type == "bool":
        return _read_bool
    if field.type == "string":
        read_size, finish = _STRING_SIZES[is_flexible, field.is_nullable], _text
    else:
        read_size, finish = _COUNTS[is_flexible, field.is_nullable], None
    return _sized_reader(read_size, finish)


def _tagged_reader(field: Field) -> Read:
    """Like untagged fields, except for a nullable struct: within a tag 0 means null, and 1 that the struct follows."""
    if field.is_array or not field.is_nullable or not isinstance(field.type, Struct):
        return _field_reader(field, True)
    read = struct_reader(field.type)
    return lambda cursor: read(cursor) if read_uvarint(cursor) else None


def _nullable_struct_reader(read: Read) -> Read:
    """KIP-893: one byte says whether the struct follows; a negative one means null."""

    def read_nullable(cursor: Cursor) -> Any:
        is_null = cursor.data[cursor.position] > 0x7F
        cursor.position += 1
        return None if is_null else read(cursor)

    return read_nullable


# --- arrays -----------------------------------------------------------------------------------------


def _array_reader(read: Read, least_size: int, read_count: Read) -> Read:
    def read_array(cursor: Cursor) -> list[Any] | None:
        count = read_count(cursor)
        if count is None:
            return None
        _check_count(cursor, count, least_size)
        return [read(cursor) for _ in range(count)]

    return read_array


def _number_array_reader(code: str, read_count: Read) -> Read:
    size = struct.calcsize(">" + code)

    def read_numbers(cursor: Cursor) -> list[Any] | None:
        count = read_count(cursor)
        if count is None:
            return None
        _check_count(cursor, count, size)
        return list(struct.unpack(f">{count}{code}", cursor.take(count * size)))

    return read_numbers


def _check_count(cursor: Cursor, count: int, least_size: int) -> None:
    left = len(cursor.data) - cursor.position
    if count * least_size > left:
        raise DamagedError(f"{count} elements claimed, {left} bytes left")
    cursor.elements_left -= count
    if cursor.elements_left < 0:
        raise DamagedError("more elements than one message may have")


def _least_size(field: Field, is_flexible: bool) -> int:
    """The fewest bytes a value can take, never 0, so that a count is always bounded by the bytes left."""
    if field.is_array:
        return 1 if is_flexible else 4
    if isinstance(field.type, Struct):
        if field.is_nullable:
            return 1
        inner = sum(_least_size(one, field.type.is_flexible) for one in field.type.fields if one.tag is None)
        return max(1, inner + field.type.is_flexible)
    if field.type in _NUMBERS:
        return struct.calcsize(">" + _NUMBERS[field.type])
    if field.type in ("uuid", "bool"):
        return 16 if field.type == "uuid" else 1
    return 1 if is_flexible else 2 if field.type == "string" else 4


# --- primitives -------------------------------------------------------------------------------------

_NUMBERS: Final[dict[str, str]] = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "float64": "d",
}


def _number_reader(code: str) -> Read:
    layout = struct.Struct(">" + code)
    unpack, size = layout.unpack_from, layout.size

    def read_number(cursor: Cursor) -> Any:
        (value,) = unpack(cursor.data, cursor.position)
        cursor.position += size
        return value

    return read_number


def _read_bool(cursor: Cursor) -> bool:
    value = cursor.data[cursor.position]
    cursor.position += 1
    return value != 0


def _read_uuid(cursor: Cursor) -> uuid.UUID | None:
    """All zeros means "none" in Kafka."""
    raw = cursor.take(16)
    return uuid.UUID(bytes=raw) if any(raw) else None


def _text(raw: bytes) -> str:
    """Invalid UTF-8 is replaced, as in Kafka: such a name matches nothing and does no harm."""
    return raw.decode("utf-8", "replace")


def _sized_reader(read_size: Read, finish: Callable[[bytes], Any] | None) -> Read:
    def read_sized(cursor: Cursor) -> Any:
        size = read_size(cursor)
        if size is None:
            return None
        raw = cursor.take(size)
        return finish(raw) if finish else raw

    return read_sized


def read_uvarint(cursor: Cursor) -> int:
    """Read an unsigned varint of at most 32 bits."""
    data, position = cursor.data, cursor.position
    value = data[position]
    position += 1
    if value > 0x7F:
        value &= 0x7F
        for shift in (7, 14, 21, 28):
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        if byte > 0x7F or value > 0xFFFFFFFF:
            raise DamagedError("a varint of more than 32 bits")
    cursor.position = position
    return value


def _count_reader(read: Read, null: int, offset: int, *, is_nullable: bool) -> Read:
    """Lengths and counts, `None` for null: -1 in classic ones; 0 in compact ones, which are one too high."""

    def read_count(cursor: Cursor) -> int | None:
        raw: int = read(cursor)
        if raw > null:
            return raw - offset
        if raw < null or not is_nullable:
            raise DamagedError("null, but the field is not nullable" if raw == null else f"the negative length {raw}")
        return None

    return read_count


_COUNTS: Final = {
    (is_flexible, is_nullable): _count_reader(
        read_uvarint if is_flexible else _number_reader("i"),
        null=0 if is_flexible else -1,
        offset=1 if is_flexible else 0,
        is_nullable=is_nullable,
    )
    for is_flexible in (False, True)
    for is_nullable in (False, True)
}
"""Of arrays and bytes, by (flexible, nullable)."""

_STRING_SIZES: Final = {
    (is_flexible, is_nullable): _COUNTS[True, is_nullable]
    if is_flexible
    else _count_reader(_number_reader("h"), null=-1, offset=0, is_nullable=is_nullable)
    for is_flexible in (False, True)
    for is_nullable in (False, True)
}
