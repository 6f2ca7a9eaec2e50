"""Changing configs and modes, global, of a context or of a subject. Start at `update_config`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moldau.registry.decisions.decision import Decision, check_writable
from moldau.registry.errors import InvalidModeError, NotPermittedError, SubjectNotFoundError
from moldau.registry.metadata import validate_rule_set
from moldau.registry.records import ClearSubjectKey, ConfigKey, ModeKey, Record, SchemaKey
from moldau.registry.scopes import DEFAULT_MODE, GLOBAL_SCOPE
from moldau.registry.state import State
from moldau.registry.subjects import check_setting_name, is_below

__all__ = ["delete_config", "delete_mode", "update_config", "update_mode"]


def update_config(state: State, scope: str | None, changes: Mapping[str, Any]) -> Decision[Mapping[str, Any]]:
    """Change some settings of a scope and keep the others; the reply is the scope's new config."""
    check_setting_name(scope)
    check_writable(state, scope)
    for name in ("defaultRuleSet", "overrideRuleSet"):
        validate_rule_set(changes.get(name))
    merged = {**state.configs.get(scope, {}), **changes}
    config = {name: value for name, value in merged.items() if value is not None}
    return Decision(config, (Record(ConfigKey(scope), config),))


def delete_config(state: State, scope: str | None, *, defaults: Mapping[str, Any]) -> Decision[Mapping[str, Any]]:
    """Delete a scope's own settings; the reply is the old ones."""
    check_writable(state, scope)
    old = state.configs.get(scope)
    if old is None:
        if scope is not None:
            raise SubjectNotFoundError(scope)
        return Decision(defaults)
    return Decision(old, (Record(ConfigKey(scope)),))


def update_mode(state: State, scope: str | None, mode: str, *, force: bool, is_mutable: bool) -> Decision[str]:
    check_setting_name(scope)
    _check_mutable(is_mutable=is_mutable)
    if mode == "FORWARD" and scope not in (None, GLOBAL_SCOPE):
        raise InvalidModeError("FORWARD is a mode of the whole registry, not of a context or a subject")
    records: tuple[Record, ...] = ()
    if mode == "IMPORT" and state.modes.get(scope) != "IMPORT":
        records = tuple(_permanent_deletions(state, scope, force=force))
    return Decision(mode, (*records, Record(ModeKey(scope), mode)))


def delete_mode(state: State, scope: str | None, *, is_recursive: bool, is_mutable: bool) -> Decision[str]:
    """Delete a scope's own mode, and if recursive those of all subjects within it; the reply is the old mode."""
    _check_mutable(is_mutable=is_mutable)
    old = state.modes.get(scope)
    if old is None and not is_recursive and scope is not None:
        raise SubjectNotFoundError(scope)
    gone = [scope] if old is not None else []
    if is_recursive:
        gone += [one for one in state.modes if one is not None and one != scope and is_below(scope, one)]
    return Decision(old or DEFAULT_MODE, tuple(Record(ModeKey(one)) for one in gone))


def _check_mutable(*, is_mutable: bool) -> None:
    if not is_mutable:
        raise NotPermittedError("Modes cannot be changed here: the registry was started with mode.mutability=false")


def _permanent_deletions(state: State, scope: str | None, *, force: bool) -> Iterator[Record]:
    """Records that permanently delete the scope's soft-deleted schemas; live ones are an error unless `force`."""
    within = [schema for schema in state.all_versions() if is_below(scope, schema.subject)]
    if not force and any(not schema.is_deleted for schema in within):
        where = f"subject {scope}" if scope is not None else "the registry"
        raise NotPermittedError(f"IMPORT needs an empty scope, but {where} has schemas; force=true overrides this")
    gone = [schema for schema in within if schema.is_deleted]
    for schema in gone:
        yield Record(SchemaKey(schema.subject, schema.version))
    if gone:
        yield Record(ClearSubjectKey(scope), scope or "")
