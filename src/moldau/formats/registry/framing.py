"""Rows with a schema id before them, as Confluent's serializers write them.

The codec derives a schema from the columns and registers it when the first row is written, unless the statement named a
schema; it reads rows with the schema they were written with, whatever that was. Start at `RegistryCodec`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.formats.columns import Column
from moldau.formats.errors import FormatError, RowError
from moldau.formats.format import RowFormat
from moldau.formats.json_reading import json_reader
from moldau.formats.json_writing import json_writer
from moldau.formats.registry.avro_rows import avro_reader, avro_writer
from moldau.formats.registry.protobuf_rows import framed_message_reader, framed_message_writer
from moldau.formats.registry.schema_texts import derived_schema, inferred_columns
from moldau.formats.surrogates import without_surrogates
from moldau.formats.types import Row
from moldau.schemas.avro.schema import AvroSchema
from moldau.schemas.errors import SchemaError
from moldau.schemas.framing import frame_value, parse_frame
from moldau.schemas.json_schema.schema import JsonSchema
from moldau.schemas.protobuf.schema import ProtobufSchema
from moldau.schemas.schema import ParsedSchema
from moldau.serdes.schema_source import RegisteredSchema, SchemaSource, UnfitValueError, subject_name

__all__ = ["RegistryCodec"]

Read = Callable[[bytes], Any]
Write = Callable[[Any], bytes | None]
PREFIX = 5
"""Size in bytes of the magic byte and the schema's id."""


class RegistryCodec:
    """Rows of columns as Avro, JSON or Protobuf data of a topic, with schemas from a source."""

    def __init__(self, row_format: RowFormat, columns: tuple[Column, ...], topic: str, schemas: SchemaSource) -> None:
        self._format = row_format
        self._columns = columns
        self._is_bare = row_format.is_bare(columns)
        self._schemas = schemas
        self._subject = subject_name("TopicNameStrategy", topic, None, is_key=row_format.is_key)
        self._write: Write | None = None
        self._readers: dict[bytes, Read] = {}

    def encode(self, row: Row | None) -> bytes | None:
        if row is None or (self._is_bare and row[0] is None):
            return None
        try:
            write = self._write
            if write is None:
                write = self._write = self._writer()
            try:
                return write(row)
            except UnicodeEncodeError:
                return write(without_surrogates(row))
        except (SchemaError, RowError, ValueError, TypeError, AttributeError) as error:
            raise RowError(f"Unable to serialize record: {error}") from None

    def decode(self, data: bytes | None) -> Row | None:
        if data is None:
            return None
        read = self._readers.get(data[:PREFIX])
        try:
            row: Row | None = read(data[PREFIX:]) if read is not None else self._first_read(data)
        except (SchemaError, UnfitValueError, FormatError, ValueError, TypeError) as error:
            raise RowError(str(error)) from None
        return row

    def _writer(self) -> Write:
        registered = self._find_or_register()
        prefix = frame_value(registered.id, b"")
        write = row_writer(registered.parsed, self._format, self._columns)

        def framed(row: Any) -> bytes | None:
            body = write(row)
            return None if body is None else prefix + body

        return framed

    def _find_or_register(self) -> RegisteredSchema:
        if self._format.schema_id is not None:
            return self._schemas.schema(self._format.schema_id)
        return self._named_type() or self._schemas.registered(
            self._subject, derived_schema(self._format, self._columns), may_register=True
        )

    def _named_type(self) -> RegisteredSchema | None:
        """The topic's schema, if it has the message that the statement names among others, with these columns."""
        if self._format.full_name is None or self._format.format.name != "PROTOBUF":
            return None
        latest = self._schemas.latest(self._subject)
        try:
            found = () if latest is None else inferred_columns(latest.parsed, self._format)
        except (FormatError, SchemaError):
            return None
        return latest if set(self._columns) <= set(found) else None

    def _first_read(self, data: bytes) -> Any:
        frame = parse_frame(data)
        if self._format.format.name == "JSON_SR":
            # JSON says itself what it is: columns are all that is needed to read it.
            read: Read = json_reader(self._columns, is_bare=self._is_bare)
        else:
            name: int | str = frame.guid or "" if frame.schema_id is None else frame.schema_id
            read = row_reader(self._schemas.schema(name).parsed, self._format, self._columns)
        if frame.schema_id is not None:
            self._readers[data[:PREFIX]] = read
        return read(frame.body)


def row_reader(schema: ParsedSchema, row_format: RowFormat, columns: tuple[Column, ...]) -> Read:
    """A function from data of the schema, without its id, to rows; raises `RowError` if they never fit."""
    is_bare = row_format.is_bare(columns)
    match schema:
        case AvroSchema() if row_format.format.name == "AVRO":
            return avro_reader(schema, columns, is_bare=is_bare)
        case ProtobufSchema() if row_format.format.name == "PROTOBUF":
            return framed_message_reader(schema, columns)
    raise RowError(
        f"the data were written with a schema of type {schema.schema_type}, not as {row_format.format.name}; use the "
        "format of that type"
    )


def row_writer(schema: ParsedSchema, row_format: RowFormat, columns: tuple[Column, ...]) -> Write:
    """A function from rows to data of the schema, without its id; raises `RowError` if they never fit."""
    is_bare = row_format.is_bare(columns)
    match schema:
        case AvroSchema() if row_format.format.name == "AVRO":
            return avro_writer(schema, columns, is_bare=is_bare)
        case ProtobufSchema() if row_format.format.name == "PROTOBUF":
            return framed_message_writer(schema, columns, row_format.full_name)
        case JsonSchema() if row_format.format.name == "JSON_SR":
            return json_writer(columns, is_bare=is_bare)
    raise RowError(f"{row_format.format.name} cannot be written with a schema of type {schema.schema_type}")
