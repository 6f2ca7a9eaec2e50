"""Avro, JSON Schema and Protobuf as Confluent's serdes write them, through a schema registry.

Values are plain Python values. How bytes, subjects and the registry come together is `schema_serde`. Start at
`AvroSerde`; the other two differ in the format only.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Unpack

from moldau.client.registered_schemas import SchemaText
from moldau.client.schema_record import SchemaRecord, remembering
from moldau.client.schema_serde import Decode, Encode, SchemaSerde
from moldau.client.serde_options import GivenSchema, RegistryOptions, SerdeOptions
from moldau.schemas.protobuf.codec import ProtobufCodec
from moldau.schemas.values import ValueCodec

__all__ = ["AvroSerde", "JsonSchemaSerde", "ProtobufSerde"]


class AvroSerde(SchemaSerde):
    """Avro. Records are dicts; logical types are what Python has for them (`Decimal`, `datetime`, `UUID`).

    schema: what to write with: a text, a dict, or a `Path` to a file. Without one, records are written with the schema
        they were read with, plain values (str, int, float, bool, bytes) with Avro's own types, and others with the
        latest version of the subject.
    reader_schema: what to see records as when they were written with other versions; without one, as they were written.
    options: `registry_url`, `user_info`, `auto_register`, `use_latest_version`, `subject_name_strategy` override the
        settings of the application; `references` are schemas that this one builds on. See `RegistryOptions`.
    """

    schema_type = "AVRO"
    _PLAIN: ClassVar[Mapping[type, SchemaText]] = {
        kind: SchemaText("AVRO", f'"{name}"')
        for kind, name in ((str, "string"), (bytes, "bytes"), (bool, "boolean"), (int, "long"), (float, "double"))
    }

    def __init__(
        self,
        schema: GivenSchema | None = None,
        *,
        reader_schema: GivenSchema | None = None,
        **options: Unpack[RegistryOptions],
    ) -> None:
        super().__init__(SerdeOptions.of(schema, reader_schema=reader_schema, **options))

    def schema_of(self, value: Any) -> SchemaText | None:
        return self._PLAIN.get(type(value))


class JsonSchemaSerde(SchemaSerde):
    """JSON that fits a JSON Schema. What is written is checked; what is read is taken as it comes.

    The arguments are those of `AvroSerde`, without a schema to read with.
    """

    schema_type = "JSON"

    def __init__(self, schema: GivenSchema | None = None, **options: Unpack[RegistryOptions]) -> None:
        super().__init__(SerdeOptions.of(schema, **options))


class ProtobufSerde(SchemaSerde):
    """Protobuf messages as dicts by field name: enums are names, 64-bit numbers numbers, bytes bytes.

    schema: the text of a .proto file, or a `Path` to it.
    message: the type to write, by name, where the schema has several and it is not the first.

    Fields that know whether they were set are missing where they were not. The options are those of `AvroSerde`.
    """

    schema_type = "PROTOBUF"

    def __init__(
        self, schema: str | Path | None = None, *, message: str | None = None, **options: Unpack[RegistryOptions]
    ) -> None:
        super().__init__(SerdeOptions.of(schema, message=message, **options))

    def encoding(self, codec: ValueCodec) -> Encode:
        assert isinstance(codec, ProtobufCodec)
        return codec.encode_dict

    def decoding(self, codec: ValueCodec, schema: SchemaText) -> Decode:
        assert isinstance(codec, ProtobufCodec)
        schemas: dict[str, SchemaText] = {}

        def read(body: bytes) -> SchemaRecord:
            message = codec.decode(body)
            name = message.DESCRIPTOR.full_name
            own = schemas.get(name) or schemas.setdefault(name, schema._replace(message=name))
            return remembering(codec.as_dict(message), own)

        return read
