"""Converts records with a schema to lines of JSON: the formatters of the schema-aware consumers.

Start at `schema_formatter`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from moldau.cli.console.formatter import Formatter, default_formatter
from moldau.cli.options import parse_bool
from moldau.client.schema_registry import RegistryClient, RegistryRefusalError
from moldau.schemas.errors import SchemaError
from moldau.schemas.framing import parse_frame
from moldau.schemas.values import ValueCodec, codec_of
from moldau.serdes.schema_source import UnfitValueError

__all__ = ["schema_formatter"]


class ShownValue(NamedTuple):
    text: str
    schema: int | str
    """The id or the guid that precedes the data."""


class SchemaReader:
    """Decodes keys and values of any schema; each schema is requested once from the registry."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client
        self._codecs: dict[int | str, ValueCodec] = {}

    def decode(self, content: bytes) -> ShownValue:
        """A record's bytes as JSON; raises `UnfitValueError`."""
        try:
            frame = parse_frame(content)
            name: int | str = frame.schema_id if frame.schema_id is not None else frame.guid or ""
            return ShownValue(self._codec(name).decode_text(frame.body), name)
        except (SchemaError, RegistryRefusalError) as error:
            raise UnfitValueError(str(error)) from None

    def _codec(self, name: int | str) -> ValueCodec:
        codec = self._codecs.get(name)
        if codec is None:
            codec = self._codecs[name] = codec_of(self._client.schema(name).parsed)
        return codec


def schema_formatter(properties: Mapping[str, str]) -> Formatter:
    """The default formatter with values and keys decoded; a named deserializer overrides the schema."""
    reader = SchemaReader(RegistryClient(properties))
    shows_ids = parse_bool(properties.get("print.schema.ids", "false"))
    separator = properties.get("schema.id.separator", "\t")

    def render_content(content: bytes) -> bytes:
        try:
            value = reader.decode(content)
        except UnfitValueError as error:
            # The error type that deserializers raise for bytes they cannot read.
            raise ValueError(str(error)) from None
        return (f"{value.text}{separator}{value.schema}" if shows_ids else value.text).encode()

    return default_formatter(
        properties,
        value_reader=None if properties.get("value.deserializer") else render_content,
        key_reader=None if properties.get("key.deserializer") else render_content,
    )
