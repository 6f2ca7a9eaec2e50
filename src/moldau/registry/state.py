"""The registry's state, built by replaying the records of `_schemas` in order.

Nothing else changes it, so a restarted registry, a follower and the leader have the same state. No I/O, no clock, no
locks: one thread at a time. Start at `State.apply`; `registry.scopes` has the config and mode of a subject.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from moldau.registry.entities import SCHEMA_TYPES, Identity, SchemaVersion
from moldau.registry.records import (
    ClearSubjectKey,
    ConfigKey,
    ContextKey,
    DeleteSubjectKey,
    ModeKey,
    NoopKey,
    Record,
    SchemaKey,
)
from moldau.registry.subjects import DEFAULT_CONTEXT, QualifiedSubject, context_of, is_below, parse_subject

__all__ = ["Refusal", "State"]


class Refusal(NamedTuple):
    """A rejected record: its id already belongs to another schema."""

    record: Record
    instead: SchemaVersion | None
    """The key's previous value, which the leader writes back."""


class _Context:
    """The ids of one context; every context has its own ids, starting at 1."""

    __slots__ = ("ids", "max_id", "users")

    def __init__(self) -> None:
        self.ids: dict[Identity, int] = {}
        self.users: dict[int, dict[SchemaKey, None]] = {}
        """The versions that use each id, oldest first."""
        self.max_id = 0


class State:
    def __init__(self) -> None:
        self.configs: dict[str | None, Mapping[str, Any]] = {}
        self.modes: dict[str | None, str] = {}
        self.named_contexts: dict[str, None] = {}
        self.generation = 0
        """Number of changes; a cached response from an earlier generation is stale."""
        self._versions: dict[str, dict[int, SchemaVersion]] = {}
        self._contexts: dict[str, _Context] = {}
        self._referrers: dict[SchemaKey, dict[SchemaKey, None]] = {}

    # Changes

    def apply(self, record: Record) -> Refusal | None:
        """Apply one record; a rejected record changes no schemas and is returned as a `Refusal`."""
        self.generation += 1
        match record.key:
            case SchemaKey() as key:
                return self._apply_schema(key, record)
            case ConfigKey(scope):
                _set_or_remove(self.configs, scope, record.value)
            case ModeKey(scope):
                _set_or_remove(self.modes, scope, record.value)
            case DeleteSubjectKey(subject) if isinstance(record.value, int):
                self._soft_delete(subject, record.value)
            case ClearSubjectKey(scope) if record.value is not None:
                self._clear(scope)
            case ContextKey(context):
                self._apply_context(context, is_there=record.value is not None)
            case NoopKey():
                self.generation -= 1
        return None

    def apply_all(self, records: Iterable[Record]) -> list[Refusal]:
        return [refusal for record in records if (refusal := self.apply(record)) is not None]

    def _apply_schema(self, key: SchemaKey, record: Record) -> Refusal | None:
        new = record.value
        if not isinstance(new, SchemaVersion):
            self._remove(key)
            return None
        context = self._context(key.subject)
        if new.id in context.users and self._is_taken(key, new):
            return Refusal(record, self.version(*key))
        self._remove(key)
        context.ids[new.identity] = new.id
        context.users.setdefault(new.id, {})[key] = None
        context.max_id = max(context.max_id, new.id)
        self._versions.setdefault(key.subject, {})[key.version] = new
        for referred in new.reference_keys():
            self._referrers.setdefault(SchemaKey(*referred), {})[key] = None
        return None

    def _is_taken(self, key: SchemaKey, new: SchemaVersion) -> bool:
        others = (user for user in self._context(key.subject).users.get(new.id, ()) if user != key)
        other = next(others, None)
        return other is not None and self._versions[other.subject][other.version].identity != new.identity

    def _remove(self, key: SchemaKey) -> None:
        old = self._versions.get(key.subject, {}).pop(key.version, None)
        if old is None:
            return
        if not self._versions[key.subject]:
            del self._versions[key.subject]
        context = self._context(key.subject)
        users = context.users[old.id]
        del users[key]
        if not users:
            del context.users[old.id]
            if context.ids.get(old.identity) == old.id:
                del context.ids[old.identity]
        for referred in old.reference_keys():
            self._referrers.get(SchemaKey(*referred), {}).pop(key, None)

    def _soft_delete(self, subject: str, up_to: int) -> None:
        versions = self._versions.get(subject, {})
        for number, schema in versions.items():
            if number <= up_to and not schema.is_deleted:
                versions[number] = replace(schema, is_deleted=True)

    def _clear(self, scope: str | None) -> None:
        for schema in [schema for schema in self.all_versions() if schema.is_deleted]:
            if is_below(scope, schema.subject):
                self._remove(SchemaKey(schema.subject, schema.version))

    def _apply_context(self, context: str, *, is_there: bool) -> None:
        if is_there:
            self.named_contexts[context] = None
        else:
            self.named_contexts.pop(context, None)

    def _context(self, subject: str) -> _Context:
        name = context_of(subject)
        found = self._contexts.get(name)
        if found is None:
            found = self._contexts[name] = _Context()
        return found

    # Queries

    def version(self, subject: str, version: int) -> SchemaVersion | None:
        """A version, even if it is soft-deleted; `None` if there is none."""
        return self._versions.get(subject, {}).get(version)

    def versions(self, subject: str) -> list[SchemaVersion]:
        """All versions of a subject in order, including soft-deleted ones."""
        return [schema for _, schema in sorted(self._versions.get(subject, {}).items())]

    def live_versions(self, subject: str) -> list[SchemaVersion]:
        return [schema for schema in self.versions(subject) if not schema.is_deleted]

    def latest(self, subject: str) -> SchemaVersion | None:
        versions = self._versions.get(subject, {}).values()
        return max((schema for schema in versions if not schema.is_deleted), key=_number, default=None)

    def subjects(self) -> list[str]:
        """All subjects of all contexts, sorted, including those with only soft-deleted versions."""
        return sorted(self._versions)

    def all_versions(self) -> Iterator[SchemaVersion]:
        for subject in self.subjects():
            yield from self.versions(subject)

    def contexts(self) -> list[str]:
        """The default context, then the others by name."""
        used = {name for name, context in self._contexts.items() if context.users}
        return [DEFAULT_CONTEXT, *sorted((used | self.named_contexts.keys()) - {DEFAULT_CONTEXT})]

    def known_id(self, context: str, identity: Identity) -> int | None:
        """The id of the same schema in this context, under any subject."""
        found = self._contexts.get(context)
        return None if found is None else found.ids.get(identity)

    def max_id(self, context: str) -> int:
        found = self._contexts.get(context)
        return 0 if found is None else found.max_id

    def users_of_id(self, context: str, schema_id: int) -> list[SchemaVersion]:
        """The versions that have an id, oldest first; empty for an unknown id."""
        found = self._contexts.get(context)
        users = () if found is None else found.users.get(schema_id, ())
        return [self._versions[key.subject][key.version] for key in users]

    def users_of_digest(self, context: str, digest: bytes) -> list[SchemaVersion]:
        """The versions whose digest (the bytes of the guid) is this one."""
        ids = (self.known_id(context, Identity(schema_type, digest)) for schema_type in SCHEMA_TYPES)
        return [user for known in ids if known is not None for user in self.users_of_id(context, known)]

    def same_in(self, subject: str, identity: Identity) -> list[SchemaVersion]:
        """The versions of a subject with this identity, newest first."""
        schema_id = self.known_id(context_of(subject), identity)
        if schema_id is None:
            return []
        found = [schema for schema in self.users_of_id(context_of(subject), schema_id) if schema.subject == subject]
        return sorted(found, key=_number, reverse=True)

    def referrers(self, subject: str, version: int) -> list[SchemaVersion]:
        """The schemas that refer to a version, including soft-deleted ones."""
        users = self._referrers.get(SchemaKey(subject, version), ())
        return [self._versions[user.subject][user.version] for user in users]

    def spellings(self, subject: str) -> Iterator[str]:
        """The names to look a subject up by: itself, then, if unqualified, the same name in every other context."""
        yield subject
        if parse_subject(subject).context == DEFAULT_CONTEXT:
            yield from (QualifiedSubject(context, subject).text for context in self.contexts()[1:])


def _number(schema: SchemaVersion) -> int:
    return schema.version


def _set_or_remove(settings: dict[str | None, Any], scope: str | None, value: Any) -> None:
    if value is None:
        settings.pop(scope, None)
    else:
        settings[scope] = value
