"""Connect's JSON Schema converter: JSON data with a JSON Schema in the registry. Start at `JsonSchemaConverter`."""

from __future__ import annotations

import json
from typing import Any, Final

from moldau.connect.api.errors import DataError
from moldau.connect.converters.json import JsonConverter
from moldau.connect.converters.registry import Read, RegistryConverter, Write
from moldau.formats.registry.data_schema import NO_DEFAULT, DataSchema, Kind
from moldau.formats.registry.json_schemas import json_data_schema
from moldau.schemas.json_schema.schema import JsonSchema
from moldau.schemas.parsed_schema import ParsedSchema
from moldau.serdes.schema_source import SchemaText

__all__ = ["JsonSchemaConverter"]

TYPES: Final = {
    **dict.fromkeys((Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64), "integer"),
    **dict.fromkeys((Kind.FLOAT32, Kind.FLOAT64), "number"),
    Kind.BOOLEAN: "boolean",
    Kind.STRING: "string",
    Kind.BYTES: "string",
}


class JsonSchemaConverter(RegistryConverter):
    """`io.confluent.connect.json.JsonSchemaConverter`."""

    schema_type = "JSON"

    def schema_text(self, schema: DataSchema) -> SchemaText:
        return SchemaText("JSON", json.dumps(_document(schema)))

    def writer(self, schema: DataSchema, parsed: ParsedSchema) -> Write:
        plain = _plain_json()
        return lambda value: plain.from_connect("", schema, value) or b"null"

    def reader(self, parsed: ParsedSchema) -> tuple[DataSchema | None, Read]:
        assert isinstance(parsed, JsonSchema)
        schema, plain = json_data_schema(parsed), _plain_json()
        return schema, lambda body: plain.read_value(schema, json.loads(body))


def _plain_json() -> JsonConverter:
    made = JsonConverter()
    made.configure({"schemas.enable": "false", "decimal.format": "NUMERIC"}, is_key=False)
    return made


def _document(schema: DataSchema, index: int | None = None) -> dict[str, Any]:
    made = _typed(schema)
    if schema.name is not None:
        made["title"] = schema.name
    if schema.version is not None:
        made["connect.version"] = schema.version
    if schema.parameters:
        made["connect.parameters"] = dict(schema.parameters)
    if schema.doc is not None:
        made["description"] = schema.doc
    if index is not None:
        made["connect.index"] = index
    if schema.default is not NO_DEFAULT and schema.default is not None:
        made["default"] = json.loads(_plain_json().from_connect("", schema, schema.default) or b"null")
    if not schema.is_optional:
        return made
    outer = {"oneOf": [{"type": "null"}, made]}
    return outer if index is None else {"connect.index": index, **outer}


def _typed(schema: DataSchema) -> dict[str, Any]:
    match schema.kind:
        case Kind.STRUCT:
            fields = {field.name: _document(field.schema, index) for index, field in enumerate(schema.fields)}
            return {"type": "object", "properties": fields}
        case Kind.ARRAY:
            return {"type": "array", "items": _document(schema.element)}
        case Kind.MAP:
            if schema.key is None or schema.key.kind is not Kind.STRING:
                raise DataError("JsonSchemaConverter can write maps only if their keys are strings")
            return {"type": "object", "connect.type": "map", "additionalProperties": _document(schema.element)}
    if schema.name is not None and schema.kind is Kind.BYTES and "scale" in schema.parameters:
        return {"type": "number", "connect.type": "bytes"}
    made: dict[str, Any] = {"type": TYPES[schema.kind]}
    if schema.kind not in (Kind.BOOLEAN, Kind.STRING):
        made["connect.type"] = schema.kind.value
    return made
