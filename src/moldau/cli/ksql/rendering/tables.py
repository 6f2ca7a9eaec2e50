"""The layouts of the terminal: tables of statement results, lines of labels, headings, and Java's texts of values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["first_line", "heading", "java_text", "label_line", "one_line", "table"]

LABEL_WIDTH = 20


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """A header, dashes, the rows, dashes; every cell is padded to the width of its column."""
    cells = [[one_line(java_text(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    lines = [_line(row, widths) for row in (columns, *cells)]
    dashes = "-" * len(lines[0])
    return [lines[0], dashes, *lines[1:], dashes]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return f" {' | '.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))} "


def label_line(label: str, value: Any) -> str:
    """`Name                 : value`."""
    return f"{label:<{LABEL_WIDTH}} : {java_text(value)}"


def heading(text: str) -> list[str]:
    """A line and dashes beneath it."""
    return [text, "-" * len(text)]


def java_text(value: Any) -> str:
    """A value of JSON as Java prints it: `null`, `true`, `[a, b]`, `{k=v}`."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case list():
            return f"[{', '.join(map(java_text, value))}]"
        case dict():
            return f"{{{', '.join(f'{name}={java_text(one)}' for name, one in value.items())}}}"
        case _:
            return str(value)


def one_line(text: str) -> str:
    """A text without line breaks and without characters that would move a terminal's cursor."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _visible(one) for one in text)


def _visible(character: str) -> str:
    return " " if character in "\n\r\t" else character.encode("unicode_escape").decode()


def first_line(text: str) -> str:
    return text.split("\n", 1)[0].rstrip("\r")
