"""Deleting versions and subjects: soft (ids still resolve) or permanent. Start at `delete_subject`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from moldau.registry.decisions.decision import Decision, check_writable
from moldau.registry.entities import SchemaVersion
from moldau.registry.errors import (
    ContextNotEmptyError,
    NotPermittedError,
    ReferenceExistsError,
    SubjectNotFoundError,
    SubjectNotSoftDeletedError,
    SubjectSoftDeletedError,
    VersionNotFoundError,
    VersionNotSoftDeletedError,
    VersionSoftDeletedError,
)
from moldau.registry.records import ConfigKey, ContextKey, DeleteSubjectKey, ModeKey, Record, SchemaKey
from moldau.registry.state import State
from moldau.registry.subjects import DEFAULT_CONTEXT, context_of

__all__ = ["delete_context", "delete_subject", "delete_version"]


def delete_subject(state: State, subject: str, *, permanent: bool) -> Decision[list[int]]:
    """Delete a subject; the reply is its deleted versions.

    A permanent delete requires a soft delete first, and also deletes the subject's settings.
    """
    check_writable(state, subject)
    versions = state.versions(subject)
    if not versions:
        raise SubjectNotFoundError(subject)
    live = [schema for schema in versions if not schema.is_deleted]
    if permanent:
        if live:
            raise SubjectNotSoftDeletedError(subject)
        _check_unreferenced(state, versions, within=subject, permanent=True)
        tombstones = tuple(Record(SchemaKey(subject, schema.version)) for schema in versions)
        return Decision([schema.version for schema in versions], (*tombstones, *_settings(state, subject)))
    if not live:
        raise SubjectSoftDeletedError(subject)
    _check_unreferenced(state, live, within=subject, permanent=False)
    numbers = [schema.version for schema in live]
    return Decision(numbers, (Record(DeleteSubjectKey(subject), numbers[-1]),))


def delete_version(state: State, subject: str, version: int, *, permanent: bool) -> Decision[int]:
    """Delete one version; -1 is the latest live one."""
    check_writable(state, subject)
    if not state.versions(subject):
        raise SubjectNotFoundError(subject)
    schema = state.latest(subject) if version == -1 else state.version(subject, version)
    if schema is None:
        raise VersionNotFoundError("latest" if version == -1 else version)
    key = SchemaKey(subject, schema.version)
    if not permanent:
        if schema.is_deleted:
            raise VersionSoftDeletedError(subject, schema.version)
        _check_unreferenced(state, [schema], within=None, permanent=False)
        return Decision(schema.version, (Record(key, _deleted_version(schema)),))
    if not schema.is_deleted:
        raise VersionNotSoftDeletedError(subject, schema.version)
    _check_unreferenced(state, [schema], within=None, permanent=True)
    is_last = len(state.versions(subject)) == 1
    return Decision(schema.version, (Record(key), *(_settings(state, subject) if is_last else ())))


def delete_context(state: State, context: str) -> Decision[None]:
    """Delete a context without subjects; writes nothing if the context is unknown."""
    if context == DEFAULT_CONTEXT:
        raise NotPermittedError("The default context cannot be deleted")
    if any(context_of(subject) == context for subject in state.subjects()):
        raise ContextNotEmptyError(context)
    is_known = context in state.named_contexts
    return Decision(None, (Record(ContextKey(context)),) if is_known else ())


def _check_unreferenced(state: State, schemas: Iterable[SchemaVersion], *, within: str | None, permanent: bool) -> None:
    """Raise `ReferenceExistsError` if a live schema (for a permanent delete: any schema) refers to a deleted one.

    A subject is deleted as a whole, so its own versions may refer to each other.
    """
    for schema in schemas:
        for referrer in state.referrers(schema.subject, schema.version):
            if referrer.subject != within and (permanent or not referrer.is_deleted):
                raise ReferenceExistsError(schema.subject, schema.version)


def _settings(state: State, subject: str) -> Iterator[Record]:
    if subject in state.configs:
        yield Record(ConfigKey(subject))
    if subject in state.modes:
        yield Record(ModeKey(subject))


def _deleted_version(schema: SchemaVersion) -> SchemaVersion:
    return replace(schema, is_deleted=True)
