"""The columns of a source or result: which form the key, which the value, which come from headers."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.formats.types import SqlType


@dataclass(frozen=True, slots=True)
class Column:
    """A named, typed place in a row."""

    name: str
    type: SqlType

    def __str__(self) -> str:
        return f"`{self.name}` {self.type}"


@dataclass(frozen=True, slots=True)
class RowSchema:
    """The columns of a source, in the order in which they were declared within each part."""

    key: tuple[Column, ...]
    value: tuple[Column, ...]
    headers: tuple[Column, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, key columns first: the order of `SELECT *`."""
        return self.key + self.value + self.headers
