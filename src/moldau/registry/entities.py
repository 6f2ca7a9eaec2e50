"""A schema as the registry stores it: one version of one subject. Start at `SchemaVersion`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.registry.metadata import Metadata, RuleSet
from moldau.registry.subjects import context_of, in_context
from moldau.schemas.identity import SchemaReference, digest, guid

__all__ = ["AVRO", "SCHEMA_TYPES", "Identity", "SchemaReference", "SchemaVersion"]

AVRO = "AVRO"
SCHEMA_TYPES = ("JSON", "PROTOBUF", AVRO)


class Identity(NamedTuple):
    """Identity of a schema: equal identities mean the same schema, whatever the subjects."""

    schema_type: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    subject: str
    version: int
    id: int
    schema_type: str
    schema: str
    references: tuple[SchemaReference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    is_deleted: bool = False
    timestamp_ms: int | None = field(default=None, compare=False)
    """The topic's timestamp of the record; `None` until the record has been read back."""
    identity: Identity = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        hashed = digest(self.schema, self.references, self.metadata, self.rule_set)
        object.__setattr__(self, "identity", Identity(self.schema_type, hashed))

    def reference_keys(self) -> Iterator[tuple[str, int]]:
        """Subject and version of each reference; an unqualified subject belongs to this schema's context."""
        context = context_of(self.subject)
        for reference in self.references:
            yield in_context(context, reference.subject), reference.version

    @property
    def guid(self) -> str:
        return guid(self.identity.digest)
