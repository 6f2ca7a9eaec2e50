"""Encodes and decodes Protobuf messages, prefixed with the positions that identify the message in the schema.

Positions and their count are zigzag varints; the first message, by far the most common, is encoded as a single zero.
Start at `ProtobufCodec`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.message import DecodeError, EncodeError
from google.protobuf.message import Message as ProtobufMessage
from google.protobuf.message_factory import GetMessageClass

from moldau.schemas.errors import InvalidSchemaError, InvalidValueError
from moldau.schemas.json_text import load, render
from moldau.schemas.protobuf.dicts import MessageDicts
from moldau.schemas.protobuf.schema import ProtobufSchema

__all__ = ["ProtobufCodec", "decode_indexes", "encode_indexes"]

_MAX_INDEXES: Final = 32
"""The maximum nesting of messages in a schema."""


class ProtobufCodec:
    """Encodes messages of one type of the schema (the first unless named); decodes any of its types."""

    def __init__(self, schema: ProtobufSchema, message: str | None = None) -> None:
        self._schema = schema
        name = message or schema.message_name([0])
        self._indexes = schema.message_indexes(name)
        self._name = schema.message_name(self._indexes)
        self._classes: dict[str, type[ProtobufMessage]] = {}

    def encode(self, value: Any) -> bytes:
        """Encode a message, or a dict in Protobuf's JSON mapping."""
        message = value if isinstance(value, ProtobufMessage) else self._from_json(value)
        if message.DESCRIPTOR.full_name != self._name:
            raise InvalidValueError(f"{message.DESCRIPTOR.full_name} is no {self._name}")
        try:
            return self._prefix + message.SerializeToString()
        except (EncodeError, ValueError) as error:
            raise InvalidValueError(f"the message cannot be encoded: {error}") from None

    def decode(self, body: bytes) -> ProtobufMessage:
        indexes, start = decode_indexes(body)
        try:
            return self._class_of(self._schema.message_name(indexes)).FromString(body[start:])
        except (DecodeError, InvalidSchemaError) as error:
            raise InvalidValueError(f"the data are not a message of the Protobuf schema: {error}") from None

    def encode_dict(self, value: Any) -> bytes:
        """Encode a message, or a dict of plain values by field name."""
        if isinstance(value, ProtobufMessage):
            return self.encode(value)
        message = self._class_of(self._name)()
        self._dicts.fill(message, value)
        return self.encode(message)

    def as_dict(self, message: ProtobufMessage) -> dict[str, Any]:
        """A decoded message as a dict of plain values by field name."""
        return self._dicts.to_dict(message)

    def encode_text(self, text: str) -> bytes:
        """Encode a message written in Protobuf's JSON mapping."""
        return self.encode(load(text, "value", InvalidValueError))

    def decode_text(self, body: bytes) -> str:
        """Decode into Protobuf's JSON mapping, including unset fields that do not track presence."""
        message = self.decode(body)
        try:
            fields = json_format.MessageToDict(
                message, always_print_fields_with_no_presence=True, descriptor_pool=self._schema.compiled.pool
            )
            return render(fields)
        except Exception as error:
            raise InvalidValueError(f"the message cannot be shown as JSON: {error}") from None

    def _from_json(self, value: Any) -> ProtobufMessage:
        if not isinstance(value, dict):
            raise InvalidValueError(f"the value is no {self._name}: a message is written as a JSON object")
        message = self._class_of(self._name)()
        try:
            json_format.ParseDict(value, message, descriptor_pool=self._schema.compiled.pool)
        except Exception as error:
            raise InvalidValueError(f"the value is no {self._name}: {error}") from None
        return message

    def _class_of(self, name: str) -> type[ProtobufMessage]:
        known = self._classes.get(name)
        if known is None:
            try:
                known = self._classes[name] = GetMessageClass(self._schema.compiled.message(name))
            except (InvalidSchemaError, KeyError) as error:
                raise InvalidValueError(f"the Protobuf schema cannot be used for values: {error}") from None
        return known

    @cached_property
    def _dicts(self) -> MessageDicts:
        return MessageDicts(self._schema.compiled.pool)

    @cached_property
    def _prefix(self) -> bytes:
        return encode_indexes(self._indexes)


def encode_indexes(indexes: list[int]) -> bytes:
    """Encode the positions of a message as a prefix of its data."""
    if indexes == [0]:
        return b"\x00"
    return b"".join(_zigzag(number) for number in (len(indexes), *indexes))


def decode_indexes(body: bytes) -> tuple[list[int], int]:
    """Return the positions at the start of the data, and the offset of the message itself."""
    count, offset = _unzigzag(body, 0)
    if count == 0:
        return [0], offset
    if not 0 < count <= _MAX_INDEXES:
        raise InvalidValueError(f"the message indexes of the data claim {count} entries")
    indexes = []
    for _ in range(count):
        index, offset = _unzigzag(body, offset)
        indexes.append(index)
    return indexes, offset


def _zigzag(number: int) -> bytes:
    value = number << 1
    parts = bytearray()
    while value > 0x7F:
        parts.append((value & 0x7F) | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _unzigzag(body: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if offset >= len(body) or shift > 28:
            raise InvalidValueError("the data end within their message indexes")
        byte = body[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), offset
        shift += 7
