"""What an expression can see: the columns of the row it will be evaluated on. The caller provides it.

`RowScope` is the plain case, a list of columns; queries with several sources have scopes of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from moldau.formats.columns import Column
from moldau.pipeline.ir.sql.expressions import ColumnAt
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax.expressions import ColumnReference

__all__ = ["NoColumns", "RowScope", "Scope"]


class Scope(Protocol):
    """Names as positions of a row."""

    def column(self, reference: ColumnReference) -> ColumnAt:
        """The position and type of a column; raises KsqlError, in the words of the clause, if there is none."""

    def has_column(self, name: str) -> bool:
        """Whether a column is called so, which a parameter of a lambda must not be."""


class RowScope:
    """The columns of one row, in order; a source before the name is ignored."""

    def __init__(self, columns: Sequence[Column], clause: str = "SELECT") -> None:
        self._columns = {column.name: ColumnAt(column.type, position) for position, column in enumerate(columns)}
        self._clause = clause

    def column(self, reference: ColumnReference) -> ColumnAt:
        """The position and type of a column."""
        found = self._columns.get(reference.name)
        if found is None:
            raise KsqlError(f"{self._clause} column '{reference.name}' cannot be resolved.")
        return found

    def has_column(self, name: str) -> bool:
        """Whether a column is called so."""
        return name in self._columns


class NoColumns:
    """The scope of INSERT VALUES and other places where only constants are allowed."""

    def column(self, reference: ColumnReference) -> ColumnAt:
        """Refuses every name."""
        raise KsqlError(f"Column references are not supported here: {reference.name}")

    def has_column(self, name: str) -> bool:
        """No column is called so."""
        return False
