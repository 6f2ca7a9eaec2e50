"""A .proto file as a tree, with everything that was written except comments and white space.

Descriptors lose what a schema must keep: missing labels, unresolved names, unknown options. They are built
from this tree when values need them (`descriptors`). Start at `File`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

__all__ = [
    "MAX_FIELD_NUMBER",
    "SCALARS",
    "Aggregate",
    "Constant",
    "ConstantKind",
    "Enum",
    "EnumConstant",
    "Extend",
    "Extensions",
    "Field",
    "File",
    "Message",
    "OneOf",
    "Option",
    "OptionValue",
    "Range",
    "Reserved",
    "Rpc",
    "Sequence",
    "Service",
]

SCALARS: Final = frozenset(
    {"bool", "bytes", "double", "fixed32", "fixed64", "float", "int32", "int64"}
    | {"sfixed32", "sfixed64", "sint32", "sint64", "string", "uint32", "uint64"}
)
MAX_FIELD_NUMBER: Final = 536_870_911

ConstantKind: TypeAlias = str
"""`string`, `number` or `name` (which covers true, false, inf and enum constants)."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A single value of an option. A string's text is without quotes and escapes."""

    kind: ConstantKind
    text: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list of values in brackets."""

    items: tuple[OptionValue, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A message in braces: names of fields (or `[extension]`) with their values."""

    entries: tuple[tuple[str, OptionValue], ...]


OptionValue: TypeAlias = Constant | Sequence | Aggregate


@dataclass(frozen=True, slots=True)
class Option:
    """An option, with `name` as written: `deprecated`, `(my.option)` or `(my.option).part`."""

    name: str
    value: OptionValue

    @property
    def is_custom(self) -> bool:
        return self.name.startswith("(")

    @property
    def value_text(self) -> str | None:
        """The value's text if it is a single value, else `None`."""
        return self.value.text if isinstance(self.value, Constant) else None


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `start` to `end`, both included."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Reserved:
    """Names and numbers that must not be used, listed in one `reserved` statement."""

    values: tuple[str | Range, ...]


@dataclass(frozen=True, slots=True)
class Extensions:
    """Field numbers that are reserved for extensions."""

    ranges: tuple[Range, ...]
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Field:
    """One field. A map's `type` is that of its values; a group has its message in `group`."""

    name: str
    number: int
    type: str
    label: str | None = None
    map_key: str | None = None
    options: list[Option] = field(default_factory=list)
    group: Message | None = None


@dataclass(slots=True)
class OneOf:
    """Fields of which at most one is set."""

    name: str
    fields: list[Field] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class EnumConstant:
    """A name for a number."""

    name: str
    number: int
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Enum:
    """Named numbers."""

    name: str
    constants: list[EnumConstant] = field(default_factory=list)
    reserved: list[Reserved] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Extend:
    """Extension fields for a message that is defined elsewhere."""

    type: str
    fields: list[Field] = field(default_factory=list)


@dataclass(slots=True)
class Message:
    """A message: fields, on their own or in oneofs, and nested types."""

    name: str
    fields: list[Field] = field(default_factory=list)
    oneofs: list[OneOf] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    enums: list[Enum] = field(default_factory=list)
    reserved: list[Reserved] = field(default_factory=list)
    extensions: list[Extensions] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)

    def all_fields(self) -> Iterator[Field]:
        """All fields: those outside oneofs first, then those inside."""
        yield from self.fields
        for oneof in self.oneofs:
            yield from oneof.fields


@dataclass(slots=True)
class Rpc:
    """One method of a service."""

    name: str
    request: str
    response: str
    request_streams: bool = False
    response_streams: bool = False
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Service:
    """A named group of methods."""

    name: str
    rpcs: list[Rpc] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class File:
    """A whole .proto file."""

    syntax: str | None = None
    """`proto2`, `proto3` or `None`, which means proto2."""

    edition: str | None = None
    package: str = ""
    imports: list[str] = field(default_factory=list)
    public_imports: list[str] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    enums: list[Enum] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)

    @property
    def is_proto3(self) -> bool:
        return self.syntax == "proto3"
