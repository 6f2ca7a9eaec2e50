"""Parses a line of text into a record: optional headers, an optional key, and the value.

    h1:v1,h2:v2 <headers.delimiter> key <key.separator> value

No I/O; works on bytes. Start at `LineReader.parse`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from moldau.cli.options import parse_bool
from moldau.cli.tool import ToolError

if TYPE_CHECKING:
    from moldau.cli.console.serdes import Serializer
    from moldau.serdes.serde import Part

__all__ = ["Line", "LineReader"]

KNOWN_CLASSES = ("LineMessageReader", "ConsoleProducer$LineMessageReader")


class Line(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, str | bytes | None]]


class LineReader:
    """Parses lines, configured by the reader properties of the console producer."""

    def __init__(self, properties: Mapping[str, str], topic: str) -> None:
        """Reads the properties; `key.serializer` and `value.serializer` name serdes for keys and values."""
        self.parse_key = parse_bool(properties.get("parse.key", "false"))
        self.parse_headers = parse_bool(properties.get("parse.headers", "false"))
        self.ignore_error = parse_bool(properties.get("ignore.error", "false"))
        self.key_separator = properties.get("key.separator", "\t").encode()
        self.headers_delimiter = properties.get("headers.delimiter", "\t").encode()
        self.headers_separator = properties.get("headers.separator", ",").encode()
        self.headers_key_separator = properties.get("headers.key.separator", ":").encode()
        marker = properties.get("null.marker")
        self.null_marker = None if marker is None else marker.encode()
        self._key_serializer = self._value_serializer = None
        if self.parse_key and properties.get("key.serializer"):
            self._key_serializer = _serializer(properties, "key", topic)
        if properties.get("value.serializer"):
            self._value_serializer = _serializer(properties, "value", topic)
        self._check()

    @property
    def is_plain(self) -> bool:
        """Whether each line is just a value, which the producer can send without parsing."""
        return (
            not self.parse_key
            and not self.parse_headers
            and self.null_marker is None
            and self._value_serializer is None
        )

    def parse(self, line: bytes, number: int) -> Line:
        """Split a line without its line end; `number` is the line number from 1, for error messages."""
        rest = line
        headers: list[tuple[str, str | bytes | None]] = []
        if self.parse_headers:
            before, found, after = line.partition(self.headers_delimiter)
            if found:
                rest, headers = after, self._headers(before, number)
            elif not self.ignore_error:
                raise _missing("header delimiter", number, line)
        key: bytes | None = None
        if self.parse_key:
            before, found, after = rest.partition(self.key_separator)
            if found:
                key, rest = before, after
            elif not self.ignore_error:
                raise _missing("key separator", number, line)
        try:
            return Line(
                _serialize(self._or_null(key), self._key_serializer),
                _serialize(self._or_null(rest), self._value_serializer),
                headers,
            )
        except ValueError as error:
            raise ToolError(f"Line {number}: {error}") from None

    def _headers(self, text: bytes, number: int) -> list[tuple[str, str | bytes | None]]:
        headers: list[tuple[str, str | bytes | None]] = []
        for pair in text.split(self.headers_separator) if text else []:
            name, found, value = pair.partition(self.headers_key_separator)
            if not found and not self.ignore_error:
                shown = pair.decode(errors="replace")
                raise ToolError(f"No header key separator found in pair '{shown}' on line number {number}")
            headers.append((name.decode(errors="replace"), self._or_null(value) if found else None))
        return headers

    def _or_null(self, text: bytes | None) -> bytes | None:
        return None if text == self.null_marker else text

    def _check(self) -> None:
        """Raise for equal separators, which make lines ambiguous; `key.separator` may equal a headers' separator."""
        headers = {
            "headers.delimiter": self.headers_delimiter,
            "headers.separator": self.headers_separator,
            "headers.key.separator": self.headers_key_separator,
        }
        used = headers if self.parse_headers else {}
        _refuse_equal(list(used.items()))
        keyed = {**used, "key.separator": self.key_separator} if self.parse_key else used
        for name, text in keyed.items():
            if not text:
                raise ToolError(f"{name} must not be empty")
            if self.null_marker is not None:
                _refuse_equal([("null.marker", self.null_marker), (name, text)])


def _serializer(properties: Mapping[str, str], part: Part, topic: str) -> Serializer | None:
    # Imported only here: lines are mostly text.
    from moldau.cli.console.serdes import serializer_named

    return serializer_named(properties[f"{part}.serializer"], properties, part, topic)


def _serialize(text: bytes | None, serializer: Serializer | None) -> bytes | None:
    return text if text is None or serializer is None else serializer(text)


def _refuse_equal(named: list[tuple[str, bytes]]) -> None:
    for (name, text), (other, other_text) in combinations(named, 2):
        if text == other_text:
            raise ToolError(f"{name} and {other} may not be equal")


def _missing(what: str, number: int, line: bytes) -> ToolError:
    return ToolError(f"No {what} found on line number {number}: '{line.decode(errors='replace')}'")
