"""Patterns of Java's DateTimeFormatter, such as `yyyy-MM-dd HH:mm:ss.SSS`: read into fields.

`formatting` writes with them, `parsing` reads. Start at `read_pattern`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from moldau.pipeline.cores.sql.failures import ExpressionError

__all__ = ["MONTHS", "WEEKDAYS", "Optional", "Part", "PatternField", "Text", "read_pattern"]

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_LETTERS = frozenset("GuyDMLdQqYwEecaHhKkmsSAnNVvzOXxZ")
_MAX_LENGTH = 1000
_MAX_DEPTH = 20


@dataclass(frozen=True, slots=True)
class PatternField:
    """A letter of the pattern, repeated `count` times."""

    letter: str
    count: int


@dataclass(frozen=True, slots=True)
class Text:
    """Characters that stand for themselves."""

    text: str


@dataclass(frozen=True, slots=True)
class Optional:
    """Parts in brackets: written if they can be, read if they are there."""

    parts: tuple[Part, ...]


Part: TypeAlias = PatternField | Text | Optional


@lru_cache(maxsize=1024)
def read_pattern(pattern: str) -> tuple[Part, ...]:
    """The parts of a pattern; raises ExpressionError for what is none."""
    if len(pattern) > _MAX_LENGTH:
        raise ExpressionError(f"a date pattern has at most {_MAX_LENGTH} characters")
    levels: list[list[Part]] = [[]]
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "'":
            text, at = _quoted_text(pattern, at)
            levels[-1].append(Text(text))
        elif character == "[":
            levels.append([])
            at += 1
            if len(levels) > _MAX_DEPTH:
                raise ExpressionError(f"too many nested brackets in the pattern {pattern}")
        elif character == "]":
            if len(levels) == 1:
                raise ExpressionError(f"Pattern invalid as it contains ] without previous [: {pattern}")
            closed = levels.pop()
            levels[-1].append(Optional(tuple(closed)))
            at += 1
        elif character.isascii() and character.isalpha():
            end = at
            while end < len(pattern) and pattern[end] == character:
                end += 1
            levels[-1].append(_field(character, end - at, pattern))
            at = end
        elif character in "{}#":
            raise ExpressionError(f"Pattern includes reserved character: '{character}'")
        else:
            levels[-1].append(Text(character))
            at += 1
    while len(levels) > 1:
        closed = levels.pop()
        levels[-1].append(Optional(tuple(closed)))
    return tuple(levels[0])


def _field(letter: str, count: int, pattern: str) -> PatternField:
    if letter not in _LETTERS:
        raise ExpressionError(f"Unknown pattern letter: {letter}")
    longest = {"y": 19, "u": 19, "Y": 19, "S": 9, "D": 3, "A": 19, "n": 19, "N": 19, "M": 5, "L": 5, "E": 5, "G": 5}
    if count > longest.get(letter, 5 if letter in "ecXxZQqzO" else 2):
        raise ExpressionError(f"Too many pattern letters: {letter} in {pattern}")
    return PatternField(letter, count)


def _quoted_text(pattern: str, start: int) -> tuple[str, int]:
    """The text from a quote to the closing one, and the position after it; '' is one quote."""
    at = start + 1
    text: list[str] = []
    while at < len(pattern):
        if pattern[at] != "'":
            text.append(pattern[at])
        elif pattern[at + 1 : at + 2] == "'":
            text.append("'")
            at += 1
        else:
            return "".join(text) or "'", at + 1
        at += 1
    raise ExpressionError(f"Pattern ends with an incomplete string literal: {pattern}")
