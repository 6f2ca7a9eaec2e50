"""What can go wrong with a schema, or with a value that should fit one. Start at `SchemaError`."""

from __future__ import annotations

from moldau.core.errors import ErrorCode, MoldauError

__all__ = ["InvalidSchemaError", "InvalidValueError", "SchemaError", "UnknownSchemaTypeError"]


class SchemaError(MoldauError):
    """Base of what this package raises on purpose."""

    code = ErrorCode.INVALID_RECORD


class InvalidSchemaError(SchemaError):
    """A text that is no schema of its type; the message says where and what would be right."""


class UnknownSchemaTypeError(InvalidSchemaError):
    """A schema type other than AVRO, JSON and PROTOBUF."""

    def __init__(self, schema_type: str) -> None:
        super().__init__(f"Invalid schema type {schema_type}. Known are AVRO, JSON and PROTOBUF")


class InvalidValueError(SchemaError):
    """A value, or its bytes, that does not fit its schema."""
