"""The functions of nodes over typed rows, described by typed expressions instead of Python code.

A row is a tuple; the key of a record is a tuple of its key columns, inside a `Windowed` if the key has a window. An
engine can look into these descriptions, and ship them: they are plain data. `pipeline.cores.row_functions` compiles
them to Python. The arguments are given in the docstring of each class. Start at `RowFunction`.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.formats.types import SqlType
from moldau.pipeline.ir.sql.expressions import AggregateCall, SqlExpression, TableFunctionCall

__all__ = [
    "AggregatedRow",
    "ExplodedRow",
    "JoinedRow",
    "KeyOfRow",
    "NamedExpression",
    "RegroupedRow",
    "RowAggregates",
    "RowCondition",
    "RowFunction",
    "RowSteps",
    "RowTimestamp",
    "RowWithKey",
    "SelectRow",
]


@dataclass(frozen=True, slots=True)
class NamedExpression:
    """An expression and the name of the column that it gives."""

    name: str
    expression: SqlExpression


@dataclass(frozen=True, slots=True)
class RowFunction:
    """Base of all functions over rows."""


@dataclass(frozen=True, slots=True)
class SelectRow(RowFunction):
    """(value) -> value: a row of the values of these expressions; a null value stays null."""

    columns: tuple[NamedExpression, ...]


@dataclass(frozen=True, slots=True)
class RowCondition(RowFunction):
    """(key, value) -> whether the condition holds; never for a null value, nor where it cannot be evaluated."""

    condition: SqlExpression
    clause: str
    """The clause of the statement, WHERE or HAVING, for the processing log."""


@dataclass(frozen=True, slots=True)
class KeyOfRow(RowFunction):
    """(key, value) -> key: a tuple of the values of these expressions.

    A null value has a key only if the expressions read nothing but columns of the old key. A null key is None; where
    `drops_nulls` a key with any null in it is None too.
    """

    columns: tuple[NamedExpression, ...]
    width: int
    """The number of columns of the row."""
    key_positions: tuple[int, ...]
    """Where in the row the columns of the record's key are, in the key's order; -1 for one that is not there."""
    drops_nulls: bool = False


@dataclass(frozen=True, slots=True)
class RegroupedRow(RowFunction):
    """(key, value) -> (key, value): a row of these columns under the key of its group, None if it belongs to none."""

    key: KeyOfRow
    row: SelectRow


@dataclass(frozen=True, slots=True)
class RowWithKey(RowFunction):
    """(key, value) -> value: the row followed by the columns of the key, and its window's bounds if it has one."""

    has_window: bool = False


@dataclass(frozen=True, slots=True)
class RowSteps(RowFunction):
    """(key, value) -> value: functions applied one after the other, of (value), or `RowWithKey`."""

    steps: tuple[RowFunction, ...]


@dataclass(frozen=True, slots=True)
class JoinedRow(RowFunction):
    """(key, left value, right value) -> value: both rows, nulls for a missing one, then the key where `has_key`."""

    left_width: int
    right_width: int
    has_key: bool = False
    swaps_sides: bool = False
    """Whether the right row comes first, because the join itself was planned the other way round."""


@dataclass(frozen=True, slots=True)
class ExplodedRow(RowFunction):
    """(value) -> rows: for each element of the longest list, the row followed by that element of every list."""

    calls: tuple[TableFunctionCall, ...]


@dataclass(frozen=True, slots=True)
class RowTimestamp(RowFunction):
    """(key, value) -> milliseconds, the value of a column; a negative number where there is none.

    `pattern` is how a text is read. Where `is_strict` a missing or unreadable time raises.
    """

    position: int
    type: SqlType
    pattern: str | None = None
    is_in_key: bool = False
    is_strict: bool = False


@dataclass(frozen=True, slots=True)
class RowAggregates:
    """An aggregator of rows: the aggregate is a row of the state of each call."""

    calls: tuple[AggregateCall, ...]
    settings: tuple[tuple[str, object], ...] = ()
    """Properties that functions look at, such as limits of their lists."""


@dataclass(frozen=True, slots=True)
class AggregatedRow(RowFunction):
    """(value) -> value: the row of a `RowAggregates` with the result of each call instead of its state."""

    aggregates: RowAggregates
