"""Typed values from texts, as Connect's `Values.parseString` reads headers and literals.

`null`, booleans, numbers in the smallest type that holds them, ISO dates, `[lists]`, `{"maps":1}` and quoted or plain
strings. Start at `parse_literal`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from moldau.connect.api.plugin_kinds import SchemaAndValue
from moldau.connect.api.schemas import (
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    decimal,
)
from moldau.formats.registry.data_schema import DataSchema, Kind

__all__ = ["parse_literal"]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
DATE_TEXT: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
TIME_TEXT: Final = re.compile(r"\d{2}:\d{2}:\d{2}\.\d{3}(Z|[+-]\d{4})")
TIMESTAMP_TEXT: Final = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}(Z|[+-]\d{4})")
INTEGERS: Final = ((8, INT8), (16, INT16), (32, INT32), (64, INT64))
DEEPEST: Final = 100
SPECIAL: Final = '[]{},:"'


def parse_literal(text: str | None) -> SchemaAndValue:
    """The value that a text stands for; a text that is nothing else is a string, as it is."""
    if text is None:
        return None, None
    if not text:
        return STRING, text
    try:
        parser = _Parser(text)
        found = parser.value(0)
        parser.expect_end()
    except (_NoLiteralError, RecursionError):
        return STRING, text
    # A text in quotes keeps them, unless it is within an array or a map.
    return (STRING, text) if found[0] is STRING else found


class _NoLiteralError(Exception):
    """The text is a plain string."""


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def skip_space(self) -> None:
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1

    def expect_end(self) -> None:
        self.skip_space()
        if self.position < len(self.text):
            raise _NoLiteralError

    def take(self, mark: str) -> bool:
        self.skip_space()
        if self.text.startswith(mark, self.position):
            self.position += len(mark)
            return True
        return False

    def value(self, depth: int) -> SchemaAndValue:
        if depth > DEEPEST:
            raise _NoLiteralError
        if self.take("["):
            return self.array(depth + 1)
        if self.take("{"):
            return self.map(depth + 1)
        if self.take('"'):
            return self.quoted()
        return self.word(is_embedded=depth > 0)

    def quoted(self) -> SchemaAndValue:
        made = ""
        while self.position < len(self.text):
            letter = self.text[self.position]
            self.position += 1
            if letter == '"':
                return STRING, made
            if letter == "\\" and self.position < len(self.text):
                letter = self.text[self.position]
                self.position += 1
            made += letter
        raise _NoLiteralError

    def word(self, *, is_embedded: bool) -> SchemaAndValue:
        if is_embedded:
            self.skip_space()
            for pattern in (TIMESTAMP_TEXT, TIME_TEXT, DATE_TEXT):
                match = pattern.match(self.text, self.position)
                if match is not None:
                    self.position = match.end()
                    return _scalar(match.group())
            start = self.position
            while self.position < len(self.text) and self.text[self.position] not in SPECIAL:
                self.position += 1
            text = self.text[start : self.position].strip()
            if not text:
                raise _NoLiteralError
            found = _scalar(text)
            if found[0] is STRING:
                raise _NoLiteralError
            return found
        text = self.text[self.position :]
        self.position = len(self.text)
        found = _scalar(text.strip())
        return (STRING, self.text) if found[0] is STRING else found

    def array(self, depth: int) -> SchemaAndValue:
        values: list[Any] = []
        common = _Common()
        while not self.take("]"):
            if values and not self.take(","):
                raise _NoLiteralError
            schema, value = self.value(depth)
            common.add(schema)
            values.append(value)
        return DataSchema(Kind.ARRAY, value=common.schema), values

    def map(self, depth: int) -> SchemaAndValue:
        made: dict[Any, Any] = {}
        keys, values = _Common(), _Common()
        count = 0
        while not self.take("}"):
            if count and not self.take(","):
                raise _NoLiteralError
            key_schema, key = self.value(depth)
            if not self.take(":") or isinstance(key, (list, dict)):
                raise _NoLiteralError
            schema, value = self.value(depth)
            keys.add(key_schema)
            values.add(schema)
            made[key] = value
            count += 1
        return DataSchema(Kind.MAP, key=keys.schema, value=values.schema), made


class _Common:
    """The one schema of several elements: that of the widest number, or None if they differ."""

    def __init__(self) -> None:
        self.schema: DataSchema | None = None
        self._is_mixed = False

    def add(self, schema: DataSchema | None) -> None:
        if schema is None or self._is_mixed:
            return
        if self.schema is None:
            self.schema = schema
        elif self.schema != schema:
            self.schema = _wider(self.schema, schema)
            self._is_mixed = self.schema is None


_ORDER: Final = (Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64, Kind.FLOAT32, Kind.FLOAT64)


def _wider(one: DataSchema, other: DataSchema) -> DataSchema | None:
    if one.kind in _ORDER and other.kind in _ORDER and one.name is None and other.name is None:
        return one if _ORDER.index(one.kind) >= _ORDER.index(other.kind) else other
    return None


def _scalar(text: str) -> SchemaAndValue:
    match text:
        case "null":
            return None, None
        case "true" | "false" | "True" | "False" | "TRUE" | "FALSE":
            return BOOLEAN, text.lower() == "true"
    if NUMBER.fullmatch(text):
        return _number(text)
    return _moment(text) or (STRING, text)


def _number(text: str) -> SchemaAndValue:
    number = Decimal(text)
    if number == number.to_integral_value() and number.adjusted() < 20:
        whole = int(number)
        for bits, schema in INTEGERS:
            if -(1 << (bits - 1)) <= whole < 1 << (bits - 1):
                return schema, whole
    as_float = float(number)
    if 0 < abs(as_float) < 3.4028234663852886e38 and Decimal(repr(as_float)) == number:
        return (FLOAT32 if _fits_float32(as_float) else FLOAT64), as_float
    if Decimal(repr(as_float)) == number:
        return FLOAT64, as_float
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return decimal(-exponent), number


def _fits_float32(number: float) -> bool:
    # Java compares with what is left when the float is widened again: 0.5 fits and 0.1 does too, by its digits.
    return len(Decimal(repr(number)).as_tuple().digits) <= 7


def _moment(text: str) -> SchemaAndValue | None:
    try:
        if DATE_TEXT.fullmatch(text):
            return DATE, (datetime.fromisoformat(f"{text}T00:00:00+00:00") - EPOCH).days
        if TIME_TEXT.fullmatch(text):
            at = datetime.fromisoformat(f"1970-01-01T{text}")
            return TIME, (at - EPOCH) // timedelta(milliseconds=1) % 86_400_000
        if TIMESTAMP_TEXT.fullmatch(text):
            return TIMESTAMP, (datetime.fromisoformat(text) - EPOCH) // timedelta(milliseconds=1)
    except ValueError:
        pass
    return None
