"""The entry point: parses a schema's text, of any type, into a `ParsedSchema`.

`compatibility` compares schemas; a registry manages ids, versions and subjects. Start at `parse`.
"""

from __future__ import annotations

from moldau.schemas.avro.schema import parse_avro
from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.json_schema.schema import parse_json_schema
from moldau.schemas.parsed_schema import ParsedSchema, References, SchemaType
from moldau.schemas.protobuf.schema import parse_protobuf

__all__ = ["InvalidSchemaError", "ParsedSchema", "References", "SchemaType", "parse"]


def parse(
    schema_type: SchemaType | str | None, text: str, references: References | None = None, *, validate: bool = True
) -> ParsedSchema:
    """Return the schema that `text` describes, or raise `InvalidSchemaError` with the place and the reason.

    `references` are the schemas the text refers to, by the name it uses for them: parsed schemas, or texts in
    an order in which each comes after those it refers to. `validate=False` skips checks that schemas in old logs
    may fail, such as defaults that do not fit their types.
    """
    match SchemaType.of(schema_type):
        case SchemaType.AVRO:
            return parse_avro(text, references, validate=validate)
        case SchemaType.JSON:
            return parse_json_schema(text, references, validate=validate)
        case SchemaType.PROTOBUF:
            return parse_protobuf(text, references, validate=validate)
