"""The finding type that comparisons of two schemas report.

Start at `Incompatibility`; the comparisons are `avro.compatibility`, `json_schema` and `protobuf`,
`compatibility` chooses between them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from moldau.schemas.parsed_schema import SchemaType

__all__ = ["Incompatibility", "Sides", "shorten"]

_MAX_PATH: Final = 1000
_MAX_DESCRIPTION: Final = 3000


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason why data of one schema cannot be read with another."""

    schema_type: SchemaType
    error_type: str
    """The registry's name of the broken rule, such as `TYPE_MISMATCH`."""

    path: str
    """The location: `/fields/2/type` in Avro, `#/properties/age` in JSON Schema, `#/Person/2` (tag) in Protobuf."""

    description: str
    """A sentence that names the field and the difference between the two schemas."""

    additional_info: str | None = None
    """The name, symbols or types the rule is about (Avro only)."""

    against: int = 0
    """The index of the incompatible schema in the list of previous schemas given to `check`."""

    @staticmethod
    def of(
        schema_type: SchemaType, error_type: str, path: str, description: str, additional_info: str | None = None
    ) -> Incompatibility:
        """A finding with shortened texts: names and paths may be as long as the schema itself."""
        info = None if additional_info is None else shorten(additional_info)
        return Incompatibility(schema_type, error_type, shorten(path), shorten(description, _MAX_DESCRIPTION), info)

    def at(self, index: int) -> Incompatibility:
        """The same finding, about the previous schema at `index`."""
        return replace(self, against=index)

    @property
    def message(self) -> str:
        """The message that a registry returns for it."""
        if not self.error_type:
            return self.description
        if self.schema_type is SchemaType.AVRO:
            info = f", additionalInfo:'{self.additional_info}'" if self.additional_info is not None else ""
            return f"{{errorType:'{self.error_type}', description:'{self.description}'{info}}}"
        return f'{{errorType:"{self.error_type}", description:"{self.description}"}}'

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class Sides:
    """The words for the two schemas in a sentence; for FORWARD the old one is the reader."""

    reader: str
    writer: str


def shorten(text: str, limit: int = _MAX_PATH) -> str:
    """The beginning and the end of a long text; a path that is repeatedly extended and shortened stays short."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}…{text[-half + 1 :]}"
