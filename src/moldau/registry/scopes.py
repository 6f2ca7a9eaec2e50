"""The effective config and mode of a subject: its own, else its context's, else the global ones.

The order is subject, context, `/config` or `/mode`, the settings above the default context (`:.__GLOBAL:`), and the
server's defaults. Configs are merged field by field. The nearest mode applies, except that `READONLY_OVERRIDE` in any
of these scopes overrides it. Pure functions. Start at `effective_config` and `effective_mode`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moldau.registry.state import State
from moldau.registry.subjects import DEFAULT_CONTEXT, GLOBAL_CONTEXT, QualifiedSubject, parse_subject
from moldau.schemas.compatibility import CompatibilityLevel

__all__ = [
    "GLOBAL_SCOPE",
    "IMPORTING_MODES",
    "LEVELS",
    "MODES",
    "READ_ONLY_MODES",
    "alias_target",
    "effective_config",
    "effective_mode",
    "scope_of",
    "wider_scopes",
]

GLOBAL_SCOPE: Final = QualifiedSubject(GLOBAL_CONTEXT, "").text

LEVELS: Final = tuple(level.value for level in CompatibilityLevel)
MODES: Final = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
READ_ONLY_MODES: Final = frozenset({"READONLY", "READONLY_OVERRIDE"})
IMPORTING_MODES: Final = frozenset({"IMPORT", "FORWARD"})
DEFAULT_MODE: Final = "READWRITE"


def scope_of(subject: str | None) -> str | None:
    """The name under which settings are stored; `None` for the default context."""
    if subject is None:
        return None
    qualified = parse_subject(subject)
    return None if qualified.context == DEFAULT_CONTEXT and not qualified.name else qualified.text


def wider_scopes(scope: str | None) -> tuple[str | None, ...]:
    """The scopes above one, nearest first."""
    if scope == GLOBAL_SCOPE:
        return ()
    if scope is None:
        return (GLOBAL_SCOPE,)
    qualified = parse_subject(scope)
    own_context = QualifiedSubject(qualified.context, "").text
    is_in_context = qualified.context != DEFAULT_CONTEXT and not qualified.is_whole_context
    return (own_context, None, GLOBAL_SCOPE) if is_in_context else (None, GLOBAL_SCOPE)


def effective_config(state: State, scope: str | None, defaults: Mapping[str, Any]) -> Mapping[str, Any]:
    """All settings that apply to a scope; an alias is not inherited."""
    merged = dict(defaults)
    for wider in reversed(wider_scopes(scope)):
        merged |= {name: value for name, value in state.configs.get(wider, {}).items() if name != "alias"}
    return merged | dict(state.configs.get(scope, {}))


def effective_mode(state: State, scope: str | None) -> str:
    scopes = (scope, *wider_scopes(scope))
    found = [state.modes[one] for one in scopes if one in state.modes]
    return "READONLY_OVERRIDE" if "READONLY_OVERRIDE" in found else (found or [DEFAULT_MODE])[0]


def alias_target(state: State, subject: str) -> str:
    """The subject that an alias stands for; the subject itself if its config has no alias."""
    alias = state.configs.get(subject, {}).get("alias")
    if not alias:
        return subject
    context = parse_subject(subject).context
    target = parse_subject(alias)
    return target.text if target.context != DEFAULT_CONTEXT else QualifiedSubject(context, alias).text
