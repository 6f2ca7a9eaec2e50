"""The rows of a query as a table with fixed cells, row by row as they come. Start at `RowTable`.

The table is as wide as the terminal. A text that does not fit its cell goes on in the next line, or is clipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.cli.ksql.rendering.tables import java_text, one_line
from moldau.pipeline.ksql.syntax.tokens import BACKQUOTED_IDENTIFIER, tokenize, unquote

__all__ = ["RowTable", "column_names"]

MIN_CELL_WIDTH = 5
ELLIPSIS = "..."
TOMBSTONE = "<TOMBSTONE>"


@dataclass(frozen=True, slots=True)
class RowTable:
    """The layout of one query's rows."""

    columns: tuple[str, ...]
    cell_width: int
    is_wrapped: bool = True

    @classmethod
    def fitting(
        cls, columns: Sequence[str], terminal_width: int, *, cell_width: int = 0, is_wrapped: bool = True
    ) -> RowTable:
        """A table for a terminal; `cell_width` sets the width of every cell, 0 means as wide as there is place."""
        fitting = max(terminal_width // max(len(columns), 1) - 2, MIN_CELL_WIDTH)
        return cls(tuple(columns), cell_width or fitting, is_wrapped)

    def header(self) -> list[str]:
        dashes = f"+{('-' * self.cell_width + '+') * len(self.columns)}"
        return [dashes, *self._lines(self.columns, is_wrapped=True), dashes]

    def row(self, content: Mapping[str, Any]) -> list[str]:
        """The lines of one `row` element."""
        null = TOMBSTONE if content.get("tombstone") else "null"
        cells = [null if value is None else one_line(java_text(value)) for value in content.get("columns", ())]
        return self._lines(cells, is_wrapped=self.is_wrapped)

    def _lines(self, cells: Sequence[str], *, is_wrapped: bool) -> list[str]:
        width = self.cell_width
        if not is_wrapped:
            cells = [cell if len(cell) <= width else cell[: max(width - len(ELLIPSIS), 0)] + ELLIPSIS for cell in cells]
            return [_line(cells, width)]
        height = max((-(-len(cell) // width) for cell in cells), default=1) or 1
        return [_line([cell[line * width : (line + 1) * width] for cell in cells], width) for line in range(height)]


def _line(cells: Sequence[str], width: int) -> str:
    return f"|{''.join(f'{cell:<{width}}|' for cell in cells)}"


def column_names(schema: str) -> list[str]:
    """The names in a header's schema: `` `ID` INTEGER KEY, `S` STRUCT<`F` STRING> `` has ID and S."""
    tokens = tokenize(schema)
    names: list[str] = []
    depth, is_at_start = 0, True
    for index, kind in enumerate(tokens.kinds):
        if is_at_start and kind == BACKQUOTED_IDENTIFIER:
            names.append(unquote(tokens.text(index)))
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(kind, 0)
        is_at_start = depth == 0 and kind == ","
    return names
