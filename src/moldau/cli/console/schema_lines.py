"""Lines of JSON that become records with a schema: what the readers of the schema-aware producers do.

A line is split as usual; then value and key are written in their schemas' formats. Start at `SchemaLineReader.parse`.
"""

from __future__ import annotations

from collections.abc import Mapping

from moldau.cli.console.line_reader import Line, LineReader
from moldau.cli.tool import ToolError
from moldau.client.schema_registry import RegistryClient
from moldau.client.schema_values import SchemaWriter, UnfitValueError

__all__ = ["SCHEMA_READERS", "SchemaLineReader"]

SCHEMA_READERS = {
    "AvroMessageReader": "AVRO",
    "JsonSchemaMessageReader": "JSON",
    "ProtobufMessageReader": "PROTOBUF",
}
"""The Java classes by their last name, and the type of schema each is for."""


class SchemaLineReader(LineReader):
    is_plain = False

    def __init__(self, properties: Mapping[str, str], schema_type: str, topic: str) -> None:
        super().__init__(properties)
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
