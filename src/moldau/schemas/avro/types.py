"""Avro's types as objects, built by the parser and used by all other modules.

Named types are shared, not copied, so a recursive schema is a cycle of objects; code that walks it must keep
track of visited types. Equality is object identity: to compare types, use their canonical texts. Start at `AvroType`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, TypeAlias

from moldau.schemas.json_text import Json

__all__ = [
    "PRIMITIVES",
    "Array",
    "AvroType",
    "Enum",
    "Field",
    "Fixed",
    "Map",
    "Named",
    "Primitive",
    "Record",
    "Union",
    "branch_name",
]

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

Properties: TypeAlias = Mapping[str, Json]
"""Attributes without a meaning in Avro, and `logicalType` with its attributes, in the order they were written."""


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    """One of the eight types without structure."""

    kind: str
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """Any number of items of one type."""

    kind: ClassVar[str] = "array"
    items: AvroType
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Map:
    """Values of one type by string keys."""

    kind: ClassVar[str] = "map"
    values: AvroType
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """One of several types."""

    kind: ClassVar[str] = "union"
    branches: tuple[AvroType, ...]


@dataclass(slots=True, eq=False)
class Field:
    """One field of a record."""

    name: str
    type: AvroType
    has_default: bool = False
    default: Json = None
    order: str = "ascending"
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    properties: Properties = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Record:
    """Named fields in order. `fields` is set after the record is created, because they may refer to the record."""

    kind: ClassVar[str] = "record"
    full_name: str
    fields: tuple[Field, ...] = ()
    is_error: bool = False
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Enum:
    """One of several symbols; a reader replaces a symbol that it does not know by `default`."""

    kind: ClassVar[str] = "enum"
    full_name: str
    symbols: tuple[str, ...]
    default: str | None = None
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    properties: Properties = field(default_factory=dict)
    known_symbols: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "known_symbols", frozenset(self.symbols))


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """A fixed number of bytes."""

    kind: ClassVar[str] = "fixed"
    full_name: str
    size: int
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    properties: Properties = field(default_factory=dict)


Named: TypeAlias = Record | Enum | Fixed
AvroType: TypeAlias = Primitive | Array | Map | Union | Record | Enum | Fixed


def branch_name(avro_type: AvroType) -> str:
    """The name of this branch in a union: the full name of a named type, the kind of any other."""
    return avro_type.full_name if isinstance(avro_type, Record | Enum | Fixed) else avro_type.kind
