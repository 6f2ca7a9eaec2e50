"""Records with a schema as lines of JSON: what the formatters of the schema-aware consumers do.

Start at `schema_formatter`.
"""

from __future__ import annotations

from collections.abc import Mapping

from moldau.cli.console.formatter import Formatter, default_formatter
from moldau.cli.options import parse_bool
from moldau.client.schema_registry import RegistryClient
from moldau.client.schema_values import SchemaReader, UnfitValueError

__all__ = ["schema_formatter"]


def schema_formatter(properties: Mapping[str, str]) -> Formatter:
    """Shows what the console consumer shows, with values and keys decoded; a named deserializer beats the schema."""
    reader = SchemaReader(RegistryClient(properties))
    shows_ids = parse_bool(properties.get("print.schema.ids", "false"))
    separator = properties.get("schema.id.separator", "\t")

    def render_content(content: bytes) -> bytes:
        try:
            value = reader.decode(content)
        except UnfitValueError as error:
            # What a deserializer raises for bytes it was not made for.
            raise ValueError(str(error)) from None
        return (f"{value.text}{separator}{value.schema}" if shows_ids else value.text).encode()

    return default_formatter(
        properties,
        value_reader=None if properties.get("value.deserializer") else render_content,
        key_reader=None if properties.get("key.deserializer") else render_content,
    )
