"""What a comparison of two schemas reports.

Start at `Incompatibility`; the comparisons are `avro.compatibility`, `json_schema` and `protobuf`,
`compatibility` picks the right one.
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
    """The rule that is broken, by the registry's name for it, such as `TYPE_MISMATCH`."""

    path: str
    """Where: `/fields/2/type` in Avro, `#/properties/age` in JSON Schema, `#/Person/2` (tag) in Protobuf."""

    description: str
    """A sentence that names the field and says which of the two schemas lacks what."""

    additional_info: str | None = None
    """The name, symbols or types the rule is about (Avro only)."""

    against: int = 0
    """Which of the previous schemas it was found against, as an index into what `check` was given."""

    @staticmethod
    def of(
        schema_type: SchemaType, error_type: str, path: str, description: str, additional_info: str | None = None
    ) -> Incompatibility:
        """A finding whose texts are cut: names and paths may be as long as the schema itself."""
        info = None if additional_info is None else shorten(additional_info)
        return Incompatibility(schema_type, error_type, shorten(path), shorten(description, _MAX_DESCRIPTION), info)

    def at(self, index: int) -> Incompatibility:
        """The same finding, about the previous schema at `index`."""
        return replace(self, against=index)

    @property
    def message(self) -> str:
        """The line a registry shows for it."""
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
    """What to call the two schemas in a sentence; for FORWARD the old one is the reader."""

    reader: str
    writer: str


def shorten(text: str, limit: int = _MAX_PATH) -> str:
    """The beginning and the end of a long text; a path that is extended and shortened in turn stays short."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}…{text[-half + 1 :]}"
