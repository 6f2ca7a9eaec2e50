"""Random rows of an Avro schema, steered by `arg.properties` in it. Start at `RowMaker`.

| in `arg.properties` | makes |
|---|---|
| `options` | one of these values |
| `range` with `min` (included) and `max` (excluded) | a number between |
| `iteration` with `start`, `step` and `restart` | the next number each time |
| `regex` | a text that fits a pattern, see `patterns` |
| `length`, a number or `min` and `max` | a text, array or map of that size |
| `prefix`, `suffix` | a text with these around it |
| `odds` | true so often |
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from moldau.formats.datagen.patterns import text_maker
from moldau.formats.errors import FormatError

__all__ = ["RowMaker"]

Make = Callable[[Random], Any]
PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "string", "bytes"})
LONGEST = 10_000
DEEPEST = 50


class RowMaker:
    """Makes rows of a record schema: each is a dictionary by the fields' names."""

    def __init__(self, schema: Any, random: Random) -> None:
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise FormatError("the schema must be an Avro record")
        self._named: dict[str, Make] = {}
        self._make = self._maker(schema, 0)
        self._random = random

    def make(self) -> dict[str, Any]:
        row: dict[str, Any] = self._make(self._random)
        return row

    def _maker(self, schema: Any, depth: int) -> Make:
        if depth > DEEPEST:
            raise FormatError(f"the schema is nested more than {DEEPEST} levels deep")
        if isinstance(schema, str):
            return self._named.get(schema) or _primitive(schema, {})
        if isinstance(schema, list):
            branches = [self._maker(one, depth + 1) for one in schema if one != "null"]
            if not branches:
                return lambda random: None
            return lambda random: random.choice(branches)(random)
        if not isinstance(schema, dict) or "type" not in schema:
            raise FormatError(f"{schema!r} is not an Avro type")
        hints = schema.get("arg.properties") or {}
        if not isinstance(hints, dict):
            raise FormatError("arg.properties must be an object")
        if "options" in hints:
            return _one_of(hints["options"])
        made = self._of_kind(schema, hints, depth)
        if isinstance(schema.get("name"), str):
            self._named[schema["name"]] = made
        return made

    def _of_kind(self, schema: Mapping[str, Any], hints: Mapping[str, Any], depth: int) -> Make:
        kind = schema["type"]
        if kind == "record":
            return self._record(schema, depth)
        if kind == "enum":
            return _one_of(schema.get("symbols"))
        if kind in ("array", "map"):
            size = _length(hints.get("length"), 1, 4)
            inner = self._maker(schema.get("items" if kind == "array" else "values"), depth + 1)
            if kind == "array":
                return lambda random: [inner(random) for _ in range(size(random))]
            return lambda random: {f"key_{number}": inner(random) for number in range(size(random))}
        if isinstance(kind, (dict, list)):
            return self._maker(kind, depth + 1)
        return _primitive(kind, hints)

    def _record(self, schema: Mapping[str, Any], depth: int) -> Make:
        fields = schema.get("fields")
        if not isinstance(fields, list) or not all(isinstance(one, dict) and "name" in one for one in fields):
            raise FormatError(f"the record {schema.get('name')} needs a list of fields with names")
        makers = [(str(one["name"]), self._maker(one.get("type"), depth + 1)) for one in fields]
        return lambda random: {name: make(random) for name, make in makers}


def _one_of(options: Any) -> Make:
    if not isinstance(options, list) or not options:
        raise FormatError("options and symbols must be lists with at least one value")
    return lambda random: random.choice(options)


def _primitive(kind: Any, hints: Mapping[str, Any]) -> Make:
    if kind not in PRIMITIVES:
        raise FormatError(f"values of type {kind!r} cannot be made")
    if "iteration" in hints:
        return _iteration(hints["iteration"], as_text=kind == "string", hints=hints)
    match kind:
        case "null":
            return lambda random: None
        case "boolean":
            odds = _number(hints.get("odds", 0.5))
            return lambda random: random.random() < odds
        case "int" | "long":
            low, high = _range(hints.get("range"), 0, 2**31 - 1)
            return lambda random: random.randrange(int(low), max(int(high), int(low) + 1))
        case "float" | "double":
            low, high = _range(hints.get("range"), 0.0, 1.0)
            return lambda random: random.uniform(low, high)
        case "bytes":
            size = _length(hints.get("length"), 1, 9)
            return lambda random: random.randbytes(size(random))
        case _:
            return _text(hints)


def _text(hints: Mapping[str, Any]) -> Make:
    prefix, suffix = str(hints.get("prefix", "")), str(hints.get("suffix", ""))
    if "regex" in hints:
        make = text_maker(str(hints["regex"]))
    elif "range" in hints:
        low, high = _range(hints["range"], 0, 1)

        def make(random: Random) -> str:
            return str(random.randrange(int(low), max(int(high), int(low) + 1)))
    else:
        size = _length(hints.get("length"), 1, 9)

        def make(random: Random) -> str:
            return "".join(random.choices(string.ascii_lowercase, k=size(random)))

    return lambda random: f"{prefix}{make(random)}{suffix}"


def _iteration(iteration: Any, *, as_text: bool, hints: Mapping[str, Any]) -> Make:
    if not isinstance(iteration, dict):
        raise FormatError("iteration must be an object with start, step and restart")
    start, step = int(_number(iteration.get("start", 0))), int(_number(iteration.get("step", 1)))
    restart = None if "restart" not in iteration else int(_number(iteration["restart"]))
    state = {"next": start}
    prefix, suffix = hints.get("prefix", ""), hints.get("suffix", "")

    def make(_random: Random) -> Any:
        current = state["next"]
        following = current + step
        is_over = restart is not None and (following >= restart if step > 0 else following <= restart)
        state["next"] = start if is_over else following
        return f"{prefix}{current}{suffix}" if as_text else current

    return make


def _range(given: Any, low: float, high: float) -> tuple[float, float]:
    if given is None:
        return low, high
    if not isinstance(given, dict):
        raise FormatError("range must be an object with min and max")
    least, most = _number(given.get("min", low)), _number(given.get("max", high))
    if least >= most:
        raise FormatError(f"the range from {least} to {most} is empty")
    return least, most


def _length(given: Any, low: int, high: int) -> Callable[[Random], int]:
    """How long something is: the given size, or one from a range whose end is excluded."""
    if isinstance(given, dict):
        low, high = int(_number(given.get("min", 0))), int(_number(given.get("max", high)))
    elif given is not None:
        low, high = int(_number(given)), int(_number(given)) + 1
    if not 0 <= low < high <= LONGEST:
        raise FormatError(f"a length from {low} to {high} is not possible; it must lie between 0 and {LONGEST}")
    return lambda random: random.randrange(low, high)


def _number(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise FormatError(f"{given!r} should be a number")
    return given
