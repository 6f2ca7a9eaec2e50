"""What every schema can do once parsed, whatever its format. The front door is `schema`; start at `ParsedSchema`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol, TypeAlias

from moldau.schemas.errors import UnknownSchemaTypeError

__all__ = ["ParsedSchema", "References", "SchemaType"]


class SchemaType(StrEnum):
    """The three formats, by the registry's names."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"

    @classmethod
    def of(cls, name: str | None) -> SchemaType:
        """The type of that name in any case; none at all means AVRO, as in requests of old clients."""
        if not name:
            return cls.AVRO
        try:
            return cls(name.upper())
        except ValueError:
            raise UnknownSchemaTypeError(name) from None


class ParsedSchema(Protocol):
    """A schema that was understood. Two are equal when type, canonical text and references are."""

    @property
    def schema_type(self) -> SchemaType:
        """Its format."""
        ...

    @property
    def canonical(self) -> str:
        """The text a registry stores: one spelling for all texts that differ in white space and quoting only."""
        ...

    @property
    def references(self) -> Mapping[str, ParsedSchema]:
        """The schemas this one was parsed with, by the name it uses for them."""
        ...

    @property
    def name(self) -> str | None:
        """What the record name strategy calls it: record's or message's full name, JSON Schema's title."""
        ...

    @property
    def top_level_fields(self) -> frozenset[str]:
        """The names of the fields that values of it have at the top; none when they have no fields."""
        ...

    def check_field_names(self) -> None:
        """Raise `InvalidSchemaError` for names that registries keep to themselves (properties that begin with `$$`)."""
        ...

    def normalized(self) -> ParsedSchema:
        """The same schema with everything that has no meaning (order of keys, of imports…) put in one order."""
        ...

    def rendered(self, format: str | None) -> str:
        """The text in one of the type's formats (`resolved`, `serialized`…); an unknown one means canonical."""
        ...


References: TypeAlias = Mapping[str, "str | ParsedSchema"]
"""Other schemas by the name the referring text uses. Texts may refer to the ones before them."""
