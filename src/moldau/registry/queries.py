"""Queries of the registry's state that may raise "not found". Pure functions. Start at `find_version`."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from moldau.core.ids import INT32_MAX
from moldau.registry.entities import SchemaVersion
from moldau.registry.errors import (
    InvalidVersionError,
    SchemaNotFoundError,
    SubjectNotFoundError,
    VersionNotFoundError,
)
from moldau.registry.state import State
from moldau.registry.subjects import DEFAULT_CONTEXT, WILDCARD, QualifiedSubject, parse_subject

__all__ = [
    "LATEST",
    "find_by_guid",
    "find_by_id",
    "find_latest_with",
    "find_version",
    "find_versions",
    "page",
    "parse_version",
    "schemas_below",
    "subjects_below",
    "subjects_by_alias",
]

LATEST = -1
Item = TypeVar("Item")


def parse_version(text: str) -> int:
    """The version number in a path; `latest` is -1. Raises `InvalidVersionError`."""
    if text.lower() == "latest" or text == "-1":
        return LATEST
    if not (text.isascii() and text.isdigit()) or len(text) > 10 or not 1 <= int(text) <= INT32_MAX:
        raise InvalidVersionError(text)
    return int(text)


def find_version(state: State, subject: str, version: int, *, with_deleted: bool = False) -> SchemaVersion:
    """One version; an unqualified subject that is not found in the default context is searched in the others."""
    for spelling in state.spellings(subject):
        schema = state.latest(spelling) if version == LATEST else state.version(spelling, version)
        if schema is not None and (with_deleted or not schema.is_deleted):
            return schema
    if not _has_versions(state, subject, with_deleted=with_deleted):
        raise SubjectNotFoundError(subject)
    raise VersionNotFoundError("latest" if version == LATEST else version)


def find_versions(
    state: State, subject: str, *, with_deleted: bool = False, only_deleted: bool = False
) -> list[SchemaVersion]:
    """The versions of a subject in order; raises `SubjectNotFoundError` if it has none."""
    for spelling in state.spellings(subject):
        found = [schema for schema in state.versions(spelling) if _is_wanted(schema, with_deleted, only_deleted)]
        if found:
            return found
    if any(state.versions(spelling) for spelling in state.spellings(subject)) and (with_deleted or only_deleted):
        return []
    raise SubjectNotFoundError(subject)


def find_by_id(state: State, schema_id: int, subject: str | None = None) -> list[SchemaVersion]:
    """The versions that have an id, including soft-deleted ones, in the subject's context."""
    qualified = parse_subject(subject or "")
    users = state.users_of_id(qualified.context, schema_id)
    if subject and qualified.name:
        contexts = state.contexts() if qualified.context == DEFAULT_CONTEXT else [qualified.context]
        for context in contexts:
            wanted = QualifiedSubject(context, qualified.name).text
            mine = [user for user in state.users_of_id(context, schema_id) if user.subject == wanted]
            if mine:
                return mine
    if not users:
        raise SchemaNotFoundError(schema_id)
    return users


def find_by_guid(state: State, guid: str) -> list[SchemaVersion]:
    """The schema with a guid: one version for each context that has it."""
    try:
        digest = uuid.UUID(guid).bytes
    except ValueError:
        raise SchemaNotFoundError(guid) from None
    found = [users[0] for context in state.contexts() if (users := state.users_of_digest(context, digest))]
    if not found:
        raise SchemaNotFoundError(guid)
    return found


def find_latest_with(
    state: State, subject: str, properties: Mapping[str, str], *, with_deleted: bool = False
) -> SchemaVersion:
    """The newest version whose metadata has all these properties."""
    for schema in reversed(find_versions(state, subject, with_deleted=with_deleted)):
        has = (schema.metadata or {}).get("properties", {})
        if schema.metadata is not None and all(has.get(name) == value for name, value in properties.items()):
            return schema
    raise SchemaNotFoundError


def subjects_below(state: State, prefix: str, *, with_deleted: bool = False, only_deleted: bool = False) -> list[str]:
    """Subjects with a prefix; `:*:` searches all contexts. A subject is deleted when all its versions are."""
    is_below = _beginning(prefix)
    names = []
    for subject in state.subjects():
        if is_below(subject):
            is_deleted = state.latest(subject) is None
            if is_deleted if only_deleted else with_deleted or not is_deleted:
                names.append(subject)
    return names


def schemas_below(
    state: State, prefix: str, *, with_deleted: bool = False, only_latest: bool = False, rule_type: str = ""
) -> list[SchemaVersion]:
    is_below = _beginning(prefix)
    found: list[SchemaVersion] = []
    for subject in filter(is_below, state.subjects()):
        versions = [schema for schema in state.versions(subject) if with_deleted or not schema.is_deleted]
        found += versions[-1:] if only_latest else versions
    return [schema for schema in found if not rule_type or _has_rule(schema, rule_type)]


def subjects_by_alias(state: State) -> dict[str, list[str]]:
    """The aliases of each subject that has any."""
    aliases: dict[str, list[str]] = {}
    for scope, config in state.configs.items():
        if scope is not None and config.get("alias"):
            aliases.setdefault(config["alias"], []).append(scope)
    return aliases


def page(items: Sequence[Item], offset: int, limit: int, *, default: int = -1, largest: int = INT32_MAX) -> list[Item]:
    """One page of the items; a limit that is not positive or too large means the default (-1: all items)."""
    begin = max(0, offset)
    count = limit if 0 < limit <= largest else default
    return list(items[begin:] if count < 0 else items[begin : begin + count])


def _has_versions(state: State, subject: str, *, with_deleted: bool) -> bool:
    return any(
        with_deleted or not schema.is_deleted
        for spelling in state.spellings(subject)
        for schema in state.versions(spelling)
    )


def _is_wanted(schema: SchemaVersion, with_deleted: bool, only_deleted: bool) -> bool:
    return schema.is_deleted if only_deleted else with_deleted or not schema.is_deleted


def _beginning(prefix: str) -> Callable[[str], bool]:
    if prefix.startswith(WILDCARD):
        name = prefix.removeprefix(WILDCARD)
        return lambda subject: parse_subject(subject).name.startswith(name)
    return lambda subject: subject.startswith(prefix)


def _has_rule(schema: SchemaVersion, rule_type: str) -> bool:
    rules: Iterable[Any] = (schema.rule_set or {}).values()
    return any(rule.get("type") == rule_type for listed in rules if isinstance(listed, list) for rule in listed)
