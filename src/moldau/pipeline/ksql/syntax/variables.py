"""Variables: `${name}` in a text of statements is replaced by the session's value. Start at `substitute`.

A value takes the place of a name or a literal, never of a keyword or of several words: a value may come from someone
who must not be able to change what the statement does. `$${name}` stands for the text `${name}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NoReturn

from moldau.pipeline.ksql.syntax.errors import KsqlParseError, excerpt
from moldau.pipeline.ksql.syntax.tokens import (
    BACKQUOTED_IDENTIFIER,
    KEYWORDS,
    QUOTED_IDENTIFIER,
    TEXT,
    VARIABLE,
    Tokens,
    tokenize,
)

__all__ = ["substitute"]

_REFERENCE: Final = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z0-9_@]*)\}")
_QUOTED: Final = frozenset({TEXT, BACKQUOTED_IDENTIFIER, QUOTED_IDENTIFIER})
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_@]*")
_NUMBER: Final = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_QUOTED_VALUE: Final = re.compile(r"'(?:[^']++|'')*+'|`(?:[^`]++|``)*+`|\"(?:[^\"]++|\"\")*+\"")


def substitute(text: str, variables: Mapping[str, str]) -> str:
    """Replace the variables of a text of statements; their names are the same in any case.

    Raises `KsqlParseError` for one that is unknown, or whose value is neither a name nor a literal; inside quotes an
    unknown one stays as it is.
    """
    if "${" not in text:
        return text
    values = {name.upper(): value for name, value in variables.items()}
    tokens = tokenize(text)
    parts: list[str] = []
    position = 0
    for index, kind in enumerate(tokens.kinds):
        if kind == VARIABLE:
            replacement = _standing_alone(tokens, index, values)
        elif kind in _QUOTED:
            replacement = _inside_quotes(tokens.text(index), values)
        else:
            continue
        parts += [text[position : tokens.starts[index]], replacement]
        position = tokens.ends[index]
    return "".join([*parts, text[position:]])


def _inside_quotes(quoted: str, values: Mapping[str, str]) -> str:
    quote = quoted[0]

    def replacement(reference: re.Match[str]) -> str:
        escape, name = reference.groups()
        value = values.get(name.upper())
        if escape:
            return reference.group()[1:]
        return reference.group() if value is None else value.replace(quote, quote * 2)

    return _REFERENCE.sub(replacement, quoted)


def _standing_alone(tokens: Tokens, index: int, values: Mapping[str, str]) -> str:
    reference = tokens.text(index)
    value = values.get(reference[2:-1].upper())
    if value is None:
        _refuse(tokens, index, reference)
    if _QUOTED_VALUE.fullmatch(value) or _NUMBER.fullmatch(value) or value.upper() in ("TRUE", "FALSE"):
        return value
    if not _NAME.fullmatch(value):
        _refuse(tokens, index, value)
    # A name that is also a word of the language must stay a name, whatever stands around it.
    return f"`{value.upper()}`" if value.upper() in KEYWORDS else value


def _refuse(tokens: Tokens, index: int, value: str) -> NoReturn:
    location = tokens.location(index)
    raise KsqlParseError(
        f"Illegal argument at Line: {location.line}, Col: {location.column}. "
        "Identifier names cannot start with '@' and may only contain alphanumeric values and '_'; "
        f"literals are numbers, true, false or quoted. Got: '{excerpt(value)}'",
        statement=tokens.source,
        location=location,
        token=tokens.text(index),
    )
