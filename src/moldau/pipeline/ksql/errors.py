"""Errors of the SQL front end: a statement that is refused before anything runs, in ksqlDB's words."""

from __future__ import annotations

from moldau.core.errors import ErrorCode, MoldauError

__all__ = ["CompilationError", "KsqlError"]


class KsqlError(MoldauError):
    """A statement that cannot be accepted: the message says what is wrong with it."""

    code = ErrorCode.INVALID_REQUEST
    statement: str = ""
    """The statement with every name written out, where the error was found after its names were resolved."""

    @property
    def detailed_message(self) -> str:
        """The message and the statement that it is about."""
        return f"{self}\nStatement: {self.statement}" if self.statement else str(self)


class CompilationError(KsqlError):
    """An expression whose types fit but which cannot be compiled.

    ksqlDB finds these later than type errors and says of which clause they are, so callers put `Invalid Select: ` or
    `Invalid Predicate: ` before the message.
    """
