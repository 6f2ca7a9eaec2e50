"""The interface of parsed schemas of all formats. The entry point is `schema`; start at `ParsedSchema`."""

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
        """The type with that name, in upper or lower case; no name means AVRO, as in requests of old clients."""
        if not name:
            return cls.AVRO
        try:
            return cls(name.upper())
        except ValueError:
            raise UnknownSchemaTypeError(name) from None


class ParsedSchema(Protocol):
    """A parsed schema. Two are equal if type, canonical text and references are equal."""

    @property
    def schema_type(self) -> SchemaType:
        """Its format."""
        ...

    @property
    def canonical(self) -> str:
        """The text a registry stores: the same for all texts that differ only in white space and quoting."""
        ...

    @property
    def references(self) -> Mapping[str, ParsedSchema]:
        """The schemas this one was parsed with, by the name it uses for them."""
        ...

    @property
    def name(self) -> str | None:
        """The name used by the record name strategy: full name of the record or message, title of a JSON Schema."""
        ...

    @property
    def top_level_fields(self) -> frozenset[str]:
        """The names of the top-level fields of its values; empty if they have no fields."""
        ...

    def check_field_names(self) -> None:
        """Raise `InvalidSchemaError` for names that registries reserve (properties that begin with `$$`)."""
        ...

    def normalized(self) -> ParsedSchema:
        """The same schema with everything whose order has no meaning (keys, imports…) sorted."""
        ...

    def render(self, format: str | None) -> str:
        """The text in one of the type's formats (`resolved`, `serialized`…); the canonical text if it is unknown."""
        ...


References: TypeAlias = Mapping[str, "str | ParsedSchema"]
"""Other schemas by the name that the referring text uses. Texts may refer to the ones before them."""
