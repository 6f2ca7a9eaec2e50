"""Functions for expressions: `from moldau.streams import functions as f`. Null in, null out, unless it says otherwise.

What each means is in `ir.expressions.FUNCTIONS`.
"""

from __future__ import annotations

from typing import Any

from moldau.pipeline.dsl.expressions import Term, call

__all__ = [
    "absolute",
    "array",
    "ceil",
    "coalesce",
    "concat",
    "floor",
    "greatest",
    "least",
    "length",
    "lower",
    "replace",
    "rounded",
    "split",
    "struct",
    "substring",
    "trim",
    "upper",
    "when",
]


def when(condition: Any, then: Any, otherwise: Any = None) -> Term:
    """One of two, by a condition; null counts as false."""
    return call("IF", condition, then, otherwise)


def coalesce(*arguments: Any) -> Term:
    """The first that is not null."""
    return call("COALESCE", *arguments)


def least(*arguments: Any) -> Term:
    """The smallest, nulls left out."""
    return call("LEAST", *arguments)


def greatest(*arguments: Any) -> Term:
    """The largest, nulls left out."""
    return call("GREATEST", *arguments)


def absolute(number: Any) -> Term:
    """The number without its sign."""
    return call("ABS", number)


def rounded(number: Any, digits: int = 0) -> Term:
    """To so many digits behind the point; halves go away from zero."""
    return call("ROUND", number, digits)


def floor(number: Any) -> Term:
    """The largest whole number that is not above it."""
    return call("FLOOR", number)


def ceil(number: Any) -> Term:
    """The smallest whole number that is not below it."""
    return call("CEIL", number)


def upper(text: Any) -> Term:
    """The text in capital letters."""
    return call("UPPER", text)


def lower(text: Any) -> Term:
    """The text in small letters."""
    return call("LOWER", text)


def trim(text: Any) -> Term:
    """The text without spaces at its ends."""
    return call("TRIM", text)


def length(text: Any) -> Term:
    """How many characters a text has."""
    return call("LENGTH", text)


def substring(text: Any, start: Any, size: Any) -> Term:
    """`size` characters from the one at `start`, the first being 1."""
    return call("SUBSTRING", text, start, size)


def concat(*texts: Any) -> Term:
    """The texts one after the other."""
    return call("CONCAT", *texts)


def replace(text: Any, old: Any, new: Any) -> Term:
    """The text with every `old` replaced by `new`; both are plain text, no patterns."""
    return call("REPLACE", text, old, new)


def split(text: Any, separator: Any) -> Term:
    """The pieces of a text as an array; the separator is plain text, no pattern."""
    return call("SPLIT", text, separator)


def struct(**fields: Any) -> Term:
    """A struct of these fields."""
    return call("STRUCT", *(part for name, each in fields.items() for part in (name, each)))


def array(*elements: Any) -> Term:
    """An array of these elements."""
    return call("ARRAY", *elements)
