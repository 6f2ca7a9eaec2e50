"""Errors about invalid schemas, and about values that do not fit their schema. Start at `SchemaError`."""

from __future__ import annotations

from moldau.core.errors import ErrorCode, MoldauError

__all__ = ["InvalidSchemaError", "InvalidValueError", "SchemaError", "UnknownSchemaTypeError"]


class SchemaError(MoldauError):
    """Base of the errors that this package raises."""

    code = ErrorCode.INVALID_RECORD


class InvalidSchemaError(SchemaError):
    """A text that is not a valid schema of its type; the message says where it is wrong and what is expected."""


class UnknownSchemaTypeError(InvalidSchemaError):
    """A schema type other than AVRO, JSON and PROTOBUF."""

    def __init__(self, schema_type: str) -> None:
        super().__init__(f"Invalid schema type {schema_type}. Known are AVRO, JSON and PROTOBUF")


class InvalidValueError(SchemaError):
    """A value, or an encoded value, that does not fit its schema."""
