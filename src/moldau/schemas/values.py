"""Values in the formats of schemas: codecs encode values to the bodies that `framing` puts a schema's id before.

`encode_text` and `decode_text` use the JSON that the console tools read and print. Start at `codec_of`.
"""

from __future__ import annotations

from typing import Any, Protocol

from moldau.schemas.avro.codec import AvroCodec
from moldau.schemas.avro.schema import AvroSchema
from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.json_schema.codec import JsonCodec
from moldau.schemas.json_schema.schema import JsonSchema
from moldau.schemas.parsed_schema import ParsedSchema
from moldau.schemas.protobuf.codec import ProtobufCodec
from moldau.schemas.protobuf.schema import ProtobufSchema

__all__ = ["ValueCodec", "codec_of"]


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
