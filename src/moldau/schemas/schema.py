"""The front door: a schema's text becomes a `ParsedSchema`, whatever its type.

Whether it may follow another is `compatibility`; ids, versions and subjects are a registry's. Start at `parse`.
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

    `references` holds the schemas the text refers to by the name it uses for them: texts in the order in
    which they build on one another, or schemas parsed before. `validate=False` skips what readers of old
    logs must forgive: defaults that do not fit their types.
    """
    match SchemaType.of(schema_type):
        case SchemaType.AVRO:
            return parse_avro(text, references, validate=validate)
        case SchemaType.JSON:
            return parse_json_schema(text, references, validate=validate)
        case SchemaType.PROTOBUF:
            return parse_protobuf(text, references, validate=validate)
