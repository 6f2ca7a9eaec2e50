"""Functions for expressions: `from moldau.streams import functions as f`.

A null argument gives a null result, unless the function's description says otherwise. `ir.expressions.FUNCTIONS`
defines each function.
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
    """`then` if the condition is true, else `otherwise`; a null condition counts as false."""
    return call("IF", condition, then, otherwise)


def coalesce(*arguments: Any) -> Term:
    """The first argument that is not null."""
    return call("COALESCE", *arguments)


def least(*arguments: Any) -> Term:
    """The smallest argument; nulls are ignored."""
    return call("LEAST", *arguments)


def greatest(*arguments: Any) -> Term:
    """The largest argument; nulls are ignored."""
    return call("GREATEST", *arguments)


def absolute(number: Any) -> Term:
    """The absolute value of the number."""
    return call("ABS", number)


def rounded(number: Any, digits: int = 0) -> Term:
    """The number rounded to `digits` decimal places; halves are rounded away from zero."""
    return call("ROUND", number, digits)


def floor(number: Any) -> Term:
    """The number rounded down to a whole number."""
    return call("FLOOR", number)


def ceil(number: Any) -> Term:
    """The number rounded up to a whole number."""
    return call("CEIL", number)


def upper(text: Any) -> Term:
    """The text in upper case."""
    return call("UPPER", text)


def lower(text: Any) -> Term:
    """The text in lower case."""
    return call("LOWER", text)


def trim(text: Any) -> Term:
    """The text without leading and trailing spaces."""
    return call("TRIM", text)


def length(text: Any) -> Term:
    """The number of characters of the text."""
    return call("LENGTH", text)


def substring(text: Any, start: Any, size: Any) -> Term:
    """`size` characters of the text, beginning at position `start`; the first character has position 1."""
    return call("SUBSTRING", text, start, size)


def concat(*texts: Any) -> Term:
    """The texts concatenated."""
    return call("CONCAT", *texts)


def replace(text: Any, old: Any, new: Any) -> Term:
    """The text with every `old` replaced by `new`; both are plain text, not patterns."""
    return call("REPLACE", text, old, new)


def split(text: Any, separator: Any) -> Term:
    """The parts of the text between separators, as an array; the separator is plain text, not a pattern."""
    return call("SPLIT", text, separator)


def struct(**fields: Any) -> Term:
    """A struct with these fields: `struct(user=key, likes=value["likes"])`."""
    return call("STRUCT", *(part for name, each in fields.items() for part in (name, each)))


def array(*elements: Any) -> Term:
    """An array of these elements."""
    return call("ARRAY", *elements)
