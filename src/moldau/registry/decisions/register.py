"""Registering a schema under a subject, and finding one that is already registered. Start at `register`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moldau.core.ids import INT32_MAX
from moldau.registry.decisions.candidates import Candidate, build_candidate, complete_request, inherit_settings
from moldau.registry.decisions.compatibility import incompatibilities
from moldau.registry.decisions.decision import Decision, check_writable
from moldau.registry.entities import SchemaVersion
from moldau.registry.errors import (
    IdMismatchError,
    IncompatibleSchemaError,
    InvalidSchemaTextError,
    NotPermittedError,
)
from moldau.registry.metadata import validate_rule_set
from moldau.registry.parsing.parser import Parser
from moldau.registry.queries import LATEST
from moldau.registry.records import ContextKey, Record, SchemaKey
from moldau.registry.requests import RegisterRequest
from moldau.registry.scopes import IMPORTING_MODES, effective_config, effective_mode, scope_of
from moldau.registry.state import State
from moldau.registry.subjects import DEFAULT_CONTEXT, check_subject, context_of

__all__ = ["find_registered", "register"]


def register(
    state: State,
    parser: Parser,
    subject: str,
    request: RegisterRequest,
    *,
    defaults: Mapping[str, Any],
    normalize: bool = False,
    force: bool = False,
    may_be_empty: bool = True,
    validates_new: bool = True,
) -> Decision[SchemaVersion]:
    """Decide the version and id of a schema; one that is already registered keeps both."""
    check_subject(subject, may_be_empty=may_be_empty)
    mode = _check_mode(state, subject, request)
    is_import = mode in IMPORTING_MODES
    config = effective_config(state, scope_of(subject), defaults)
    live = state.live_versions(subject)[::-1]
    next_version = max((schema.version for schema in state.versions(subject)), default=0) + 1
    if not is_import:
        request = complete_request(request, live[0] if live else None, config, next_version)
    is_new = request.id is None and validates_new and config.get("validateNewSchemas") is not False
    new = build_candidate(state, parser, subject, request, config, normalize=normalize, is_new=is_new)
    validate_rule_set(new.rule_set)
    found = _existing(state, subject, new, request)
    if found is not None:
        return Decision(found)
    if not is_import and not force:
        messages = incompatibilities(state, parser, new, live, config)
        if messages:
            raise IncompatibleSchemaError(subject, messages)
    version = _version(request, next_version, is_import=is_import)
    added = new.as_version(version, _id(state, subject, new, request))
    records = (*_context_record(state, subject), *_obsolete(state, added), Record(SchemaKey(subject, version), added))
    return Decision(added, records)


def find_registered(
    state: State,
    parser: Parser,
    subject: str,
    request: RegisterRequest,
    *,
    defaults: Mapping[str, Any],
    normalize: bool = False,
) -> SchemaVersion | None:
    """The live version that registering would return without writing anything, else `None`.

    Covers the common case only: requests that ask for a version or an id, or that configs complete, are left to
    `register`.
    """
    config = effective_config(state, scope_of(subject), defaults)
    if request.version != 0 or request.is_empty or any(name.startswith(("default", "override")) for name in config):
        return None
    latest = state.latest(subject)
    if latest is None or effective_mode(state, scope_of(subject)) != "READWRITE" or request.id is not None:
        return None
    request = inherit_settings(request, latest, config)
    new = build_candidate(state, parser, subject, request, config, normalize=normalize, is_new=True)
    return _existing(state, subject, new, request)


def _check_mode(state: State, subject: str, request: RegisterRequest) -> str:
    check_writable(state, subject)
    mode = effective_mode(state, scope_of(subject))
    if request.id is not None and mode not in IMPORTING_MODES:
        raise NotPermittedError(f"Subject {subject} is not in import mode, so the id {request.id} cannot be chosen")
    if request.id is None and mode != "READWRITE":
        raise NotPermittedError(f"Subject {subject} is not in read-write mode but in {mode}")
    return mode


def _existing(state: State, subject: str, new: Candidate, request: RegisterRequest) -> SchemaVersion | None:
    """The live version with the same schema; `None` if the request asks for a specific version."""
    if request.version > 0:
        return None
    live = [schema for schema in state.same_in(subject, new.identity) if not schema.is_deleted]
    if request.version == LATEST:
        latest = state.latest(subject)
        live = [schema for schema in live if latest is not None and schema.version == latest.version]
    if live and request.id is not None and request.id != live[0].id:
        raise IdMismatchError(request.id, live[0].id)
    return live[0] if live else None


def _version(request: RegisterRequest, next_version: int, *, is_import: bool) -> int:
    if request.version <= 0:
        return next_version
    if request.version != next_version and not is_import:
        raise InvalidSchemaTextError(f"Version {request.version} was requested, but the next one is {next_version}")
    return request.version


def _id(state: State, subject: str, new: Candidate, request: RegisterRequest) -> int:
    context = context_of(subject)
    if request.id is not None:
        for user in state.users_of_id(context, request.id):
            if user.identity != new.identity:
                raise NotPermittedError(f"The id {request.id} belongs to another schema in context {context}")
        return request.id
    known = state.known_id(context, new.identity)
    if known is not None:
        return known
    if state.max_id(context) >= INT32_MAX:
        raise NotPermittedError(f"No id is left in context {context}")
    return state.max_id(context) + 1


def _context_record(state: State, subject: str) -> Iterator[Record]:
    context = context_of(subject)
    if context != DEFAULT_CONTEXT and context not in state.named_contexts:
        yield Record(ContextKey(context), context)


def _obsolete(state: State, added: SchemaVersion) -> Iterator[Record]:
    """Tombstones for older soft-deleted versions of the same schema that nothing refers to."""
    for old in state.versions(added.subject):
        is_obsolete = old.is_deleted and old.id == added.id and old.version < added.version
        if is_obsolete and not state.referrers(old.subject, old.version):
            yield Record(SchemaKey(old.subject, old.version))
