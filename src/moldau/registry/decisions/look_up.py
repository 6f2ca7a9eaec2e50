"""Lookup of a schema among the versions of a subject. Pure functions. Start at `look_up`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moldau.registry.decisions.candidates import Candidate, build_candidate, inherit_settings
from moldau.registry.entities import SchemaVersion
from moldau.registry.errors import SchemaNotFoundError
from moldau.registry.parsing.parser import Parser
from moldau.registry.queries import find_versions
from moldau.registry.requests import RegisterRequest
from moldau.registry.scopes import effective_config, scope_of
from moldau.registry.state import State

__all__ = ["look_up"]


def look_up(
    state: State,
    parser: Parser,
    subject: str,
    request: RegisterRequest,
    *,
    defaults: Mapping[str, Any],
    normalize: bool = False,
    with_deleted: bool = False,
) -> SchemaVersion:
    """The version with this schema; an unqualified subject without it is also searched in the other contexts.

    Raises `SubjectNotFoundError` or `SchemaNotFoundError`.
    """
    for spelling in state.spellings(subject):
        if state.versions(spelling) if with_deleted else state.latest(spelling):
            config = effective_config(state, scope_of(spelling), defaults)
            found = _look_up_in(
                state, parser, spelling, request, config, normalize=normalize, with_deleted=with_deleted
            )
            if found is not None:
                return found
    find_versions(state, subject, with_deleted=with_deleted)
    raise SchemaNotFoundError


def _look_up_in(
    state: State,
    parser: Parser,
    subject: str,
    request: RegisterRequest,
    config: Mapping[str, Any],
    *,
    normalize: bool,
    with_deleted: bool,
) -> SchemaVersion | None:
    """The version of exactly this subject, for the schema as sent or as completed by registration."""
    new = build_candidate(state, parser, subject, request, config, normalize=normalize, is_new=False)
    for found in state.same_in(subject, new.identity):
        if with_deleted or not found.is_deleted:
            return found
    resolved = next(_same_when_resolved(state, parser, subject, new, with_deleted=with_deleted), None)
    inherited = inherit_settings(request, state.latest(subject), config)
    if resolved is not None or inherited == request:
        return resolved
    return _look_up_in(state, parser, subject, inherited, config, normalize=normalize, with_deleted=with_deleted)


def _same_when_resolved(
    state: State, parser: Parser, subject: str, new: Candidate, *, with_deleted: bool
) -> Iterator[SchemaVersion]:
    """Versions that equal this schema once their references are resolved: clients send either form."""
    if new.references:
        return
    for old in state.versions(subject)[::-1]:
        is_wanted = old.references and old.schema_type == new.schema_type and (with_deleted or not old.is_deleted)
        if is_wanted and parser.parse_version(state, old).render("resolved") == new.parsed.render("resolved"):
            yield old
