"""Java's regular expressions by re2, whose time is linear in the text whatever the pattern is.

Look-around and back-references, which make other engines take exponential time, are refused. Start at `pattern`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import re2

from moldau.pipeline.cores.sql.failures import MAX_SIZE, ExpressionError

__all__ = ["pattern", "replace_all", "split"]

_REFERENCE = re.compile(r"\\(.)|\$(\d)|\$\{(\w+)\}|([$\\])", re.DOTALL)


@lru_cache(maxsize=1024)
def pattern(text: str) -> Any:
    """A compiled pattern."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error as problem:
        raise ExpressionError(
            f"'{text}' is not a regular expression, or not a supported one "
            f"(look-around and back-references are not supported): {problem}"
        ) from None


def replace_all(text: str, compiled: Any, replacement: str) -> str:
    """The text with all matches replaced; `$1` and `${name}` are groups, a backslash takes the next character as is."""
    pieces = _replacement(replacement)
    result: list[str] = []
    size = at = 0
    for found in compiled.finditer(text):
        inserted = "".join(_piece_text(piece, found) for piece in pieces)
        result += (text[at : found.start()], inserted)
        at = found.end()
        size += len(inserted)
        if size > MAX_SIZE:
            raise ExpressionError(f"the text would be longer than {MAX_SIZE} characters")
    return "".join((*result, text[at:]))


def _replacement(replacement: str) -> list[str | tuple[int | str]]:
    pieces: list[str | tuple[int | str]] = []
    at = 0
    for found in _REFERENCE.finditer(replacement):
        pieces.append(replacement[at : found.start()])
        at = found.end()
        escaped, number, name, bad = found.groups()
        if bad:
            raise ExpressionError(f"the replacement '{replacement}' has a '{bad}' that refers to nothing")
        pieces.append(escaped if escaped is not None else (int(number),) if number is not None else (name,))
    return [*pieces, replacement[at:]]


def _piece_text(piece: str | tuple[int | str], found: Any) -> str:
    if isinstance(piece, str):
        return piece
    try:
        return found.group(piece[0]) or ""
    except (IndexError, re2.error):
        raise ExpressionError(f"the pattern has no group {piece[0]}") from None


def split(text: str, compiled: Any) -> list[str]:
    """The parts between matches; an empty match at the beginning gives no empty part, as in Java."""
    parts: list[str] = []
    at = 0
    for found in compiled.finditer(text):
        if found.end() == 0 or (found.start() == found.end() == len(text)):
            continue
        parts.append(text[at : found.start()])
        at = found.end()
    return [*parts, text[at:]]
