"""DELIMITED: one CSV record per row, fields quoted only where needed, an empty field for null.

Reads and writes what Apache Commons CSV does in its default format. Start at `delimited_reader`, `delimited_writer`.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

from moldau.core.java_numbers import (
    java_double_text,
    parse_java_decimal,
    parse_java_double,
    parse_java_int,
    plain_decimal_text,
)
from moldau.formats.columns import Column
from moldau.formats.errors import RowError
from moldau.formats.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    DecimalType,
    SqlType,
)
from moldau.formats.values import bytes_of_base64, check_time, fit_decimal

__all__ = ["delimited_reader", "delimited_writer"]

Parse = Callable[[str], Any]


def delimited_reader(columns: tuple[Column, ...], delimiter: str) -> Callable[[bytes], tuple[Any, ...]]:
    """A function from a CSV record to a row; it raises `RowError`."""
    parsers = [_parser(column.type) for column in columns]

    def read(data: bytes) -> tuple[Any, ...]:
        try:
            fields = _fields(data.decode(), delimiter)
            if len(fields) != len(parsers):
                raise ValueError(f"Unexpected field count, csvFields:{len(fields)} schemaFields:{len(parsers)}")
            return tuple([parse(field) if field else None for parse, field in zip(parsers, fields, strict=True)])
        except ValueError as error:
            raise RowError(f"Error deserializing delimited row: {error}") from None

    return read


def _fields(text: str, delimiter: str) -> list[str]:
    """The fields of the first record that is not an empty line."""
    if '"' not in text and "\n" not in text and "\r" not in text:
        if not text:
            raise ValueError("No fields in record")
        return text.split(delimiter)
    text = text.lstrip("\r\n")
    if not text:
        raise ValueError("No fields in record")
    plain = re.compile(f"[^{re.escape(delimiter)}\r\n]*")
    fields: list[str] = []
    position = 0
    while True:
        if text.startswith('"', position):
            field, position = _quoted_field(text, position + 1, delimiter)
        else:
            found = plain.match(text, position)
            assert found is not None
            field, position = found[0], found.end()
        fields.append(field)
        if not text.startswith(delimiter, position):
            return fields
        position += 1


def _quoted_field(text: str, position: int, delimiter: str) -> tuple[str, int]:
    """A field after its opening quote, and the place of the delimiter, line end or end of text behind it."""
    parts: list[str] = []
    while True:
        end = text.find('"', position)
        if end < 0:
            raise ValueError("the text ends inside a quoted field")
        parts.append(text[position:end])
        position = end + 1
        if not text.startswith('"', position):
            break
        parts.append('"')
        position += 1
    while position < len(text) and text[position] != delimiter and text[position] not in "\r\n":
        if not text[position].isspace():
            raise ValueError(f"there is text between a quoted field and the delimiter, at character {position}")
        position += 1
    return "".join(parts), position


def delimited_writer(columns: tuple[Column, ...], delimiter: str) -> Callable[[Any], bytes]:
    """A function from a row to a CSV record without line end; it raises `RowError`."""
    renderers = [_renderer(column.type) for column in columns]

    def write(row: Any) -> bytes:
        try:
            texts = [
                "" if value is None else _quote(render(value), delimiter, is_first=index == 0)
                for index, (render, value) in enumerate(zip(renderers, row, strict=True))
            ]
            return delimiter.join(texts).encode()
        except (ValueError, TypeError, AttributeError) as error:
            raise RowError(f"Error serializing CSV message: {error}") from None

    return write


def _quote(text: str, delimiter: str, *, is_first: bool) -> str:
    """The text in quotes where Commons CSV puts them: a record that begins with anything but a letter or digit, too."""
    if not text:
        # An empty record would be taken for an empty line.
        return '""' if is_first else ""
    first = text[0]
    needs_quotes = first <= "#" or text[-1] <= " " or (is_first and not (first.isascii() and first.isalnum()))
    if needs_quotes or delimiter in text or '"' in text or "\n" in text or "\r" in text:
        doubled = text.replace('"', '""')
        return f'"{doubled}"'
    return text


def _parser(sql_type: SqlType) -> Parse:
    if isinstance(sql_type, DecimalType):
        return lambda text: fit_decimal(parse_java_decimal(text), sql_type)
    return _PARSERS[sql_type]


_PARSERS: Final[Mapping[SqlType, Parse]] = {
    BOOLEAN: lambda text: text.lower() == "true",
    INTEGER: lambda text: parse_java_int(text, 32),
    BIGINT: lambda text: parse_java_int(text, 64),
    DOUBLE: parse_java_double,
    STRING: lambda text: text,
    BYTES: bytes_of_base64,
    DATE: lambda text: parse_java_int(text, 32),
    TIME: lambda text: check_time(parse_java_int(text, 64)),
    TIMESTAMP: lambda text: parse_java_int(text, 64),
}


def _renderer(sql_type: SqlType) -> Callable[[Any], str]:
    if isinstance(sql_type, DecimalType):
        return plain_decimal_text
    return _RENDERERS.get(sql_type, str)


_RENDERERS: Final[Mapping[SqlType, Callable[[Any], str]]] = {
    BOOLEAN: lambda value: "true" if value else "false",
    DOUBLE: java_double_text,
    BYTES: lambda value: b64encode(value).decode(),
}
