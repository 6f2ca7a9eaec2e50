"""A schema as the registry keeps it: one version of one subject. Start at `SchemaVersion`."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.registry.metadata import Metadata, RuleSet, hashed_parts
from moldau.registry.subjects import context_of, in_context

__all__ = ["AVRO", "SCHEMA_TYPES", "Identity", "SchemaVersion", "SubjectReference", "fingerprint"]

AVRO = "AVRO"
SCHEMA_TYPES = ("JSON", "PROTOBUF", AVRO)


class SubjectReference(NamedTuple):
    """A part of a schema that is kept under another subject."""

    name: str
    """How the schema calls it: Avro's full name, JSON Schema's `$ref`, Protobuf's import path."""
    subject: str
    version: int


class Identity(NamedTuple):
    """What makes two schemas the same, wherever they are registered."""

    schema_type: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    subject: str
    version: int
    id: int
    schema_type: str
    schema: str
    references: tuple[SubjectReference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    is_deleted: bool = False
    timestamp_ms: int | None = field(default=None, compare=False)
    """When the record was written: the topic's word, unknown until it was read back."""
    identity: Identity = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        digest = fingerprint(self.schema, self.references, self.metadata, self.rule_set)
        object.__setattr__(self, "identity", Identity(self.schema_type, digest))

    def reference_keys(self) -> Iterator[tuple[str, int]]:
        """The versions this one is built on; a plain subject means one of its own context."""
        context = context_of(self.subject)
        for reference in self.references:
            yield in_context(context, reference.subject), reference.version

    @property
    def guid(self) -> str:
        return str(uuid.UUID(bytes=self.identity.digest))


def fingerprint(
    schema: str,
    references: Sequence[SubjectReference] = (),
    metadata: Metadata | None = None,
    rule_set: RuleSet | None = None,
) -> bytes:
    """Sixteen bytes that all registries compute alike for the same schema; as a uuid they are its `guid`."""
    digest = hashlib.md5(schema.encode(), usedforsecurity=False)
    for reference in references:
        digest.update(reference.name.encode())
        digest.update(reference.subject.encode())
        digest.update(reference.version.to_bytes(4, "big", signed=True))
    for part in hashed_parts(metadata, rule_set):
        digest.update(part)
    return digest.digest()
