"""Field tables: the schema of one version of a message or record, as data.

`protocol.field_reader` decodes by such a table and `protocol.field_writer` encodes. The tables of requests and
responses come from kio (`protocol.messages`), those of records on disk from moldau's own definitions
(`protocol.record_schemas`). Start at `Struct`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

__all__ = ["UNSET", "Field", "Struct", "default_of", "implicit_default"]

UNSET: Final[Any] = object()

_ZEROS: Final[dict[str, Any]] = {
    "string": "",
    "bytes": b"",
    "records": b"",
    "bool": False,
    "float64": 0.0,
    "uuid": None,
}


class Field(NamedTuple):
    name: str
    type: str | Struct
    """A primitive by Kafka's name (`int32`, `string`, `uuid` …), or the struct of each element."""
    is_array: bool = False
    is_nullable: bool = False
    tag: int | None = None
    """Tagged fields follow all others, may be missing, and exist in flexible versions only."""
    default: Any = UNSET


class Struct(NamedTuple):
    name: str
    fields: tuple[Field, ...]
    is_flexible: bool
    """Flexible versions (KIP-482) have compact lengths and end in tagged fields."""
    build: Callable[..., Any]
    """Creates the value from its fields, given by keyword."""


def default_of(field: Field) -> Any:
    """The value of a missing field: its own default, or its type's. Lists are new each time."""
    if field.default is UNSET:
        return implicit_default(field)
    return list(field.default) if isinstance(field.default, list) else field.default


def implicit_default(field: Field) -> Any:
    """Null if that is allowed, else empty, zero or a struct of defaults.

    The content of a batch is the exception: clients reject null there as a malformed message.
    """
    if field.is_nullable and field.type != "records":
        return None
    if field.is_array:
        return []
    if isinstance(field.type, Struct):
        return field.type.build(**{inner.name: default_of(inner) for inner in field.type.fields})
    return _ZEROS.get(field.type, 0)
