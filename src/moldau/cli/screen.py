"""The output of the `moldau` command: tables on a terminal, aligned columns in a pipe, JSON on request.

Kafka-style tools print fixed lines and do not use this module. Start at `Screen.table`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any, Literal

__all__ = ["Bytes", "Output", "Screen", "render_size"]

Output = Literal["table", "json"]


class Bytes(int):
    """A cell with a number of bytes: with a unit on a terminal, a plain number otherwise."""


class Screen:
    """Standard output as tables or JSON; with colours only on a terminal."""

    def __init__(self, output: Output = "table") -> None:
        self.output = output
        self._is_terminal = sys.stdout.isatty()

    @property
    def is_json(self) -> bool:
        return self.output == "json"

    def table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[Any]],
        *,
        title: str = "",
        total: Sequence[Any] | None = None,
    ) -> None:
        """Show rows under column names; as JSON, a list of objects with those names in lower case.

        `total` is an extra last row, shown only on a terminal: programs get one line per item.
        """
        if self.is_json:
            keys = [column.lower().replace(" ", "_") for column in columns]
            self.document([dict(zip(keys, row, strict=True)) for row in rows])
        elif self._is_terminal:
            self._rich_table(columns, rows, title, total)
        else:
            self._plain_table(columns, rows)

    def document(self, content: Any) -> None:
        print(json.dumps(content, indent=2 if self._is_terminal else None, default=str))

    def done(self, text: str, **facts: Any) -> None:
        """Print that an action is done; as JSON, print `facts`."""
        if self.is_json:
            self.document(facts)
        elif self._is_terminal:
            from rich.console import Console

            Console(highlight=False).print(f"[green]✓[/] {_escape_markup(text)}")
        else:
            print(text)

    def note(self, text: str) -> None:
        if not self.is_json:
            print(text)

    def _rich_table(
        self, columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str, total: Sequence[Any] | None
    ) -> None:
        from rich import box
        from rich.console import Console
        from rich.table import Table

        table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, header_style="bold cyan")
        for position, column in enumerate(columns):
            cells = [row[position] for row in rows if row[position] is not None]
            is_number = bool(cells) and all(isinstance(cell, int) for cell in cells)
            table.add_column(column, justify="right" if is_number else "left", overflow="fold")
        for row in rows:
            table.add_row(*(_escape_markup(_text(cell)) for cell in row))
        if total is not None:
            table.add_section()
            table.add_row(*(_escape_markup(_text(cell)) for cell in total), style="bold")
        Console(highlight=False).print(table)

    @staticmethod
    def _plain_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        lines = [[column.upper() for column in columns], *([_plain(cell) for cell in row] for row in rows)]
        widths = [max(len(line[position]) for line in lines) for position in range(len(columns))]
        for line in lines:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _plain(cell: Any) -> str:
    """A cell in a pipe: sizes are plain numbers, for `sort` and `awk`."""
    return str(int(cell)) if isinstance(cell, Bytes) else _text(cell)


def _text(cell: Any) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, Bytes):
        return render_size(cell)
    return ",".join(map(str, cell)) if isinstance(cell, (list, tuple)) else str(cell)


def _escape_markup(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def render_size(size: int) -> str:
    """A number of bytes with a readable unit."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"
