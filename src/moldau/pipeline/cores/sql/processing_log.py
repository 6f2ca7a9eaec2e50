"""Where failures of single rows are reported; none of them ends a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from moldau.formats.types import Value

__all__ = ["ListLog", "ProcessingLog", "SilentLog"]


class ProcessingLog(Protocol):
    """Receives one entry for each expression that failed on a row."""

    def expression_failed(self, what: str, cause: Exception, row: Sequence[Value]) -> None:
        """`what` names the item ("column `TOTAL`", "WHERE"), `cause` is why it has no value for this row."""


class SilentLog:
    """Drops every entry."""

    def expression_failed(self, what: str, cause: Exception, row: Sequence[Value]) -> None:
        """Drops the entry."""


class ListLog:
    """Keeps entries in a list, for tests and for short-lived queries."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, str]] = []

    def expression_failed(self, what: str, cause: Exception, row: Sequence[Value]) -> None:
        """Appends the entry."""
        self.entries.append((what, str(cause)))
