"""Splitting: a text of statements cut at its `;`, without parsing them. Start at `split_statements`.

For the CLI, which must know whether what was typed is complete, and for scripts, which are sent statement by statement.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.pipeline.ksql.syntax.expressions import Location
from moldau.pipeline.ksql.syntax.tokens import END, UNTERMINATED, tokenize

__all__ = ["SplitText", "StatementText", "split_statements"]


@dataclass(frozen=True, slots=True)
class StatementText:
    """One statement of a longer text."""

    text: str
    """From its first word to its `;`."""
    keyword: str
    """Its first word in upper case."""
    location: Location
    """Where it starts in the longer text."""


@dataclass(frozen=True, slots=True)
class SplitText:
    """The statements of a text, and what is left after the last `;`."""

    statements: tuple[StatementText, ...]
    rest: StatementText | None = None
    """The beginning of a further statement; None if only space and comments are left."""
    is_open: bool = False
    """Whether a quote or comment is still open, so that a `;` in the next line may not be the end."""


def split_statements(text: str) -> SplitText:
    """Cut a text after each `;` that is neither in quotes nor in a comment; a `;` alone is no statement."""
    tokens = tokenize(text)
    statements: list[StatementText] = []
    first = 0
    for index, kind in enumerate(tokens.kinds):
        if kind not in (";", END):
            continue
        if first < index:
            start, end = tokens.starts[first], tokens.ends[index if kind == ";" else index - 1]
            part = StatementText(text[start:end], tokens.text(first).upper(), tokens.location(first))
            if kind == END:
                return SplitText(tuple(statements), part, tokens.kinds[index - 1] == UNTERMINATED)
            statements.append(part)
        first = index + 1
    return SplitText(tuple(statements))
