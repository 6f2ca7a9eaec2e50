"""KAFKA: one column in the form of Kafka's own serializers: big-endian numbers, UTF-8 text, raw bytes.

Start at `kafka_reader` and `kafka_writer`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from moldau.formats.columns import Column
from moldau.formats.errors import RowError
from moldau.formats.types import BIGINT, DOUBLE, INTEGER, STRING, SqlType

__all__ = ["kafka_reader", "kafka_writer"]

_LAYOUTS: Final[Mapping[SqlType, struct.Struct]] = {
    INTEGER: struct.Struct(">i"),
    BIGINT: struct.Struct(">q"),
    DOUBLE: struct.Struct(">d"),
}


def kafka_reader(column: Column) -> Callable[[bytes], tuple[Any]]:
    """A function from bytes to a row of one column; it raises `RowError`."""
    layout = _LAYOUTS.get(column.type)
    if layout is not None:
        unpack = layout.unpack

        def read_number(data: bytes) -> tuple[Any]:
            try:
                return unpack(data)
            except struct.error:
                raise RowError(
                    f"Size of data received by {column.type} deserializer is not {layout.size}, but {len(data)}"
                ) from None

        return read_number
    if column.type != STRING:
        return lambda data: (bytes(data),)

    def read_text(data: bytes) -> tuple[Any]:
        # Java replaces what is not UTF-8; a text that cannot be read is still a text.
        return (data.decode("utf-8", "replace"),)

    return read_text


def kafka_writer(column: Column) -> Callable[[Any], bytes | None]:
    """A function from a row of one column to bytes; null has none. It raises `RowError`."""
    layout = _LAYOUTS.get(column.type)
    encode: Callable[[Any], bytes]
    encode = layout.pack if layout is not None else str.encode if column.type == STRING else bytes

    def write(row: Any) -> bytes | None:
        (value,) = row
        try:
            return None if value is None else encode(value)
        except (struct.error, TypeError, ValueError) as error:
            raise RowError(f"{value!r:.80} cannot be written as {column.type}: {error}") from None

    return write
