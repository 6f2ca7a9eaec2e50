"""Serdes for Avro, JSON Schema and Protobuf in Confluent's format: a magic byte, the schema's id, the data.

Values are plain Python values. Only a serde's options are pickled; each process connects to its schema source itself,
when it needs to. A record that was read keeps its schema, so that it can be written again without specifying one.
Start at `AvroSerde` and `SchemaSerde.serialize`; the other two formats differ only slightly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self, Unpack

from moldau.core.errors import InvalidConfigError
from moldau.schemas.errors import SchemaError
from moldau.schemas.framing import frame_value, parse_frame
from moldau.schemas.protobuf.codec import ProtobufCodec
from moldau.schemas.schema import ParsedSchema, parse
from moldau.schemas.values import ValueCodec, codec_of
from moldau.serdes.schema_options import GivenSchema, RegistryOptions, SerdeOptions
from moldau.serdes.schema_source import (
    ConnectSchemas,
    RegisteredSchema,
    SchemaSource,
    SchemaSourceError,
    SchemaText,
    UnfitValueError,
    subject_name,
)
from moldau.serdes.serde import Headers, Part

__all__ = ["AvroSerde", "JsonSchemaSerde", "ProtobufSerde", "SchemaRecord", "SchemaSerde"]

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Any]
PREFIX = 5
"""Size in bytes of the magic byte and the schema's id."""

MOCK_SCHEME = "mock"


class SchemaRecord(dict[str, Any]):
    """A record: a dict with the schema it was read with. A copy of it is a plain dict."""

    __slots__ = ("schema",)

    schema: SchemaText
    """Set by `record_with_schema`, the only function that creates these records."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (record_with_schema, (dict(self), self.schema))


def record_with_schema(fields: Mapping[str, Any], schema: SchemaText) -> SchemaRecord:
    """A record with its schema."""
    # Not an `__init__`: that would take as long again as the copy, for each record that is read.
    record = SchemaRecord(fields)
    record.schema = schema
    return record


class SchemaSerde:
    """Base class of `AvroSerde`, `JsonSchemaSerde` and `ProtobufSerde`; use one of these."""

    schema_type: ClassVar[str]
    uses_headers: ClassVar[bool] = False

    def __init__(self, options: SerdeOptions) -> None:
        self.options = options
        self._writers: dict[str, Encode] = {}
        self._readers: dict[bytes, Decode] = {}

    def serialize(self, topic: str, value: Any, headers: Headers | None = None) -> bytes:
        """The magic byte, the schema's id and the data; raises `UnfitValueError` for a value that does not fit."""
        write = self._writers.get(topic) or self._writer(topic)
        try:
            return write(value)
        except SchemaError as error:
            raise UnfitValueError(f"{error} ({type(value).__name__})") from error

    def deserialize(self, topic: str, data: bytes, headers: Headers | None = None) -> Any:
        """The value, decoded with the schema whose id is in the data; raises `UnfitValueError`."""
        read = self._readers.get(data[:PREFIX])
        try:
            return read(data[PREFIX:]) if read is not None else self._first_read(data)
        except SchemaError as error:
            raise UnfitValueError(str(error)) from error

    def with_schema_source(self, connect: ConnectSchemas) -> Self:
        """A copy of the serde that gets schemas from the source that `connect` returns."""
        return self._of(replace(self.options, connect=connect))

    def configured(self, config: Mapping[str, Any], part: Part) -> Self:
        """A copy of the serde for keys or values, with an application's settings; its own options override them.

        Raises `InvalidConfigError` for options that can never work.
        """
        made = self._of(self.options.configured(config, part))
        made._check()
        return made

    def from_text(self, topic: str, text: str) -> Any:
        """A value from user input: parsed as JSON if that fits the schema, else the text itself."""
        schema = self._given
        registered = self._latest(topic, None) if schema is None else self._find_or_register(topic, schema)
        encode = self._encode_with(registered)
        for candidate in _candidates(text):
            try:
                encode(candidate)
            except SchemaError:
                continue
            return candidate
        raise UnfitValueError(f"{text!r} does not fit the schema of subject {self._subject(topic, schema)}")

    # Overridden by subclasses

    def encoding(self, codec: ValueCodec) -> Encode:
        """The function that encodes values, without the magic byte and the id."""
        return codec.encode

    def decoding(self, codec: ValueCodec, schema: SchemaText) -> Decode:
        """The function that decodes data without magic byte and id; records keep this schema."""
        decode = codec.decode

        def read(body: bytes) -> Any:
            value = decode(body)
            return record_with_schema(value, schema) if type(value) is dict else value

        return read

    def schema_of(self, value: Any) -> SchemaText | None:
        """The schema to write a value with that is not a `SchemaRecord`; `None` if unknown."""
        return None

    # Writing

    def _writer(self, topic: str) -> Encode:
        """The function that serializes values of a topic, created on first use."""
        schema = self._given
        if self.options.use_latest_version:
            write = self._encode_with(self._latest(topic, schema))
        elif schema is not None:
            write = self._encode_with(self._find_or_register(topic, schema))
        else:
            write = self._encode_by_value(topic)
        self._writers[topic] = write
        return write

    def _encode_by_value(self, topic: str) -> Encode:
        """Encoder for a serde without a schema: uses each value's own schema, or else the latest registered one."""
        known: dict[SchemaText | None, Encode] = {}
        last: tuple[SchemaText | None, Encode | None] = (None, None)

        def write(value: Any) -> bytes:
            # Threads that share a producer run this concurrently, so schema and encoder are read as one tuple.
            nonlocal last
            schema = value.schema if type(value) is SchemaRecord else self.schema_of(value)
            last_schema, encode = last
            # Records read by one serde share the same schema object; `is` is faster than hashing it.
            if encode is None or schema is not last_schema:
                encode = known.get(schema)
                if encode is None:
                    encode = known[schema] = self._encode_again(topic, schema)
                last = (schema, encode)
            return encode(value)

        return write

    def _encode_again(self, topic: str, schema: SchemaText | None) -> Encode:
        """Encoder with the schema a record was read with; a record with new fields is an error (Avro only)."""
        if schema is None or schema.schema_type != self.schema_type:
            return self._encode_with(self._latest(topic, None))
        registered = self._find_or_register(topic, schema)
        encode = self._encode_with(registered, schema.message)
        fields = registered.parsed.top_level_fields if self.schema_type == "AVRO" else frozenset()
        if not fields:
            return encode

        def write(record: Any) -> bytes:
            if not record.keys() <= fields:
                raise SchemaSourceError(
                    f"no schema to write topic {topic} with: the record has {', '.join(record.keys() - fields)}, "
                    f"which are not in the schema it was read with; write {type(self).__name__}(schema)"
                )
            return encode(record)

        return write

    def _encode_with(self, registered: RegisteredSchema, message: str | None = None) -> Encode:
        encode = self.encoding(codec_of(registered.parsed, message=message or self.options.message))
        prefix = frame_value(registered.id, b"")
        return lambda value: prefix + encode(value)

    def _find_or_register(self, topic: str, schema: SchemaText) -> RegisteredSchema:
        subject = self._subject(topic, schema)
        return self._schemas.registered(subject, schema, may_register=self.options.may_register)

    def _latest(self, topic: str, schema: SchemaText | None) -> RegisteredSchema:
        subject, kind = self._subject(topic, schema), type(self).__name__
        found = self._schemas.latest(subject)
        if found is None:
            raise SchemaSourceError(
                f"no schema to write topic {topic} with: {kind} was given none, and subject {subject} has none; "
                f"write {kind}(schema), or register one under that subject"
            )
        if found.parsed.schema_type != self.schema_type:
            raise SchemaSourceError(
                f"subject {subject} has a schema of type {found.parsed.schema_type}, which {kind} cannot write; use "
                "the serde of that type"
            )
        return found

    def _subject(self, topic: str, schema: SchemaText | None) -> str:
        strategy = self.options.strategy
        is_by_topic = strategy.endswith("TopicNameStrategy")
        name = None if is_by_topic or schema is None else schema.message or self._schemas.parsed_name(schema)
        try:
            return subject_name(strategy, topic, name, is_key=self.options.is_key)
        except InvalidConfigError as error:
            raise SchemaSourceError(
                f"topic {topic} has no subject: {error}; give the serde a schema with a name, or use TopicNameStrategy"
            ) from None

    @property
    def _given(self) -> SchemaText | None:
        text = self.options.schema or self.options.reader_schema
        return (
            None if text is None else SchemaText(self.schema_type, text, self.options.references, self.options.message)
        )

    # Reading

    def _first_read(self, data: bytes) -> Any:
        """Decode the first value with a schema id, and cache the decoder."""
        frame = parse_frame(data)
        if frame.schema_id is None:
            return self._decode_with(frame.guid or "")(frame.body)
        read = self._readers[data[:PREFIX]] = self._decode_with(frame.schema_id)
        return read(frame.body)

    def _decode_with(self, name: int | str) -> Decode:
        parsed, references = self._schemas.schema(name)[1:]
        if parsed.schema_type != self.schema_type:
            raise UnfitValueError(
                f"it was written with schema {name} of type {parsed.schema_type}, not {self.schema_type}; "
                "use the serde of that type"
            )
        codec = codec_of(parsed, reader=self._reader)
        return self.decoding(codec, SchemaText(self.schema_type, parsed.canonical, references))

    @property
    def _reader(self) -> ParsedSchema | None:
        text = self.options.reader_schema
        return None if text is None else parse(self.schema_type, text)

    # Settings and pickling

    @property
    def _schemas(self) -> SchemaSource:
        connect = self.options.connect
        if connect is None:
            raise InvalidConfigError(
                f"{type(self).__name__} is not connected to a schema source yet: give it to a producer, a "
                "consumer or a topology, or call moldau.client.prepared_serde"
            )
        if not self.options.registry_url:
            raise InvalidConfigError(
                f"schema.registry.url is missing: {type(self).__name__} needs a registry, such as "
                "http://localhost:8081, or mock://name in tests"
            )
        return connect(self.options.registry_url, self.options.user_info)

    def _check(self) -> None:
        """Raise `InvalidConfigError` for options that would fail for every record."""
        options = self.options
        _ = self._schemas
        subject_name(options.strategy, "topic", "name", is_key=options.is_key)
        try:
            _ = self._reader
            if options.schema is not None and not options.references:
                codec_of(parse(self.schema_type, options.schema), message=options.message)
        except SchemaError as error:
            raise InvalidConfigError(f"the schema of {type(self).__name__} cannot be used: {error}") from None

    @classmethod
    def _of(cls, options: SerdeOptions) -> Self:
        made = cls.__new__(cls)
        SchemaSerde.__init__(made, options)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        if (self.options.registry_url or "").startswith(f"{MOCK_SCHEME}://"):
            raise InvalidConfigError(
                f"{self.options.registry_url} is a registry inside one process, which Spark's workers cannot "
                "reach: use TopologyTestDriver in memory, or a registry that is reached over HTTP"
            )
        return (_restore, (type(self), self.options))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, SchemaSerde) and other.options == self.options

    def __hash__(self) -> int:
        return hash((type(self), self.options))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.options.schema or ''})"


class AvroSerde(SchemaSerde):
    """Avro. Records are dicts; logical types are the matching Python types (`Decimal`, `datetime`, `UUID`).

    schema: the schema to write with: a text, a dict, or a `Path` to a file. Without one, records are written with the
        schema they were read with, plain values (str, int, float, bool, bytes) with Avro's primitive types, and others
        with the latest version of the subject.
    reader_schema: the schema to convert records to when reading; without one, they are read as they were written.
    options: `registry_url`, `user_info`, `auto_register`, `use_latest_version`, `subject_name_strategy` override the
        settings of the application; `references` are schemas that this one refers to. See `RegistryOptions`.
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
    """JSON with a JSON Schema. Values are validated when written, not when read.

    The arguments are those of `AvroSerde`, without `reader_schema`.
    """

    schema_type = "JSON"

    def __init__(self, schema: GivenSchema | None = None, **options: Unpack[RegistryOptions]) -> None:
        super().__init__(SerdeOptions.of(schema, **options))


class ProtobufSerde(SchemaSerde):
    """Protobuf messages as dicts by field name: enums are names (str), 64-bit numbers are int, bytes are bytes.

    schema: the text of a .proto file, or a `Path` to it.
    message: name of the message type to write, if it is not the first one of the schema.

    Fields with presence that were not set are missing from the dict. The options are those of `AvroSerde`.
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
            return record_with_schema(codec.as_dict(message), own)

        return read


def _candidates(text: str) -> Iterator[Any]:
    try:
        yield json.loads(text)
    except ValueError:
        pass
    yield text


def _restore(kind: type[SchemaSerde], options: SerdeOptions) -> SchemaSerde:
    return kind._of(options)
