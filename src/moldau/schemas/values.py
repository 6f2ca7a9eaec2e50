"""Values in the registry's wire format: a magic byte, the schema's id, and a body in the schema's format.

The codecs encode values to bodies and decode them; `encode_text` and `decode_text` use the JSON that the console
tools read and print. Ids come from `registry` and its clients. Start at `codec_of` and `frame_value`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol
from uuid import UUID

from moldau.schemas.avro.codec import AvroCodec
from moldau.schemas.avro.schema import AvroSchema
from moldau.schemas.errors import InvalidSchemaError, InvalidValueError
from moldau.schemas.json_schema.codec import JsonCodec
from moldau.schemas.json_schema.schema import JsonSchema
from moldau.schemas.parsed_schema import ParsedSchema
from moldau.schemas.protobuf.codec import ProtobufCodec
from moldau.schemas.protobuf.schema import ProtobufSchema

__all__ = ["Frame", "ValueCodec", "codec_of", "frame_value", "parse_frame"]

_ID_MAGIC: Final = 0
_GUID_MAGIC: Final = 1


class ValueCodec(Protocol):
    """Encodes and decodes values of one schema."""

    def encode(self, value: Any) -> bytes:
        """The body of a value; raises `InvalidValueError` if it does not fit the schema."""
        ...

    def decode(self, body: bytes) -> Any:
        """The value of a body; raises `InvalidValueError` for bytes that are not a value of the schema."""
        ...

    def encode_text(self, text: str) -> bytes:
        """The body of a value written as JSON, in the format's own JSON encoding."""
        ...

    def decode_text(self, body: bytes) -> str:
        """A body's value as JSON on one line."""
        ...


@dataclass(frozen=True, slots=True)
class Frame:
    """A record's key or value, split into body and schema. Either `schema_id` or `guid` is set."""

    body: bytes
    schema_id: int | None = None
    guid: str | None = None


def codec_of(schema: ParsedSchema, *, reader: ParsedSchema | None = None, message: str | None = None) -> ValueCodec:
    """The codec of a schema. `reader` (Avro) is the schema that decoded values are converted to, `message` (Protobuf)
    the full name of the type to encode, by default the schema's first message."""
    match schema:
        case AvroSchema():
            if reader is not None and not isinstance(reader, AvroSchema):
                raise InvalidSchemaError(f"Avro data cannot be read with a schema of type {reader.schema_type}")
            return AvroCodec(schema, reader=reader)
        case JsonSchema():
            return JsonCodec(schema)
        case ProtobufSchema():
            return ProtobufCodec(schema, message)
    raise InvalidSchemaError(f"there are no values for schemas of type {schema.schema_type}")


def frame_value(schema_id: int, body: bytes) -> bytes:
    """The bytes of a record's key or value."""
    if not 0 <= schema_id < 2**32:
        raise InvalidValueError(f"{schema_id} is not a schema id: it has to fit into four bytes")
    return bytes([_ID_MAGIC]) + schema_id.to_bytes(4, "big") + body


def parse_frame(payload: bytes) -> Frame:
    """Split a record's key or value; raises `InvalidValueError` if it does not name its schema."""
    if len(payload) >= 5 and payload[0] == _ID_MAGIC:
        return Frame(payload[5:], schema_id=int.from_bytes(payload[1:5], "big"))
    if len(payload) >= 17 and payload[0] == _GUID_MAGIC:
        return Frame(payload[17:], guid=str(UUID(bytes=payload[1:17])))
    if payload[:1] in (b"\x00", b"\x01"):
        raise InvalidValueError(f"{len(payload)} bytes are too few for data with a schema id before it")
    raise InvalidValueError("Unknown magic byte! The data were not written with a schema of a registry")
