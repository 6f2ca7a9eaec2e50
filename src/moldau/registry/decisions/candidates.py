"""The schema that a request would store: completed, parsed, validated and in canonical form.

Used by registration, lookup and compatibility tests, so that all three agree on what "the same schema" is.
Start at `build_candidate` and `complete_request`.
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
    rule_set_without,
    with_version,
)
from moldau.registry.parsing.parser import Parser
from moldau.registry.requests import RegisterRequest, TagRequest
from moldau.registry.state import State
from moldau.registry.subjects import context_of, in_context
from moldau.schemas.errors import SchemaError
from moldau.schemas.identity import digest
from moldau.schemas.schema import ParsedSchema

__all__ = ["Candidate", "build_candidate", "complete_request", "inherit_settings", "retag_request"]


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


def build_candidate(
    state: State,
    parser: Parser,
    subject: str,
    request: RegisterRequest,
    config: Mapping[str, Any],
    *,
    normalize: bool,
    is_new: bool,
) -> Candidate:
    """The schema of a request as it would be stored; raises `InvalidSchemaTextError`."""
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


def complete_request(
    request: RegisterRequest, previous: Version | None, config: Mapping[str, Any], next_version: int
) -> RegisterRequest:
    """The request, with missing text, metadata and rules taken from the previous version and the config."""
    if request.is_empty:
        if previous is None:
            raise InvalidSchemaTextError("Empty schema, and the subject has no earlier version to take the schema from")
        request = replace(
            request, schema=previous.schema, schema_type=previous.schema_type, references=previous.references
        )
    request = inherit_settings(request, previous, config)
    if request.version != 0 or property_of(request.metadata, VERSION_PROPERTY) is not None:
        request = replace(request, metadata=with_version(request.metadata, next_version))
    return request


def inherit_settings(request: RegisterRequest, previous: Version | None, config: Mapping[str, Any]) -> RegisterRequest:
    """The request with its own or the previous version's metadata and rules, plus config defaults and overrides."""
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


def retag_request(old: Version, previous: Version, request: TagRequest) -> RegisterRequest:
    """The request to register a new version of a known text, in which only metadata and rules change.

    The rules are either a complete set, or changes to those of the previous version.
    """
    rule_set = request.rule_set
    if request.rules_to_merge is not None or request.rules_to_remove:
        rule_set = merged_rule_sets(previous.rule_set, request.rules_to_merge)
        rule_set = rule_set_without(rule_set, request.rules_to_remove)
    metadata = request.metadata if request.metadata is not None else old.metadata
    return RegisterRequest(
        schema=old.schema,
        schema_type=old.schema_type,
        references=old.references,
        metadata=with_version(metadata, request.new_version),
        rule_set=rule_set,
        version=request.new_version,
    )


def _with_number(state: State, subject: str, reference: SchemaReference) -> SchemaReference:
    """The reference with `latest` replaced by the current latest version number, which is what gets stored."""
    if reference.version != -1:
        return reference
    for spelling in state.spellings(in_context(context_of(subject), reference.subject)):
        latest = state.latest(spelling)
        if latest is not None:
            return replace(reference, version=latest.version)
    return reference
