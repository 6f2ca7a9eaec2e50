"""Records with a schema as lines of JSON: what the formatters of the schema-aware consumers do.

The id before the data names the schema; the registry is asked once for each. Start at `schema_formatter`.
"""

from __future__ import annotations

from collections.abc import Mapping

from moldau.cli.console.formatter import Formatter, default_formatter
from moldau.cli.options import parse_bool
from moldau.client.schema_registry import RegistryClient, RegistryRefusalError
from moldau.schemas.errors import SchemaError
from moldau.schemas.values import ValueCodec, codec_of, unframed

__all__ = ["schema_formatter"]


def schema_formatter(properties: Mapping[str, str]) -> Formatter:
    """Shows what the console consumer shows, with values and keys decoded; a named deserializer beats the schema."""
    reader = _Reader(RegistryClient(properties), properties)
    return default_formatter(
        properties,
        value_reader=None if properties.get("value.deserializer") else reader,
        key_reader=None if properties.get("key.deserializer") else reader,
    )


class _Reader:
    """From bytes with an id before them to JSON; raises `ValueError` for bytes that are something else."""

    def __init__(self, client: RegistryClient, properties: Mapping[str, str]) -> None:
        self._client = client
        self._codecs: dict[int | str, ValueCodec] = {}
        shows_ids = parse_bool(properties.get("print.schema.ids", "false"))
        self._id_separator = properties.get("schema.id.separator", "\t") if shows_ids else None

    def __call__(self, content: bytes) -> bytes:
        try:
            frame = unframed(content)
            name = frame.schema_id if frame.schema_id is not None else frame.guid or ""
            text = self._codec(name).decode_text(frame.body)
        except (SchemaError, RegistryRefusalError) as error:
            raise ValueError(str(error)) from None
        shown = text if self._id_separator is None else f"{text}{self._id_separator}{name}"
        return shown.encode()

    def _codec(self, name: int | str) -> ValueCodec:
        codec = self._codecs.get(name)
        if codec is None:
            codec = self._codecs[name] = codec_of(self._client.schema(name).parsed)
        return codec
