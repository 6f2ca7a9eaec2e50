"""JSON as schemas use it: read with limits, written compactly with the order of keys kept.

Numbers are written as Java's libraries write them (`1.0E10`, not `1e+10`), so that a text stored by a
Java registry is returned unchanged. Start at `load`; `render` is its inverse.
"""

from __future__ import annotations

import json
import math
from json.encoder import encode_basestring
from typing import Any, Final, TypeAlias

from moldau.core.java_numbers import java_double_text
from moldau.schemas.errors import InvalidSchemaError, SchemaError

__all__ = ["MAX_NESTING", "Json", "load", "nesting", "render", "sorted_keys"]

Json: TypeAlias = Any

MAX_NESTING: Final = 300
"""Deepest nesting of objects and arrays in a schema's text; deeper ones are rejected to avoid stack overflows."""


_MAX_DIGITS: Final = 1000


def load(text: str, what: str = "schema", error_type: type[SchemaError] = InvalidSchemaError) -> Json:
    """Return the value of a JSON text; NaN, lone surrogates, too deep nesting and trailing text are rejected."""
    try:
        text.encode()
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_whole)
        if nesting(value) > MAX_NESTING:
            raise RecursionError
        if "\\u" in text:
            render(value).encode()
    except RecursionError:
        raise error_type(f"the {what} is nested more than {MAX_NESTING} levels deep") from None
    except UnicodeEncodeError:
        raise error_type(f"the {what} holds half of a surrogate pair") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise error_type(f"the {what} is not JSON: {error.msg} at {place}") from None
    except ValueError as error:
        raise error_type(f"the {what} is not JSON: {error}") from None
    return value


def nesting(value: Json) -> int:
    """The maximum nesting depth of objects and arrays, computed without recursion."""
    depth = 0
    level = [value] if isinstance(value, dict | list) else []
    while level:
        depth += 1
        inner: list[Json] = []
        for container in level:
            children = container.values() if isinstance(container, dict) else container
            inner.extend(child for child in children if isinstance(child, dict | list))
        level = inner
    return depth


def render(value: Json) -> str:
    """Write a JSON value without white space, keys in their order, text outside ASCII as it is."""
    parts: list[str] = []
    _render(value, parts)
    return "".join(parts)


def sorted_keys(value: Json) -> Json:
    """The same value with the keys of every object sorted, for texts that must not depend on key order."""
    if isinstance(value, dict):
        return {key: sorted_keys(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [sorted_keys(item) for item in value]
    return value


def _render(value: Json, parts: list[str]) -> None:
    if isinstance(value, str):
        parts.append(encode_basestring(value))
    elif value is None or value is True or value is False:
        parts.append("null" if value is None else "true" if value else "false")
    elif isinstance(value, int):
        parts.append(str(value))
    elif isinstance(value, float):
        parts.append(_java_double(value))
    elif isinstance(value, dict):
        _render_object(value, parts)
    else:
        _render_array(value, parts)


def _render_object(value: dict[str, Json], parts: list[str]) -> None:
    separator = "{"
    for key, item in value.items():
        parts.append(f"{separator}{encode_basestring(key)}:")
        _render(item, parts)
        separator = ","
    parts.append("}" if value else "{}")


def _render_array(value: list[Json], parts: list[str]) -> None:
    separator = "["
    for item in value:
        parts.append(separator)
        _render(item, parts)
        separator = ","
    parts.append("]" if value else "[]")


def _java_double(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a JSON number")
    return java_double_text(value)


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not a JSON number")


def _whole(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"a number has more than {_MAX_DIGITS} digits")
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} is beyond what a double can hold")
    return value
