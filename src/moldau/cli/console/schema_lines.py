"""Lines of JSON that become records with a schema: what the readers of the schema-aware producers do.

A line is split as usual; then value and key are written in their schemas' formats, each behind the id that the
registry gave. Start at `SchemaLineReader.parse`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Literal

from moldau.cli.console.line_reader import Line, LineReader
from moldau.cli.options import parse_bool
from moldau.cli.tool import ToolError
from moldau.client.schema_registry import RegisteredSchema, RegistryClient, subject_name
from moldau.schemas.errors import InvalidValueError
from moldau.schemas.identity import SchemaReference
from moldau.schemas.schema import ParsedSchema
from moldau.schemas.values import ValueCodec, codec_of, framed

__all__ = ["SCHEMA_READERS", "SchemaLineReader"]

SCHEMA_READERS = {
    "AvroMessageReader": "AVRO",
    "JsonSchemaMessageReader": "JSON",
    "ProtobufMessageReader": "PROTOBUF",
}
"""The Java classes by their last name, and the type of schema each is for."""

Part = Literal["key", "value"]


class SchemaLineReader(LineReader):
    is_plain = False

    def __init__(self, properties: Mapping[str, str], schema_type: str, topic: str) -> None:
        super().__init__(properties)
        client = RegistryClient(properties)
        self._value = _Part(properties, schema_type, topic, "value", client)
        self._key = None
        if self.parse_key and not properties.get("key.serializer"):
            self._key = _Part(properties, schema_type, topic, "key", client)

    def parse(self, line: bytes, number: int) -> Line:
        found = super().parse(line, number)
        key = found.key if self._key is None or found.key is None else self._key.encode(found.key, number)
        value = None if found.value is None else self._value.encode(found.value, number)
        return Line(key, value, found.headers)


class _Part:
    """The key's or the value's schema, as the properties give it: as text, in a file, or by its id."""

    def __init__(
        self, properties: Mapping[str, str], schema_type: str, topic: str, part: Part, client: RegistryClient
    ) -> None:
        self._properties, self._type, self._topic, self._part, self._client = (
            properties,
            schema_type,
            topic,
            part,
            client,
        )
        if not any(f"{part}.schema{suffix}" in properties for suffix in ("", ".id", ".file")):
            raise ToolError(
                f"Must provide the {part} schema: --property {part}.schema='...', or {part}.schema.file=, "
                f"or {part}.schema.id= of one that is registered"
            )

    def encode(self, text: bytes, number: int) -> bytes:
        try:
            body = self._codec.encode_text(text.decode())
        except (InvalidValueError, UnicodeDecodeError) as error:
            raise ToolError(f"Line {number}: the {self._part} does not fit its schema: {error}") from None
        return framed(self._id, body)

    @cached_property
    def _codec(self) -> ValueCodec:
        known = self._known
        parsed = self._parsed if known is None else known.parsed
        return codec_of(parsed, message=self._properties.get(f"{self._part}.message"))

    @cached_property
    def _id(self) -> int:
        """Registered when the first line that fits is to be sent: a command without one changes nothing."""
        if self._known is not None:
            return self._known.id
        given = self._properties.get("auto.register", self._properties.get("auto.register.schemas", "true"))
        send = self._client.register if parse_bool(given) else self._client.look_up
        return send(self._subject, self._type, self._text, self._references).id

    @cached_property
    def _known(self) -> RegisteredSchema | None:
        """The schema where it is one that must be registered already."""
        given = self._properties.get(f"{self._part}.schema.id")
        if given is not None:
            return self._client.schema(_number(f"{self._part}.schema.id", given))
        if parse_bool(self._properties.get("use.latest.version", "false")):
            return self._client.latest(self._subject)
        return None

    @cached_property
    def _parsed(self) -> ParsedSchema:
        return self._client.parsed(self._type, self._text, self._references)

    @cached_property
    def _text(self) -> str:
        name = f"{self._part}.schema"
        return self._properties.get(name) or _content(self._properties[f"{name}.file"])

    @cached_property
    def _references(self) -> list[SchemaReference]:
        return _references(self._properties.get(f"{self._part}.refs"))

    @property
    def _subject(self) -> str:
        strategy = self._properties.get(f"{self._part}.subject.name.strategy", "TopicNameStrategy")
        return subject_name(strategy, self._topic, self._parsed.name, is_key=self._part == "key")


def _content(location: str) -> str:
    try:
        return Path(location).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ToolError(f"cannot read the schema in {location}: {error}") from None


def _references(text: str | None) -> list[SchemaReference]:
    """Other schemas that this one builds on, as the registry writes them: `[{"name":…,"subject":…,"version":…}]`."""
    if not text:
        return []
    try:
        return [SchemaReference(one["name"], one["subject"], one["version"]) for one in json.loads(text)]
    except (ValueError, TypeError, KeyError):
        raise ToolError(f'{text} is no list of references: write [{{"name":"…","subject":"…","version":1}}]') from None


def _number(name: str, text: str) -> int:
    if not text.strip().isdigit():
        raise ToolError(f"{name}={text} is not the id of a schema")
    return int(text)
