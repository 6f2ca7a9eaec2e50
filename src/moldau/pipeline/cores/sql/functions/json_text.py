"""JSON inside texts: read with numbers as they are written, written compactly."""

from __future__ import annotations

import json
from json.encoder import encode_basestring
from typing import Any

from moldau.pipeline.cores.sql.failures import ExpressionError

__all__ = ["JsonNumber", "as_text", "read_json", "read_json_strictly", "write_json"]


MAX_JSON = 4 * 1024 * 1024
"""Longest JSON text that a function reads, in characters; no record is that large."""


class JsonNumber(str):
    """A number in JSON, by its text."""

    __slots__ = ()


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_float=JsonNumber, parse_int=JsonNumber, parse_constant=_no_constant, strict=True)


def read_json(text: str) -> Any:
    """The first JSON value of a text; what follows it does not matter. Raises ExpressionError."""
    _check_size(text)
    try:
        value, _ = _DECODER.raw_decode(text.lstrip(" \t\r\n"))
    except (ValueError, RecursionError):
        raise ExpressionError(f"the text is not JSON: {text[:80]!r}") from None
    return value


def read_json_strictly(text: str) -> Any:
    """The JSON value that a text is. Raises ExpressionError."""
    _check_size(text)
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        raise ExpressionError(f"the text is not JSON: {text[:80]!r}") from None


def _check_size(text: str) -> None:
    if len(text) > MAX_JSON:
        raise ExpressionError(f"JSON texts of more than {MAX_JSON} characters are not read")


def write_json(value: Any) -> str:
    """The compact JSON text of a value that was read."""
    if isinstance(value, JsonNumber):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{encode_basestring(key)}:{write_json(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(write_json, value)) + "]"
    if isinstance(value, str):
        return encode_basestring(value)
    return "null" if value is None else "true" if value else "false"


def as_text(value: Any) -> str | None:
    """A value for a column of texts: strings bare, null as NULL, anything else as JSON."""
    if value is None:
        return None
    return str(value) if isinstance(value, str) else write_json(value)
