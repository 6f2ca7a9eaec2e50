"""Schemas of a registry from columns, and columns from the schemas of a registry, for all three types.

Start at `derived_schema` and `inferred_columns`.
"""

from __future__ import annotations

from moldau.formats.columns import Column
from moldau.formats.errors import FormatError
from moldau.formats.format import Feature, RowFormat
from moldau.formats.registry.avro_schemas import avro_data_schema, avro_text_of
from moldau.formats.registry.data_schema import DataSchema
from moldau.formats.registry.inference import columns_of
from moldau.formats.registry.json_schemas import json_data_schema, json_schema_text_of
from moldau.formats.registry.protobuf_schemas import proto_text_of, protobuf_data_schema
from moldau.schemas.avro.schema import AvroSchema
from moldau.schemas.errors import SchemaError
from moldau.schemas.json_schema.schema import JsonSchema
from moldau.schemas.parsed_schema import ParsedSchema, SchemaType
from moldau.schemas.protobuf.schema import ProtobufSchema
from moldau.schemas.schema import parse
from moldau.serdes.schema_source import SchemaText

__all__ = ["data_schema_of", "derived_schema", "inferred_columns"]


def derived_schema(row_format: RowFormat, columns: tuple[Column, ...]) -> SchemaText:
    """The schema that rows of these columns are registered with; raises `FormatError` if there is none."""
    is_bare = row_format.is_bare(columns)
    match row_format.format.schema_type:
        case SchemaType.AVRO:
            text = avro_text_of(columns, is_bare=is_bare, full_name=row_format.full_name)
        case SchemaType.JSON:
            text = json_schema_text_of(columns, is_bare=is_bare, full_name=row_format.full_name)
        case SchemaType.PROTOBUF:
            text = proto_text_of(columns, full_name=row_format.full_name, nullable=row_format.nullable)
        case _:
            raise FormatError(f"Format {row_format.format.name} has no schemas in a registry")
    try:
        parsed = parse(row_format.format.schema_type, text)
    except SchemaError as error:
        raise FormatError(f"Schema is not compatible with {row_format.format.name}: {error}") from None
    return SchemaText(str(row_format.format.schema_type), parsed.canonical)


def data_schema_of(schema: ParsedSchema, full_name: str | None = None) -> DataSchema:
    """The data schema of any schema; `full_name` chooses a Protobuf message. Raises `FormatError`."""
    try:
        match schema:
            case AvroSchema():
                return avro_data_schema(schema.type)
            case JsonSchema():
                return json_data_schema(schema)
            case ProtobufSchema():
                return protobuf_data_schema(schema, full_name)
    except SchemaError as error:
        raise FormatError(str(error)) from None
    except RecursionError:
        raise FormatError("The schema is nested too deep") from None
    raise FormatError(f"Schemas of type {schema.schema_type} have no columns")


def inferred_columns(
    schema: ParsedSchema, row_format: RowFormat, *, has_bare_value: bool = False, by_id: bool = False
) -> tuple[Column, ...]:
    """The columns of a side without declared columns, from the schema of its subject or, with `by_id`, of its id.

    Without `by_id`, a key is one column, even if it is a record, in all formats that can store one column bare;
    `has_bare_value` says that the statement stores a single value column so, too. Raises `FormatError`.
    """
    if row_format.format.schema_type is not schema.schema_type:
        raise FormatError(f"Format {row_format.format.name} cannot be read with a schema of type {schema.schema_type}")
    data_schema = data_schema_of(schema, row_format.full_name)
    has_bare_key = row_format.is_key and not by_id and Feature.UNWRAP_SINGLES in row_format.format.features
    return columns_of(data_schema, is_key=row_format.is_key, is_bare=has_bare_key or has_bare_value, keep_case=by_id)
