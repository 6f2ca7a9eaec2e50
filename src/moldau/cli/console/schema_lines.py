"""Converts lines of JSON to records with a schema: the line readers of the schema-aware producers.

A line is split as usual; then value and key are encoded in their schemas' formats. The JSON is that of the format
itself (Avro's, Protobuf's), not the JSON that `moldau.serdes` accepts. Start at `SchemaLineReader.parse`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from moldau.cli.console.line_reader import Line, LineReader
from moldau.cli.tool import ToolError
from moldau.client.schema_registry import RegistryClient
from moldau.core.errors import InvalidConfigError
from moldau.schemas.errors import SchemaError
from moldau.schemas.framing import frame_value
from moldau.schemas.identity import SchemaReference
from moldau.schemas.schema import ParsedSchema
from moldau.schemas.values import ValueCodec, codec_of
from moldau.serdes.schema_source import RegisteredSchema, UnfitValueError, subject_name
from moldau.serdes.serde import Part

__all__ = ["SCHEMA_READERS", "SchemaLineReader"]

SCHEMA_READERS = {
    "AvroMessageReader": "AVRO",
    "JsonSchemaMessageReader": "JSON",
    "ProtobufMessageReader": "PROTOBUF",
}
"""The simple names of the Java classes, and the schema type of each."""


class SchemaWriter:
    """Encodes keys or values of one topic. The schema is given as text, in a file, or by the id of a registered one."""

    def __init__(
        self, client: RegistryClient, properties: Mapping[str, str], *, schema_type: str, topic: str, part: Part
    ) -> None:
        """Read `value.schema`, `value.schema.id`, `value.subject.name.strategy` and so on; `key.` for keys."""
        self._client, self._properties = client, properties
        self._type, self._topic, self._part = schema_type, topic, part
        if not any(f"{part}.schema{suffix}" in properties for suffix in ("", ".id", ".file")):
            raise InvalidConfigError(
                f"Must provide the {part} schema: --property {part}.schema='...', or {part}.schema.file=, "
                f"or {part}.schema.id= of one that is registered"
            )

    def encode(self, text: bytes) -> bytes:
        """The record's bytes for a value written as JSON; raises `UnfitValueError`."""
        try:
            body = self._codec.encode_text(text.decode())
        except (SchemaError, UnicodeDecodeError) as error:
            raise UnfitValueError(f"the {self._part} does not fit its schema: {error}") from None
        return frame_value(self._id, body)

    @cached_property
    def _codec(self) -> ValueCodec:
        parsed = self._parsed if self._known is None else self._known.parsed
        return codec_of(parsed, message=self._property("message"))

    @cached_property
    def _id(self) -> int:
        """The schema's id; registers the schema only when the first valid value is sent."""
        if self._known is not None:
            return self._known.id
        given = self._properties.get("auto.register", self._properties.get("auto.register.schemas", "true"))
        send = self._client.register if _is_true(given) else self._client.look_up
        return send(self._subject, self._type, self._text, self._references).id

    @cached_property
    def _known(self) -> RegisteredSchema | None:
        """The registered schema if the properties refer to one (by id, or the latest version), else None."""
        given = self._property("schema.id")
        if given is not None:
            return self._client.schema(_number(f"{self._part}.schema.id", given))
        if _is_true(self._properties.get("use.latest.version", "false")):
            return self._client.latest(self._subject)
        return None

    @cached_property
    def _parsed(self) -> ParsedSchema:
        try:
            return self._client.parse_schema(self._type, self._text, self._references)
        except SchemaError as error:
            raise InvalidConfigError(f"the {self._part} schema cannot be used: {error}") from None

    @cached_property
    def _text(self) -> str:
        return self._property("schema") or _content(self._property("schema.file") or "")

    @cached_property
    def _references(self) -> list[SchemaReference]:
        return _references(self._property("refs"))

    @property
    def _subject(self) -> str:
        strategy = self._property("subject.name.strategy") or "TopicNameStrategy"
        return subject_name(strategy, self._topic, self._parsed.name, is_key=self._part == "key")

    def _property(self, name: str) -> str | None:
        return self._properties.get(f"{self._part}.{name}")


class SchemaLineReader(LineReader):
    is_plain = False

    def __init__(self, properties: Mapping[str, str], schema_type: str, topic: str) -> None:
        super().__init__({key: value for key, value in properties.items() if key != "value.serializer"}, topic)
        client = RegistryClient(properties)
        self._value = SchemaWriter(client, properties, schema_type=schema_type, topic=topic, part="value")
        self._key = None
        if self.parse_key and not properties.get("key.serializer"):
            self._key = SchemaWriter(client, properties, schema_type=schema_type, topic=topic, part="key")

    def parse(self, line: bytes, number: int) -> Line:
        found = super().parse(line, number)
        try:
            key = found.key if self._key is None or found.key is None else self._key.encode(found.key)
            value = None if found.value is None else self._value.encode(found.value)
        except UnfitValueError as error:
            raise ToolError(f"Line {number}: {error}") from None
        return Line(key, value, found.headers)


def _content(location: str) -> str:
    try:
        return Path(location).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfigError(f"cannot read the schema in {location}: {error}") from None


def _references(text: str | None) -> list[SchemaReference]:
    """The references to other schemas, in the registry's format: `[{"name":…,"subject":…,"version":…}]`."""
    if not text:
        return []
    try:
        return [SchemaReference(one["name"], one["subject"], one["version"]) for one in json.loads(text)]
    except (ValueError, TypeError, KeyError):
        raise InvalidConfigError(
            f'{text} is not a list of references: write [{{"name":"…","subject":"…","version":1}}]'
        ) from None


def _number(name: str, text: str) -> int:
    if not (text.strip().isascii() and text.strip().isdigit()):
        raise InvalidConfigError(f"{name}={text} is not the id of a schema")
    return int(text)


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"
