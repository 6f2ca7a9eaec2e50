"""The record names of a schema, for subjects named after them, read from the schema's text alone.

References are not resolved and nothing is validated: the text comes from a registry, which did both. The entry point
to schemas is `schema`; start at `record_names`.
"""

from __future__ import annotations

import json
from typing import Any

from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.parsed_schema import SchemaType

__all__ = ["record_names"]

_AVRO_UNNAMED = frozenset(
    ("null", "boolean", "int", "long", "float", "double", "bytes", "string", "array", "map", "record", "enum", "fixed")
)


def record_names(schema_type: SchemaType, text: str) -> frozenset[str]:
    """Full names of an Avro type or of the branches of a union, the title of a JSON Schema, all messages of a file.

    Empty for a text that cannot be parsed, and for schemas without names.
    """
    try:
        if schema_type is SchemaType.PROTOBUF:
            return _protobuf_names(text)
        document = json.loads(text)
    except (ValueError, RecursionError, InvalidSchemaError):
        return frozenset()
    if schema_type is SchemaType.JSON:
        title = document.get("title") if isinstance(document, dict) else None
        return frozenset((title,)) if isinstance(title, str) and title else frozenset()
    branches = document if isinstance(document, list) else [document]
    return frozenset(name for name in map(_avro_name, branches) if name is not None)


def _avro_name(document: Any) -> str | None:
    if isinstance(document, str):
        return None if document in _AVRO_UNNAMED else document
    if not isinstance(document, dict):
        return None
    kind = document.get("type")
    name, namespace = document.get("name"), document.get("namespace")
    if not isinstance(name, str) or not name:
        return _avro_name(kind)
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _protobuf_names(text: str) -> frozenset[str]:
    from moldau.schemas.protobuf.elements import Message
    from moldau.schemas.protobuf.parser import parse_file
    from moldau.schemas.protobuf.symbols import symbols_of

    return frozenset(one.full_name for one in symbols_of(parse_file(text)) if isinstance(one.element, Message))
