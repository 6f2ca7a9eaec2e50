"""Encodes and decodes Avro values with fastavro; data that could crash fastavro is checked first.

fastavro recurses as deep as the data says and builds arrays as long as the data claims, which can crash the
process. Start at `AvroCodec`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import cached_property
from typing import Any

import fastavro

from moldau.schemas.avro.binary import MAX_DEPTH, BinaryReader, long_bytes, skip
from moldau.schemas.avro.json_encoding import from_binary, to_binary
from moldau.schemas.avro.printer import canonical_text
from moldau.schemas.avro.schema import AvroSchema
from moldau.schemas.avro.types import Array, AvroType, Fixed, Map, Primitive, Record, Union
from moldau.schemas.errors import InvalidValueError
from moldau.schemas.json_text import load, nesting, render

__all__ = ["AvroCodec"]


class AvroCodec:
    """Encodes and decodes values of a schema; if `reader` is given, decoded values are converted to that schema."""

    def __init__(self, schema: AvroSchema, *, reader: AvroSchema | None = None, name_branches: bool = False) -> None:
        """With `name_branches`, a value of a named type inside a union is decoded as a pair of name and value."""
        self._schema = schema
        self._name_branches = name_branches
        self._reader = reader
        self._is_bare_bytes = isinstance(schema.type, Primitive) and schema.type.kind == "bytes"
        """Whether the schema is just `bytes`: the record's bytes are then the value, without a length prefix."""

    def encode(self, value: Any) -> bytes:
        if self._is_bare_bytes:
            return _bytes_only(value)
        if self._needs_a_look and nesting(value) > MAX_DEPTH:
            raise InvalidValueError(f"the value is nested more than {MAX_DEPTH} levels deep")
        parsed, output = self._parsed_writer, io.BytesIO()
        # `_call_fastavro` inlined for speed: pipelines call this for every record.
        try:
            fastavro.schemaless_writer(output, parsed, value)
        except Exception as error:
            raise _value_error(error, "does not fit the Avro schema", "the value") from None
        return output.getvalue()

    def decode(self, body: bytes) -> Any:
        if self._is_bare_bytes and self._reader is None:
            return body
        if self._needs_a_look:
            skip(BinaryReader(body), self._schema.type)
        source = io.BytesIO(long_bytes(len(body)) + body if self._is_bare_bytes else body)
        parsed, reader = self._parsed_writer, self._parsed_reader
        try:
            return fastavro.schemaless_reader(source, parsed, reader, return_named_type=self._name_branches)
        except Exception as error:
            raise _value_error(error, "do not match the Avro schema", "the bytes") from None

    def encode_text(self, text: str) -> bytes:
        """Encode a value written in Avro's JSON encoding."""
        value = load(text, "value", InvalidValueError)
        body = to_binary(value, self._schema.type)
        return value.encode("latin-1") if self._is_bare_bytes else body

    def decode_text(self, body: bytes) -> str:
        """Decode into Avro's JSON encoding."""
        return render(body.decode("latin-1") if self._is_bare_bytes else from_binary(body, self._schema.type))

    @cached_property
    def _parsed_writer(self) -> Any:
        return _for_fastavro(self._schema.type)

    @cached_property
    def _parsed_reader(self) -> Any:
        return None if self._reader is None else _for_fastavro(self._reader.type)

    @cached_property
    def _needs_a_look(self) -> bool:
        return _is_recursive_or_has_empty_items(self._schema.type)


def _for_fastavro(avro_type: AvroType) -> Any:
    return _call_fastavro(
        "cannot be used for values", lambda: fastavro.parse_schema(json.loads(canonical_text(avro_type))), "the schema"
    )


def _call_fastavro(problem: str, action: Callable[[], Any], subject: str = "the value") -> Any:
    """Call `action` and raise any exception as `InvalidValueError`: fastavro raises exceptions of many types."""
    try:
        return action()
    except Exception as error:
        raise _value_error(error, problem, subject) from None


def _value_error(error: Exception, problem: str, subject: str) -> InvalidValueError:
    return InvalidValueError(f"{subject} {problem}: {error or type(error).__name__}")


def _bytes_only(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise InvalidValueError(f"{value!r} is not bytes, the only type that the Avro schema allows")
    return bytes(value)


def _is_recursive_or_has_empty_items(root: AvroType) -> bool:
    """Whether a few bytes could encode a value of any depth or length."""
    finished: set[int] = set()

    def visit(avro_type: AvroType, above: frozenset[int]) -> bool:
        match avro_type:
            case Record():
                if id(avro_type) in above:
                    return True
                if id(avro_type) in finished:
                    return False
                found = any(visit(field.type, above | {id(avro_type)}) for field in avro_type.fields)
                finished.add(id(avro_type))
                return found
            case Array():
                return _may_be_empty(avro_type.items, frozenset()) or visit(avro_type.items, above)
            case Map():
                return visit(avro_type.values, above)
            case Union():
                return any(visit(branch, above) for branch in avro_type.branches)
        return False

    try:
        return visit(root, frozenset())
    except RecursionError:
        return True


def _may_be_empty(avro_type: AvroType, above: frozenset[int]) -> bool:
    """Whether values of a type may be encoded as zero bytes."""
    match avro_type:
        case Primitive(kind):
            return kind == "null"
        case Fixed():
            return avro_type.size == 0
        case Record():
            inside = above | {id(avro_type)}
            return id(avro_type) not in above and all(_may_be_empty(field.type, inside) for field in avro_type.fields)
    return False
