"""Avro's low-level binary encoding: numbers, and a byte reader that checks every length.

Start at `BinaryReader`; `skip` walks over a whole value, to check data before a faster reader without limits
decodes it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from moldau.schemas.avro.types import Array, AvroType, Enum, Fixed, Map, Primitive, Record, Union
from moldau.schemas.errors import InvalidValueError

__all__ = ["MAX_DEPTH", "BinaryReader", "long_bytes", "skip"]

MAX_DEPTH: Final = 150
"""The maximum nesting of a value: a recursive type has no limit, but the stack has."""

_MAX_EMPTY_ITEMS: Final = 100_000
"""The maximum number of items that take no bytes, such as nulls: the data may claim any number of them."""


class BinaryReader:
    """Reads Avro's primitives from bytes and never past their end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self._empty_items = 0

    def take(self, count: int) -> bytes:
        end = self._position + count
        if count < 0 or end > len(self._data):
            left = len(self._data) - self._position
            raise InvalidValueError(f"the Avro data claims {count} bytes where {left} are left")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def long(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 63:
                raise InvalidValueError("the Avro data holds a number of more than ten bytes")
        value &= 0xFFFFFFFFFFFFFFFF
        return (value >> 1) ^ -(value & 1)

    def byte_string(self) -> bytes:
        return self.take(self.long())

    def string(self) -> str:
        try:
            return self.byte_string().decode()
        except UnicodeDecodeError:
            raise InvalidValueError("the Avro data holds a string that is not UTF-8") from None

    def index(self, count: int, what: str) -> int:
        index = self.long()
        if not 0 <= index < count:
            raise InvalidValueError(f"the Avro data has index {index} for {what}, of which there are {count}")
        return index

    def boolean(self) -> bool:
        return self.take(1) != b"\x00"

    def float32(self) -> float:
        return float(struct.unpack("<f", self.take(4))[0])

    def float64(self) -> float:
        return float(struct.unpack("<d", self.take(8))[0])

    def blocks(self) -> Iterator[None]:
        """Yield once for each item of an array or map: items are in blocks with a count, and a count of 0 ends them."""
        while count := self.long():
            if count < 0:
                self.long()
                count = -count
            for _ in range(count):
                before = self._position
                yield
                if self._position == before:
                    self._count_empty_item()

    def _count_empty_item(self) -> None:
        self._empty_items += 1
        if self._empty_items > _MAX_EMPTY_ITEMS:
            raise InvalidValueError(f"the Avro data claims more than {_MAX_EMPTY_ITEMS} items that take no bytes")


def long_bytes(value: int) -> bytes:
    """A number in Avro's variable-length encoding: small numbers of either sign are short."""
    value = (value << 1) ^ (value >> 63)
    parts = bytearray()
    while value > 0x7F:
        parts.append((value & 0x7F) | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def skip(reader: BinaryReader, avro_type: AvroType, depth: int = 0) -> None:
    """Skip one value of a type; raises `InvalidValueError` if the data is invalid."""
    if depth > MAX_DEPTH:
        raise InvalidValueError(f"the Avro data is nested more than {MAX_DEPTH} levels deep")
    match avro_type:
        case Primitive(kind):
            _skip_primitive(reader, kind)
        case Record():
            for field in avro_type.fields:
                skip(reader, field.type, depth + 1)
        case Union():
            skip(reader, avro_type.branches[reader.index(len(avro_type.branches), "branch")], depth + 1)
        case Array():
            for _ in reader.blocks():
                skip(reader, avro_type.items, depth + 1)
        case Map():
            for _ in reader.blocks():
                reader.byte_string()
                skip(reader, avro_type.values, depth + 1)
        case Enum():
            reader.index(len(avro_type.symbols), "symbol")
        case Fixed():
            reader.take(avro_type.size)


def _skip_primitive(reader: BinaryReader, kind: str) -> None:
    match kind:
        case "int" | "long":
            reader.long()
        case "string" | "bytes":
            reader.byte_string()
        case "boolean":
            reader.take(1)
        case "float":
            reader.take(4)
        case "double":
            reader.take(8)
