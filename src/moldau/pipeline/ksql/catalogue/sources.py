"""A stream or table as the catalogue knows it: columns, topic, formats, window and time. Start at `Source`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from moldau.formats.columns import Column, RowSchema
from moldau.formats.format import RowFormat
from moldau.formats.types import BIGINT, INTEGER
from moldau.pipeline.ksql.syntax.statements import SourceKind

__all__ = [
    "PSEUDO_COLUMNS",
    "SYSTEM_COLUMNS",
    "WINDOW_BOUNDS",
    "KeyWindow",
    "Source",
    "TimestampColumn",
    "WindowKind",
    "schema_text",
]

PSEUDO_COLUMNS = (Column("ROWTIME", BIGINT), Column("ROWPARTITION", INTEGER), Column("ROWOFFSET", BIGINT))
"""The columns that every source has beside the declared ones, in the order in which rows carry them."""

WINDOW_BOUNDS = (Column("WINDOWSTART", BIGINT), Column("WINDOWEND", BIGINT))
"""The columns that sources with windowed keys have in addition."""

SYSTEM_COLUMNS = frozenset(column.name for column in PSEUDO_COLUMNS + WINDOW_BOUNDS)
"""Names that no column may have."""


class WindowKind(Enum):
    """The kinds of windows that keys can have."""

    TUMBLING = "TUMBLING"
    HOPPING = "HOPPING"
    SESSION = "SESSION"


@dataclass(frozen=True, slots=True)
class KeyWindow:
    """The window that is part of a source's keys; sessions have no size."""

    kind: WindowKind
    size_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TimestampColumn:
    """The column that gives the time of a record, with the pattern of a text."""

    name: str
    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A stream or table that queries read, and statements and queries write."""

    name: str
    kind: SourceKind
    schema: RowSchema
    topic: str
    key_format: RowFormat
    value_format: RowFormat
    partitions: int = 1
    replicas: int = 1
    window: KeyWindow | None = None
    window_retention_ms: int | None = None
    """How long windows can be asked for, for the results of windowed aggregations."""
    timestamp: TimestampColumn | None = None
    header_names: tuple[str | None, ...] = ()
    """For each header column the header that it reads; None reads all."""
    column_order: tuple[str, ...] = ()
    """The names of value and header columns in the order of their declaration, where they are mixed."""
    is_read_only: bool = False
    """Whether it was created with SOURCE."""
    query_id: str | None = None
    """The query that created it, for the results of CREATE … AS SELECT."""
    statement: str = ""

    @property
    def is_table(self) -> bool:
        return self.kind is SourceKind.TABLE

    @property
    def plain_columns(self) -> tuple[Column, ...]:
        """Value and header columns in the order of their declaration: that of `SELECT *` after the key."""
        columns = {column.name: column for column in self.schema.value + self.schema.headers}
        order = self.column_order or tuple(columns)
        return tuple(columns[name] for name in order)

    @property
    def row_columns(self) -> tuple[Column, ...]:
        """The columns of a row as queries read it: value, headers, pseudo columns, key, bounds of the window."""
        bounds = () if self.window is None else WINDOW_BOUNDS
        return self.schema.value + self.schema.headers + PSEUDO_COLUMNS + self.schema.key + bounds


def schema_text(schema: RowSchema) -> str:
    """A schema as messages print it: key columns are marked."""
    keys = [f"{column} KEY" for column in schema.key]
    return ", ".join([*keys, *map(str, schema.value), *(f"{column} HEADERS" for column in schema.headers)])
