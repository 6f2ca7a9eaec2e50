"""The formats that PRINT guesses: each stays possible until a record does not fit it. Start at `FormatGuess`.

The order is ksqlDB's: formats that name their schema first, then JSON, then plain numbers and texts. Keys may have
the bounds of a window behind them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from moldau.core.errors import MoldauError
from moldau.core.java_numbers import java_double_text
from moldau.schemas.framing import parse_frame
from moldau.schemas.parsed_schema import SchemaType
from moldau.schemas.values import codec_of
from moldau.serdes.schema_source import SchemaSource

__all__ = ["FormatGuess", "PrintFormat", "key_formats", "value_formats"]

NO_DATA = "\u00af\\_(\u30c4)_/\u00af - no data processed"
LATEST_TIME_MS = 2**46
"""No window is later (in the year 4199): what looks like one is a text."""
Decode = Callable[[bytes], str]


class PrintFormat(NamedTuple):
    """A format by the name that PRINT shows; `decode` raises `ValueError` for what does not fit."""

    name: str
    decode: Decode


def value_formats(schemas: SchemaSource | None) -> list[PrintFormat]:
    """The formats of values; without a source of schemas, those that need one are left out."""
    return [*_schema_formats(schemas), *_numbers(), PrintFormat("KAFKA_STRING", bytes.decode)]


def key_formats(schemas: SchemaSource | None) -> list[PrintFormat]:
    """The formats of keys, with those that have a window."""
    text = PrintFormat("KAFKA_STRING", bytes.decode)
    inner = [*_numbers(), text]
    sessions = [PrintFormat(f"SESSION({one.name})", _session(one.decode)) for one in inner]
    hopping = [PrintFormat(f"HOPPING({one.name})", _time_window(one.decode)) for one in inner]
    tumbling = [PrintFormat(f"TUMBLING({one.name})", _time_window(one.decode)) for one in inner]
    return [*_schema_formats(schemas), *_numbers(), *sessions, *hopping, *tumbling, text]


class FormatGuess:
    """The formats that all keys, or all values, so far fit."""

    def __init__(self, part: str, formats: Sequence[PrintFormat]) -> None:
        self._part = part
        self._possible = list(formats)
        self._has_data = False
        self._told = ""

    def text(self, data: bytes | None) -> str:
        """A key or value as text, in the first format that fits."""
        if data is None:
            return "<null>"
        self._has_data = True
        shown: str | None = None
        still = []
        for one in self._possible:
            try:
                text = one.decode(data)
            except (ValueError, struct.error, RecursionError, MoldauError):
                continue
            still.append(one)
            shown = text if shown is None else shown
        self._possible = still
        return data.hex() if shown is None else shown

    def news(self) -> str | None:
        """The line that names the possible formats, if it has changed."""
        names = " or ".join(one.name for one in self._possible) or "does not match any supported format"
        line = f"{self._part} format: {names if self._has_data else NO_DATA}"
        if line == self._told:
            return None
        self._told = line
        return line


def _schema_formats(schemas: SchemaSource | None) -> list[PrintFormat]:
    plain = PrintFormat("JSON", _json)
    if schemas is None:
        return [plain]
    return [
        PrintFormat("AVRO", _by_schema(schemas, SchemaType.AVRO)),
        PrintFormat("PROTOBUF", _by_schema(schemas, SchemaType.PROTOBUF)),
        plain,
        PrintFormat("JSON_SR", _by_schema(schemas, SchemaType.JSON)),
    ]


def _by_schema(schemas: SchemaSource, schema_type: SchemaType) -> Decode:
    def decode(data: bytes) -> str:
        frame = parse_frame(data)
        name: int | str = frame.guid or "" if frame.schema_id is None else frame.schema_id
        schema = schemas.schema(name).parsed
        if schema.schema_type is not schema_type:
            raise ValueError(f"the schema {name} is of type {schema.schema_type}")
        return codec_of(schema).decode_text(frame.body)

    return decode


def _json(data: bytes) -> str:
    text = data.decode()
    json.loads(text)
    return text


def _numbers() -> list[PrintFormat]:
    return [
        PrintFormat("KAFKA_INT", lambda data: str(struct.unpack(">i", data)[0])),
        PrintFormat("KAFKA_BIGINT", lambda data: str(struct.unpack(">q", data)[0])),
        PrintFormat("KAFKA_DOUBLE", lambda data: java_double_text(struct.unpack(">d", data)[0])),
    ]


def _session(decode: Decode) -> Decode:
    def shown(data: bytes) -> str:
        end, start = struct.unpack(">qq", data[-16:])
        if len(data) <= 16 or not 0 <= start <= end < LATEST_TIME_MS:
            raise ValueError("no session")
        return f"[{decode(data[:-16])}@{start}/{end}]"

    return shown


def _time_window(decode: Decode) -> Decode:
    def shown(data: bytes) -> str:
        (start,) = struct.unpack(">q", data[-8:])
        if len(data) <= 8 or not 0 <= start < LATEST_TIME_MS:
            raise ValueError("no window")
        return f"[{decode(data[:-8])}@{start}/-]"

    return shown
