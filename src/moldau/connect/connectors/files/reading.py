"""Rows of a file from a position on: CSV with a header line, or a JSON document on each line. Start at `open_rows`."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from moldau.connect.api.errors import DataError
from moldau.connect.api.schemas import STRING, DataSchema, optional, struct

__all__ = ["FileRow", "Rows", "open_rows"]


class FileRow(NamedTuple):
    """A row, and the position in bytes after it."""

    value: Any
    position: int


class Rows:
    """The rows of one file."""

    def __init__(self, file: IO[bytes], schema: DataSchema | None, rows: Iterator[FileRow]) -> None:
        self._file = file
        self.schema = schema
        self._rows = rows
        self._error: Exception | None = None
        self.is_done = False
        """Whether all rows were taken."""

    def take(self, most: int) -> list[FileRow]:
        """The next rows; empty at the end. Raises `DataError` for a row that is broken."""
        if self._error is not None:
            raise self._error
        found: list[FileRow] = []
        while len(found) < most:
            try:
                row = next(self._rows, None)
            except Exception as error:
                if not found:
                    raise
                # The rows before the broken one count.
                self._error = error
                return found
            if row is None:
                self.is_done = True
                break
            found.append(row)
        return found

    def close(self) -> None:
        self._file.close()


def open_rows(path: Path, position: int, values: Mapping[str, Any]) -> Rows:
    """The rows of a file from a position on."""
    file = path.open("rb")
    if values["format"] == "json":
        file.seek(position)
        return Rows(file, None, _json_rows(file, path, position))
    names, start = _header(file, path, values)
    file.seek(max(position, start))
    schema = struct({name: optional(STRING) for name in names}, name=values["schema.name"])
    return Rows(file, schema, _csv_rows(file, path, max(position, start), names, values))


def _lines(file: IO[bytes], position: int) -> Iterator[tuple[bytes, int]]:
    for line in file:
        position += len(line)
        yield line, position


def _json_rows(file: IO[bytes], path: Path, position: int) -> Iterator[FileRow]:
    for line, after in _lines(file, position):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            raise DataError(f"{path}: the line that ends at byte {after} is not JSON: {error}") from None
        yield FileRow(value, after)


def _header(file: IO[bytes], path: Path, values: Mapping[str, Any]) -> tuple[list[str], int]:
    given: list[str] = values["csv.columns"]
    if not values["csv.first.row.as.header"]:
        if not given:
            raise DataError(f"{path}: without csv.first.row.as.header, csv.columns has to name the columns")
        return given, 0
    line = file.readline()
    names = next(_parsed([line.decode(values["file.charset"]).lstrip("\ufeff")], values), [])
    return (given or [name.strip() for name in names]), len(line)


def _csv_rows(
    file: IO[bytes], path: Path, position: int, names: list[str], values: Mapping[str, Any]
) -> Iterator[FileRow]:
    ends: list[int] = [position]

    def texts() -> Iterator[str]:
        for line, after in _lines(file, position):
            ends.append(after)
            yield line.decode(values["file.charset"], "replace")

    for row in _parsed(texts(), values):
        if not row:
            continue
        if len(row) != len(names):
            raise DataError(
                f"{path}: the row that ends at byte {ends[-1]} has {len(row)} values for {len(names)} columns"
            )
        # A value in quotes may go over several lines: the reader has just taken the last of them.
        yield FileRow({name: text or None for name, text in zip(names, row, strict=True)}, ends[-1])


def _parsed(lines: Any, values: Mapping[str, Any]) -> Iterator[list[str]]:
    return csv.reader(lines, delimiter=values["csv.separator.char"], quotechar=values["csv.quote.char"], strict=True)
