"""The error of a statement that cannot be read."""

from __future__ import annotations

from typing import Final

from moldau.core.errors import MoldauError
from moldau.pipeline.ksql.syntax.expressions import Location

__all__ = ["KsqlParseError", "excerpt"]


_LONGEST_EXCERPT: Final = 200


def excerpt(text: str) -> str:
    """A token for a message: whole, or its beginning if it has thousands of characters."""
    return text if len(text) <= _LONGEST_EXCERPT else f"{text[:_LONGEST_EXCERPT]}..."


class KsqlParseError(MoldauError):
    """A statement does not follow the language.

    `message` says what is wrong and where, in ksqlDB's words; `str()` adds the statement, as ksqlDB's detailed text
    does. `token` is the offending word, None where the statement as a whole is at fault.
    """

    def __init__(
        self, message: str, statement: str = "", *, location: Location | None = None, token: str | None = None
    ) -> None:
        super().__init__(message, statement)
        self.message = message
        self.statement = statement
        self.location = location
        self.token = token

    def __str__(self) -> str:
        return f"{self.message}\nStatement: {self.statement}" if self.statement else self.message
