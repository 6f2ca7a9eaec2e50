"""Avro, JSON Schema and Protobuf as Confluent's serdes write them: a magic byte, a registered schema's id, the data.

Values are plain Python values. A serde is a description and travels between processes as one; each process connects to
its schema source by itself, when it needs to. Records that were read remember their schema, so that they can be written
again without naming one. Start at `AvroSerde` and `SchemaSerde.serialize`; the other two formats differ in little.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self, Unpack

from moldau.core.errors import InvalidConfigError
from moldau.schemas.errors import SchemaError
from moldau.schemas.protobuf.codec import ProtobufCodec
from moldau.schemas.schema import ParsedSchema, parse
from moldau.schemas.values import ValueCodec, codec_of, frame_value, parse_frame
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
"""The magic byte and the schema's id."""

MOCK_SCHEME = "mock"


class SchemaRecord(dict[str, Any]):
    """A record as a dict that remembers the schema it was read with; a copy made of it is a plain dict."""

    __slots__ = ("schema",)

    schema: SchemaText
    """Set by `record_with_schema`, the only maker."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (record_with_schema, (dict(self), self.schema))


def record_with_schema(fields: Mapping[str, Any], schema: SchemaText) -> SchemaRecord:
    """A record with its schema."""
    # Not a constructor of its own: that would cost as much again as the copy, and each record that is read pays it.
    record = SchemaRecord(fields)
    record.schema = schema
    return record


class SchemaSerde:
    """Use `AvroSerde`, `JsonSchemaSerde` or `ProtobufSerde`."""

    schema_type: ClassVar[str]
    uses_headers: ClassVar[bool] = False

    def __init__(self, options: SerdeOptions) -> None:
        self.options = options
        self._writers: dict[str, Encode] = {}
        self._readers: dict[bytes, Decode] = {}

    def serialize(self, topic: str, value: Any, headers: Headers | None = None) -> bytes:
        """The magic byte, the schema's id and the value; raises `UnfitValueError` for a value that does not fit."""
        write = self._writers.get(topic) or self._writer(topic)
        try:
            return write(value)
        except SchemaError as error:
            raise UnfitValueError(f"{error} ({type(value).__name__})") from error

    def deserialize(self, topic: str, data: bytes, headers: Headers | None = None) -> Any:
        """The value of some bytes, read with the schema that they name."""
        read = self._readers.get(data[:PREFIX])
        try:
            return read(data[PREFIX:]) if read is not None else self._first_read(data)
        except SchemaError as error:
            raise UnfitValueError(str(error)) from error

    def with_schema_source(self, connect: ConnectSchemas) -> Self:
        """The same serde, which asks the schemas that `connect` connects to."""
        return self._of(replace(self.options, connect=connect))

    def configured(self, config: Mapping[str, Any], part: Part) -> Self:
        """The serde for keys or for values of an application with these settings; its own options win over them.

        Raises `InvalidConfigError` for what can never work.
        """
        made = self._of(self.options.configured(config, part))
        made._check()
        return made

    def from_text(self, topic: str, text: str) -> Any:
        """A value that a person typed: as JSON, or as text where that fits the schema."""
        schema = self._given
        registered = self._latest(topic, None) if schema is None else self._registered(topic, schema)
        encode = self._encode_with(registered)
        for candidate in _candidates(text):
            try:
                encode(candidate)
            except SchemaError:
                continue
            return candidate
        raise UnfitValueError(f"{text!r} does not fit the schema of subject {self._subject(topic, schema)}")

    # What kinds differ in

    def encoding(self, codec: ValueCodec) -> Encode:
        """Values to bodies."""
        return codec.encode

    def decoding(self, codec: ValueCodec, schema: SchemaText) -> Decode:
        """Bodies to values that remember this schema, where they can."""
        decode = codec.decode

        def read(body: bytes) -> Any:
            value = decode(body)
            return record_with_schema(value, schema) if type(value) is dict else value

        return read

    def schema_of(self, value: Any) -> SchemaText | None:
        """The schema of a value that remembers none."""
        return None

    # Writing

    def _writer(self, topic: str) -> Encode:
        """How to write values of a topic."""
        schema = self._given
        if self.options.use_latest_version:
            write = self._encode_with(self._latest(topic, schema))
        elif schema is not None:
            write = self._encode_with(self._registered(topic, schema))
        else:
            write = self._encode_by_value(topic)
        self._writers[topic] = write
        return write

    def _encode_by_value(self, topic: str) -> Encode:
        """Without a schema of the serde's own: with that of each value, or else the latest that is registered."""
        known: dict[SchemaText | None, Encode] = {}
        last: tuple[SchemaText | None, Encode | None] = (None, None)

        def write(value: Any) -> bytes:
            # Threads that share a producer come here at the same time, so schema and encoder are read as one.
            nonlocal last
            schema = value.schema if type(value) is SchemaRecord else self.schema_of(value)
            last_schema, encode = last
            # Records that were read by one serde have one and the same schema object, and hashing it takes longer.
            if encode is None or schema is not last_schema:
                encode = known.get(schema)
                if encode is None:
                    encode = known[schema] = self._encode_again(topic, schema)
                last = (schema, encode)
            return encode(value)

        return write

    def _encode_again(self, topic: str, schema: SchemaText | None) -> Encode:
        """With the schema that a record was read with, which must still have all its fields."""
        if schema is None or schema.schema_type != self.schema_type:
            return self._encode_with(self._latest(topic, None))
        registered = self._registered(topic, schema)
        encode = self._encode_with(registered, schema.message)
        fields = registered.parsed.top_level_fields if self.schema_type == "AVRO" else frozenset()
        if not fields:
            return encode

        def write(record: Any) -> bytes:
            if not record.keys() <= fields:
                raise SchemaSourceError(
                    f"no schema to write topic {topic} with: the record has got {', '.join(record.keys() - fields)}, "
                    f"which the schema it was read with does not know; write {type(self).__name__}(schema)"
                )
            return encode(record)

        return write

    def _encode_with(self, registered: RegisteredSchema, message: str | None = None) -> Encode:
        encode = self.encoding(codec_of(registered.parsed, message=message or self.options.message))
        prefix = frame_value(registered.id, b"")
        return lambda value: prefix + encode(value)

    def _registered(self, topic: str, schema: SchemaText) -> RegisteredSchema:
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
        """Read the first value with a schema."""
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

    # Settings, processes

    @property
    def _schemas(self) -> SchemaSource:
        connect = self.options.connect
        if connect is None:
            raise InvalidConfigError(
                f"{type(self).__name__} has no schemas to ask yet: give it to a producer, a consumer or a topology, or "
                "call moldau.client.prepared_serde"
            )
        if not self.options.registry_url:
            raise InvalidConfigError(
                f"schema.registry.url is missing: {type(self).__name__} needs a registry, such as "
                "http://localhost:8081, or mock://name in tests"
            )
        return connect(self.options.registry_url, self.options.user_info)

    def _check(self) -> None:
        """Refuse what no record could pass, before the first one comes."""
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
                f"{self.options.registry_url} is a registry inside one process, and Spark's workers are others: use "
                "TopologyTestDriver in memory, or a registry that is reached over HTTP"
            )
        return (_restored, (type(self), self.options))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, SchemaSerde) and other.options == self.options

    def __hash__(self) -> int:
        return hash((type(self), self.options))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.options.schema or ''})"


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
            return record_with_schema(codec.as_dict(message), own)

        return read


def _candidates(text: str) -> Iterator[Any]:
    try:
        yield json.loads(text)
    except ValueError:
        pass
    yield text


def _restored(kind: type[SchemaSerde], options: SerdeOptions) -> SchemaSerde:
    return kind._of(options)
