"""A parsed Avro schema and how to get one. Start at `parse_avro`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from moldau.schemas.avro.defaults import check_defaults
from moldau.schemas.avro.parser import Parser
from moldau.schemas.avro.printer import canonical_text, normalized_text
from moldau.schemas.avro.types import AvroType, Enum, Fixed, Named, Record
from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.parsed_schema import ParsedSchema, References, SchemaType

__all__ = ["AvroSchema", "parse_avro"]


class AvroSchema:
    """One Avro schema: its type, and the named types it defines or borrows from its references."""

    schema_type = SchemaType.AVRO

    def __init__(self, type: AvroType, named: Mapping[str, Named], references: Mapping[str, AvroSchema]) -> None:
        self.type = type
        self.named = named
        """Every named type it may use, by full name: its own types and those of its references."""
        self._references = references

    @property
    def references(self) -> Mapping[str, ParsedSchema]:
        return self._references

    @cached_property
    def referenced_names(self) -> frozenset[str]:
        """Full names that come from references, not from this schema's own text."""
        return frozenset(name for reference in self._references.values() for name in reference.named)

    @cached_property
    def canonical(self) -> str:
        return canonical_text(self.type, self.referenced_names)

    @property
    def name(self) -> str | None:
        return self.type.full_name if isinstance(self.type, Record | Enum | Fixed) else None

    @property
    def top_level_fields(self) -> frozenset[str]:
        return frozenset(field.name for field in self.type.fields) if isinstance(self.type, Record) else frozenset()

    def check_field_names(self) -> None:
        """Do nothing: Avro's own rules for names are sufficient."""

    def normalized(self) -> AvroSchema:
        return parse_avro(normalized_text(self.type, self.referenced_names), self._references, validate=False)

    def render(self, format: str | None) -> str:
        """The text: `resolved` has the types of references written in full; any other format is the canonical text."""
        return canonical_text(self.type) if format == "resolved" else self.canonical

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AvroSchema):
            return NotImplemented
        return self.canonical == other.canonical and self._references == other._references

    def __hash__(self) -> int:
        return hash(self.canonical)

    def __repr__(self) -> str:
        return f"AvroSchema({self.canonical})"


def parse_avro(text: str, references: References | None = None, *, validate: bool = True) -> AvroSchema:
    """Return the schema `text` describes. `validate` also checks that defaults of fields fit their types.

    The names of references are only labels: types are found by the full names that the references define.
    """
    parsed: dict[str, AvroSchema] = {}
    borrowed: dict[str, Named] = {}
    for label, reference in (references or {}).items():
        schema = _parse_reference(label, reference, borrowed)
        parsed[label] = schema
        for full_name, named in schema.named.items():
            _lend(borrowed, full_name, named)
    parser = Parser(borrowed)
    avro_type = parser.parse(text)
    if validate:
        check_defaults(named for name, named in parser.named.items() if name not in borrowed)
    return AvroSchema(avro_type, parser.named, parsed)


def _parse_reference(label: str, reference: str | ParsedSchema, borrowed: Mapping[str, Named]) -> AvroSchema:
    if isinstance(reference, AvroSchema):
        return reference
    if not isinstance(reference, str):
        raise InvalidSchemaError(
            f"reference {label!r} is a schema of type {reference.schema_type}; an Avro schema can refer to Avro only"
        )
    try:
        parser = Parser(borrowed)
        return AvroSchema(parser.parse(reference), parser.named, {})
    except InvalidSchemaError as error:
        raise InvalidSchemaError(f"reference {label!r}: {error}") from None


def _lend(borrowed: dict[str, Named], full_name: str, named: Named) -> None:
    """Add a reference's type. Two references may both have it (through their own references) if it is equal."""
    known = borrowed.setdefault(full_name, named)
    if known is not named and canonical_text(known) != canonical_text(named):
        raise InvalidSchemaError(f"two references define {full_name!r} in different ways")
