"""Records that remember the schema they were read with, so that they can be written again without naming one.

Start at `SchemaRecord`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.client.registered_schemas import SchemaText

__all__ = ["SchemaRecord", "remembering"]


class SchemaRecord(dict[str, Any]):
    """A record as a dict that remembers the schema it was read with; a copy made of it is a plain dict."""

    __slots__ = ("schema",)

    schema: SchemaText
    """Set by `remembering`, the only maker."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (remembering, (dict(self), self.schema))


def remembering(fields: Mapping[str, Any], schema: SchemaText) -> SchemaRecord:
    """A record with its schema."""
    # Not a constructor of its own: that would cost as much again as the copy, and each record that is read pays it.
    record = SchemaRecord(fields)
    record.schema = schema
    return record
