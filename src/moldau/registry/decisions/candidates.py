"""From a request to the schema that would be kept: completed, parsed, validated and in its one spelling.

Used by registering, looking up and testing alike, so that the three agree on what "the same schema" is.
Start at `candidate` and `completed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from moldau.registry.entities import Identity, SchemaReference
from moldau.registry.entities import SchemaVersion as Version
from moldau.registry.errors import InvalidSchemaTextError
from moldau.registry.metadata import (
    VERSION_PROPERTY,
    Metadata,
    RuleSet,
    merged_metadata,
    merged_rule_sets,
    property_of,
    with_version,
)
from moldau.registry.parsing import Parser
from moldau.registry.requests import RegisterRequest
from moldau.registry.state import State
from moldau.registry.subjects import context_of, in_context
from moldau.schemas.errors import SchemaError
from moldau.schemas.identity import digest
from moldau.schemas.schema import ParsedSchema

__all__ = ["Candidate", "candidate", "completed", "with_inherited"]


@dataclass(frozen=True, slots=True)
class Candidate:
    subject: str
    parsed: ParsedSchema
    schema: str
    schema_type: str
    references: tuple[SchemaReference, ...]
    metadata: Metadata | None
    rule_set: RuleSet | None

    @property
    def identity(self) -> Identity:
        return Identity(self.schema_type, digest(self.schema, self.references, self.metadata, self.rule_set))

    def as_version(self, version: int, schema_id: int) -> Version:
        return Version(
            self.subject,
            version,
            schema_id,
            self.schema_type,
            self.schema,
            self.references,
            self.metadata,
            self.rule_set,
        )


def candidate(
    state: State,
    parser: Parser,
    subject: str,
    request: RegisterRequest,
    config: Mapping[str, Any],
    *,
    normalize: bool,
    is_new: bool,
) -> Candidate:
    """The schema of a request as it would be kept; raises `InvalidSchemaTextError`."""
    if request.is_empty:
        raise InvalidSchemaTextError("Empty schema")
    references = tuple(_with_number(state, subject, reference) for reference in request.references)
    parsed = parser.parse(state, subject, request.schema_type, request.schema, references, is_new=is_new)
    try:
        if is_new and config.get("validateFields"):
            parsed.check_field_names()
        if normalize or config.get("normalize"):
            parsed = parsed.normalized()
            references = tuple(sorted(references))
        canonical = parsed.canonical
    except SchemaError as error:
        raise InvalidSchemaTextError.of(subject, request.schema_type, request.schema, references, str(error)) from error
    return Candidate(
        subject,
        parsed,
        canonical,
        str(parsed.schema_type),
        references,
        request.metadata or None,
        request.rule_set or None,
    )


def completed(
    request: RegisterRequest, previous: Version | None, config: Mapping[str, Any], next_version: int
) -> RegisterRequest:
    """A request with what it leaves to the version before it and to the config: text, metadata, rules."""
    if request.is_empty:
        if previous is None:
            raise InvalidSchemaTextError("Empty schema, and there is no version before it to take one from")
        request = replace(
            request, schema=previous.schema, schema_type=previous.schema_type, references=previous.references
        )
    request = with_inherited(request, previous, config)
    if request.version != 0 or property_of(request.metadata, VERSION_PROPERTY) is not None:
        request = replace(request, metadata=with_version(request.metadata, next_version))
    return request


def with_inherited(request: RegisterRequest, previous: Version | None, config: Mapping[str, Any]) -> RegisterRequest:
    """Metadata and rules of the request, else of the version before it, between the config's defaults and overrides."""
    metadata = request.metadata if request.metadata is not None or previous is None else previous.metadata
    rule_set = request.rule_set if request.rule_set is not None or previous is None else previous.rule_set
    return replace(
        request,
        metadata=merged_metadata(
            merged_metadata(config.get("defaultMetadata"), metadata), config.get("overrideMetadata")
        ),
        rule_set=merged_rule_sets(
            merged_rule_sets(config.get("defaultRuleSet"), rule_set), config.get("overrideRuleSet")
        ),
    )


def _with_number(state: State, subject: str, reference: SchemaReference) -> SchemaReference:
    """`latest` in a reference is the latest of today; what is kept says its number."""
    if reference.version != -1:
        return reference
    for spelling in state.spellings(in_context(context_of(subject), reference.subject)):
        latest = state.latest(spelling)
        if latest is not None:
            return replace(reference, version=latest.version)
    return reference
