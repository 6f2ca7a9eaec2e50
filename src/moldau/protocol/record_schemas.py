"""Codecs of records on disk that kio has no schema for, defined as dataclasses with a wire type per field.

A definition covers all versions of a record: fields say since which version they exist. The codec of one version is
built on first use. `protocol.metadata_records` and `protocol.coordinator_records` define the records. Start at `wire`
and `record_codec`.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Endpoint:
        host: str = wire("string")
        port: int = wire("uint16")
        rack: str | None = wire("string", is_nullable=True, tag=0, since=2)
"""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any, Final, NamedTuple

from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.field_reader import DAMAGE, Cursor, Read, struct_reader
from moldau.protocol.field_writer import Write, struct_writer
from moldau.protocol.fields import UNSET, Field, Struct, implicit_default

__all__ = ["MalformedRecordError", "RecordCodec", "array_of", "decode_record", "record_codec", "wire"]


class MalformedRecordError(MoldauError):
    """A record on disk whose bytes do not match its schema, or whose schema is unknown."""

    code = ErrorCode.CORRUPT_MESSAGE


class _WireType(NamedTuple):
    type: str | type
    is_array: bool
    is_nullable: bool
    tag: int | None
    since: int
    default: Any


_KEY: Final = "wire"


def wire(
    kind: str | type,
    *,
    is_array: bool = False,
    is_nullable: bool = False,
    tag: int | None = None,
    since: int = 0,
    default: Any = UNSET,
) -> Any:
    """Define a field: a primitive by Kafka's name, or another such dataclass.

    One that can be missing on the wire, because it is tagged or was added later, always has a default: its own, or
    null, empty or zero.
    """
    if default is UNSET and (tag is not None or since):
        default = _empty(kind, is_array=is_array, is_nullable=is_nullable)
    metadata = {_KEY: _WireType(kind, is_array, is_nullable, tag, since, default)}
    if default is UNSET:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def array_of(
    kind: str | type, *, is_nullable: bool = False, tag: int | None = None, since: int = 0, default: Any = UNSET
) -> Any:
    """Define an array field, which holds a tuple."""
    return wire(kind, is_array=True, is_nullable=is_nullable, tag=tag, since=since, default=default)


def _empty(kind: str | type, *, is_array: bool, is_nullable: bool) -> Any:
    if is_array:
        return None if is_nullable else ()
    if isinstance(kind, type):
        return None if is_nullable else kind()
    return implicit_default(Field("", kind, is_nullable=is_nullable))


class RecordCodec(NamedTuple):
    """Reads and writes one version of one record."""

    read: Read
    write: Write


@cache
def record_codec(record: Any, version: int, *, is_flexible: bool = True) -> RecordCodec:
    table = _table(record, version, is_flexible)
    return RecordCodec(struct_reader(table), struct_writer(table))


def decode_record(record: Any, version: int, data: bytes, position: int = 0, *, is_flexible: bool = True) -> Any:
    """Decode one record that ends where `data` ends."""
    cursor = Cursor(data, position)
    try:
        value = record_codec(record, version, is_flexible=is_flexible).read(cursor)
    except DAMAGE as error:
        raise MalformedRecordError(f"{record.__name__} v{version}: {error}") from None
    if cursor.position != len(data):
        raise MalformedRecordError(f"{record.__name__} v{version}: {len(data) - cursor.position} bytes too many")
    return value


def _table(record: Any, version: int, is_flexible: bool) -> Struct:
    fields = []
    for field in dataclasses.fields(record):
        defined: _WireType = field.metadata[_KEY]
        if defined.since > version:
            continue
        kind = defined.type if isinstance(defined.type, str) else _table(defined.type, version, is_flexible)
        fields.append(Field(field.name, kind, defined.is_array, defined.is_nullable, defined.tag, defined.default))

    arrays = tuple(field.name for field in fields if field.is_array)
    return Struct(record.__name__, tuple(fields), is_flexible, _builder(record, arrays))


def _builder(record: Any, arrays: tuple[str, ...]) -> Any:
    """Converts arrays, which are decoded as lists, to the tuples of a frozen record."""
    if not arrays:
        return record

    def build(**values: Any) -> Any:
        for name in arrays:
            if values[name] is not None:
                values[name] = tuple(values[name])
        return record(**values)

    return build
