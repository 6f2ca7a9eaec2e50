"""Subjects and the contexts they live in.

A plain subject belongs to the default context `.`; `:.ctx:name` belongs to `.ctx`; `:.ctx:` alone stands for the
context itself, and `:*:` for all of them. Settings above the default context are kept under `:.__GLOBAL:`.
Pure text rules. Start at `parse_subject`.
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
        """The one spelling of this subject: plain within the default context, `:.ctx:name` elsewhere."""
        return self.name if self.context == DEFAULT_CONTEXT else f":{self.context}:{self.name}"

    @property
    def is_whole_context(self) -> bool:
        return not self.name


def parse_subject(text: str) -> QualifiedSubject:
    """Split a subject; one that does not begin like a qualified one is a name in the default context."""
    if not text.startswith((":.", WILDCARD)):
        return QualifiedSubject(DEFAULT_CONTEXT, text)
    context, _, name = text[1:].partition(":")
    return QualifiedSubject(context, name)


def context_of(subject: str) -> str:
    return parse_subject(subject).context


def context_name(text: str) -> str:
    """A context as written in a path, with or without its colons and leading dot."""
    bare = text.strip(":")
    return bare if bare.startswith(".") else f".{bare}"


def in_context(context: str, subject: str) -> str:
    """A subject as meant within a context: an unqualified one is qualified, any other says itself where it lives."""
    qualified = parse_subject(subject)
    if qualified.context != DEFAULT_CONTEXT or subject.startswith(":."):
        return qualified.text
    return QualifiedSubject(context, subject).text


def is_below(scope: str | None, subject: str) -> bool:
    """Whether a subject is within a scope: everything, a whole context, or that one subject."""
    if scope is None:
        return True
    wanted = parse_subject(scope)
    return context_of(subject) == wanted.context if wanted.is_whole_context else scope == subject


def check_subject(subject: str, *, may_be_empty: bool = True) -> None:
    """Raise `InvalidSubjectError` for a name that no schema may be registered under."""
    qualified = parse_subject(subject)
    is_reserved = qualified.name in _RESERVED or qualified.context in (GLOBAL_CONTEXT, "*")
    if is_reserved or _has_control_characters(subject) or (not qualified.name and not may_be_empty):
        raise InvalidSubjectError(subject)


def check_setting_name(subject: str | None) -> None:
    """Raise for a name that no config or mode may be kept under; whole contexts are welcome here."""
    if subject is None:
        return
    qualified = parse_subject(subject)
    if qualified.name in _RESERVED or qualified.context == "*" or _has_control_characters(subject):
        raise InvalidSubjectError(subject)


def _has_control_characters(text: str) -> bool:
    return any(ord(letter) < 0x20 or 0x7F <= ord(letter) < 0xA0 for letter in text)
