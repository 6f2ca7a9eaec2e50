"""The formats by name, what each can do, and how one is used for the keys or values of a topic.

A `Format` is a row of the table `FORMATS`. `RowFormat` is a format with its options, chosen for the key or the value of
a topic; it says nothing about columns. Bytes are made by `codec`, rules about columns are in `checks`, registry schemas
in `schema_columns`. Start at `format_named` and `RowFormat`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Final

from moldau.formats.columns import Column
from moldau.formats.errors import FormatError
from moldau.schemas.parsed_schema import SchemaType

__all__ = [
    "FORMATS",
    "Feature",
    "Format",
    "NullableRepresentation",
    "RowFormat",
    "format_named",
    "parse_delimiter",
    "row_format",
]


class Feature(Enum):
    """What a format can do with a single column: store it as a record of one field, or bare."""

    WRAP_SINGLES = "WRAP_SINGLES"
    UNWRAP_SINGLES = "UNWRAP_SINGLES"


class NullableRepresentation(Enum):
    """How Protobuf tells a null scalar from its default."""

    OPTIONAL = "OPTIONAL"
    WRAPPER = "WRAPPER"


WRAP, UNWRAP = Feature.WRAP_SINGLES, Feature.UNWRAP_SINGLES


@dataclass(frozen=True, slots=True)
class Format:
    """A format and what it can do."""

    name: str
    features: frozenset[Feature] = frozenset()
    schema_type: SchemaType | None = None
    """The type of its schemas, for formats whose schemas are in a registry."""

    properties: frozenset[str] = frozenset()
    """The options it has, by the names messages use for them."""

    has_many_columns: bool = True
    """Whether a key or a value may have more than one column."""

    supports_grouping: bool = True
    """Whether values of this format may be joined and grouped."""

    @property
    def uses_registry(self) -> bool:
        """Whether columns can be inferred from, and are registered as, schemas of a registry."""
        return self.schema_type is not None

    def check_properties(self, properties: Mapping[str, object]) -> None:
        """Raise `FormatError` for options that this format does not have."""
        unknown = [name for name in properties if name not in self.properties]
        if unknown:
            raise FormatError(f"{self.name} does not support the following configs: [{', '.join(unknown)}]")


DELIMITER, FULL_NAME, SCHEMA_ID, NULLABLE = "delimiter", "fullSchemaName", "schemaId", "nullableRepresentation"
_BOTH: Final = frozenset({WRAP, UNWRAP})
_BARE: Final = frozenset({UNWRAP})
_REGISTRY: Final = frozenset({FULL_NAME, SCHEMA_ID})

FORMATS: Final[Mapping[str, Format]] = MappingProxyType(
    {
        one.name: one
        for one in (
            Format("NONE"),
            Format("KAFKA", _BARE, has_many_columns=False, supports_grouping=False),
            Format("DELIMITED", _BARE, properties=frozenset({DELIMITER})),
            Format("JSON", _BOTH),
            Format("JSON_SR", _BOTH, SchemaType.JSON, _REGISTRY),
            Format("AVRO", _BOTH, SchemaType.AVRO, _REGISTRY),
            Format("PROTOBUF", frozenset({WRAP}), SchemaType.PROTOBUF, _REGISTRY | {NULLABLE}),
            Format("PROTOBUF_NOSR", _BOTH, properties=frozenset({NULLABLE})),
        )
    }
)
"""All formats, by name."""


def format_named(name: str) -> Format:
    """The format with that name, in any case; raises `FormatError`."""
    found = FORMATS.get(name.upper())
    if found is None:
        raise FormatError(f"Unknown format: {name.upper()}")
    return found


@dataclass(frozen=True, slots=True)
class RowFormat:
    """A format with its options, as it is used for the keys or the values of one topic."""

    format: Format
    is_key: bool = False

    wrapping: Feature | None = None
    """Set for a single column of a format that can do both; `None` leaves it to the format."""

    delimiter: str = ","
    """DELIMITED: the character between fields."""

    full_name: str | None = None
    """Registry formats: the name of the record or message type."""

    schema_id: int | None = None
    """Registry formats: the schema to write with, in place of one derived from the columns."""

    nullable: NullableRepresentation | None = None
    """Protobuf: how null scalars are written; `None` writes their defaults."""

    @property
    def part(self) -> str:
        """`key` or `value`."""
        return "key" if self.is_key else "value"

    @property
    def properties(self) -> dict[str, str]:
        """The options that were set, by the names messages use."""
        named = {
            FULL_NAME: self.full_name,
            SCHEMA_ID: None if self.schema_id is None else str(self.schema_id),
            NULLABLE: None if self.nullable is None else self.nullable.value,
            DELIMITER: self.delimiter if self.delimiter != "," else None,
        }
        return {name: value for name, value in named.items() if value is not None}

    def is_bare(self, columns: tuple[Column, ...]) -> bool:
        """Whether a single column is stored as its bare value, not as a record with one field."""
        if len(columns) != 1 or UNWRAP not in self.format.features:
            return False
        return self.wrapping is UNWRAP or WRAP not in self.format.features

    def features(self, columns: tuple[Column, ...]) -> frozenset[Feature]:
        """The features that descriptions of a source list: an explicit wrapping that differs from the format's own."""
        return frozenset() if self.wrapping is None or len(columns) != 1 else frozenset({self.wrapping})

    def for_key(self, columns: tuple[Column, ...]) -> RowFormat:
        """The same format for keys of these columns: a single key column is stored bare wherever that is possible."""
        can_choose = len(columns) == 1 and self.format.features >= _BOTH
        return replace(self, is_key=True, wrapping=UNWRAP if can_choose else None)

    def for_value(
        self, columns: tuple[Column, ...], *, wrap: bool | None = None, wrap_by_default: bool = True
    ) -> RowFormat:
        """The same format for values of these columns.

        `wrap` is what the statement says (`WRAP_SINGLE_VALUE`), `wrap_by_default` what the server's settings say.
        Raises `FormatError` for a wrapping that makes no sense or that the format cannot do.
        """
        if wrap is not None:
            wanted = WRAP if wrap else UNWRAP
            if len(columns) != 1:
                raise FormatError("'WRAP_SINGLE_VALUE' is only valid for single-field value schemas")
            if wanted not in self.format.features:
                raise FormatError(
                    f"Format '{self.format.name}' does not support 'WRAP_SINGLE_VALUE' set to '{str(wrap).lower()}'."
                )
            return replace(self, is_key=False, wrapping=wanted)
        is_bare = not wrap_by_default and len(columns) == 1 and self.format.features >= _BOTH
        return replace(self, is_key=False, wrapping=UNWRAP if is_bare else None)


def row_format(name: str, properties: Mapping[str, str] | None = None, *, is_key: bool = False) -> RowFormat:
    """A format with options by the names messages use (`delimiter`, `fullSchemaName`…); raises `FormatError`."""
    chosen, given = format_named(name), dict(properties or {})
    chosen.check_properties(given)
    nullable = given.get(NULLABLE)
    if FULL_NAME in given and not given[FULL_NAME].strip():
        raise FormatError(f"{FULL_NAME} cannot be empty. Format configuration: {given}")
    return RowFormat(
        chosen,
        is_key,
        delimiter=given.get(DELIMITER, ","),
        full_name=given.get(FULL_NAME, "").strip() or None,
        schema_id=int(given[SCHEMA_ID]) if SCHEMA_ID in given else None,
        nullable=None if nullable is None else NullableRepresentation(nullable.upper()),
    )


_NAMED_DELIMITERS: Final = {"TAB": "\t", "SPACE": " "}


def parse_delimiter(text: str) -> str:
    """The character between fields, from the value of `KEY_DELIMITER` or `VALUE_DELIMITER`; raises `FormatError`."""
    if not text.strip():
        raise FormatError(
            "Delimiter cannot be empty, if you meant to have a tab or space for delimiter, please use the special "
            "values 'TAB' or 'SPACE'\nExample valid value: ';'"
        )
    if len(text) == 1:
        return text
    named = _NAMED_DELIMITERS.get(text.upper())
    if named is None:
        raise FormatError(
            f"Invalid delimiter value: '{text}'. Delimiter must be a single character or "
            f"{','.join(_NAMED_DELIMITERS)}\nExample valid value: ';'"
        )
    return named
