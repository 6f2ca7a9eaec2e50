"""Names of subjects and of their contexts.

An unqualified subject belongs to the default context `.`; `:.ctx:name` belongs to `.ctx`; `:.ctx:` alone is the
context itself, and `:*:` is all contexts. Settings above the default context are stored under `:.__GLOBAL:`.
Pure functions. Start at `parse_subject`.
"""

from __future__ import annotations

from typing import NamedTuple

from moldau.registry.errors import InvalidSubjectError

__all__ = [
    "DEFAULT_CONTEXT",
    "GLOBAL_CONTEXT",
    "WILDCARD",
    "QualifiedSubject",
    "check_setting_name",
    "check_subject",
    "context_name",
    "context_of",
    "in_context",
    "is_below",
    "parse_subject",
]

DEFAULT_CONTEXT = "."
GLOBAL_CONTEXT = ".__GLOBAL"
WILDCARD = ":*:"

_RESERVED = frozenset({"__GLOBAL", "__EMPTY"})


class QualifiedSubject(NamedTuple):
    context: str
    name: str

    @property
    def text(self) -> str:
        """The canonical name: unqualified in the default context, `:.ctx:name` in others."""
        return self.name if self.context == DEFAULT_CONTEXT else f":{self.context}:{self.name}"

    @property
    def is_whole_context(self) -> bool:
        return not self.name


def parse_subject(text: str) -> QualifiedSubject:
    """Split a subject into context and name; one without a context prefix is in the default context."""
    if not text.startswith((":.", WILDCARD)):
        return QualifiedSubject(DEFAULT_CONTEXT, text)
    context, _, name = text[1:].partition(":")
    return QualifiedSubject(context, name)


def context_of(subject: str) -> str:
    return parse_subject(subject).context


def context_name(text: str) -> str:
    """The context named in a path, which may omit the colons and the leading dot."""
    bare = text.strip(":")
    return bare if bare.startswith(".") else f".{bare}"


def in_context(context: str, subject: str) -> str:
    """The canonical name of a subject used within a context; a qualified subject keeps its own context."""
    qualified = parse_subject(subject)
    if qualified.context != DEFAULT_CONTEXT or subject.startswith(":."):
        return qualified.text
    return QualifiedSubject(context, subject).text


def is_below(scope: str | None, subject: str) -> bool:
    """Whether a subject is within a scope: `None` (everything), a whole context, or one subject."""
    if scope is None:
        return True
    wanted = parse_subject(scope)
    return context_of(subject) == wanted.context if wanted.is_whole_context else scope == subject


def check_subject(subject: str, *, may_be_empty: bool = True) -> None:
    """Raise `InvalidSubjectError` for a name that schemas may not be registered under."""
    qualified = parse_subject(subject)
    is_reserved = qualified.name in _RESERVED or qualified.context in (GLOBAL_CONTEXT, "*")
    if is_reserved or _has_control_characters(subject) or (not qualified.name and not may_be_empty):
        raise InvalidSubjectError(subject)


def check_setting_name(subject: str | None) -> None:
    """Raise `InvalidSubjectError` for a name that cannot have a config or mode; whole contexts are allowed."""
    if subject is None:
        return
    qualified = parse_subject(subject)
    if qualified.name in _RESERVED or qualified.context == "*" or _has_control_characters(subject):
        raise InvalidSubjectError(subject)


def _has_control_characters(text: str) -> bool:
    return any(ord(letter) < 0x20 or 0x7F <= ord(letter) < 0xA0 for letter in text)
