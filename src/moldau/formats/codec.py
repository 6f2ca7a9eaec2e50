"""Rows to bytes and back: one codec per format, chosen by `codec`.

A codec is made for the columns of a key or a value. It holds functions, so it is not pickled: ship the `RowSerde` of
`row_serde`, which makes its codec where it is used. Start at `codec`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from moldau.core.errors import InvalidConfigError
from moldau.formats.checks import check_columns
from moldau.formats.columns import Column
from moldau.formats.delimited import delimited_reader, delimited_writer
from moldau.formats.errors import RowError
from moldau.formats.format import RowFormat
from moldau.formats.json_reading import json_reader
from moldau.formats.json_writing import json_writer
from moldau.formats.kafka_values import kafka_reader, kafka_writer
from moldau.formats.registry.framing import RegistryCodec
from moldau.formats.registry.protobuf_rows import plain_messages
from moldau.formats.surrogates import without_surrogates
from moldau.formats.types import Row
from moldau.serdes.schema_source import SchemaSource

__all__ = ["FunctionCodec", "RowCodec", "codec"]


class RowCodec(Protocol):
    """Rows of some columns to bytes and back."""

    def encode(self, row: Row | None, /) -> bytes | None:
        """The bytes of a row, `None` for a null record; raises `RowError` for a row that cannot be written."""
        ...

    def decode(self, data: bytes | None, /) -> Row | None:
        """The row of bytes, `None` for a null record; raises `RowError` for bytes that are not a row."""
        ...


@dataclass(frozen=True, slots=True)
class FunctionCodec:
    """A codec made of two functions, neither of which is called with `None`."""

    write: Callable[[Row], bytes | None]
    read: Callable[[bytes], Row | None]

    def encode(self, row: Row | None) -> bytes | None:
        if row is None:
            return None
        try:
            return self.write(row)
        except RowError:
            cleaned = without_surrogates(row)
            if cleaned == row:
                raise
            return self.write(cleaned)

    def decode(self, data: bytes | None) -> Row | None:
        return None if data is None else self.read(data)


class VoidCodec:
    """Of a side without columns, or of format NONE: bytes are ignored when read, and null when written."""

    def encode(self, row: Row | None) -> None:
        return None

    def decode(self, data: bytes | None) -> None:
        return None


def codec(
    row_format: RowFormat, columns: tuple[Column, ...], *, topic: str = "", schemas: SchemaSource | None = None
) -> RowCodec:
    """The codec of these columns as keys or values; raises `FormatError` if the format cannot hold them.

    Registry formats need the topic, which gives the subject, and the source of schemas.
    """
    check_columns(row_format, columns)
    if not columns and (row_format.is_key or row_format.format.name in ("NONE", "KAFKA")):
        return VoidCodec()
    is_bare = row_format.is_bare(columns)
    match row_format.format.name:
        case "JSON":
            return FunctionCodec(json_writer(columns, is_bare=is_bare), json_reader(columns, is_bare=is_bare))
        case "DELIMITED":
            delimiter = row_format.delimiter
            return FunctionCodec(delimited_writer(columns, delimiter), delimited_reader(columns, delimiter))
        case "KAFKA":
            return FunctionCodec(kafka_writer(columns[0]), kafka_reader(columns[0]))
        case "PROTOBUF_NOSR":
            return FunctionCodec(*plain_messages(columns, row_format.nullable, is_bare=is_bare))
    if schemas is None:
        raise InvalidConfigError(
            f"format {row_format.format.name} needs a schema registry: set ksql.schema.registry.url, such as "
            "http://localhost:8081"
        )
    return RegistryCodec(row_format, columns, topic, schemas)
