"""The functions a case may name, each with a twin of the same name in java/oracle/Functions.java.

Values are texts, but for counts; a function that sees a number or a windowed key takes its text. Start at `text`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moldau.streams import Windowed

__all__ = [
    "aggregator",
    "clip",
    "clock",
    "digest",
    "flattener",
    "joiner",
    "key_selector",
    "merger",
    "predicate",
    "reducer",
    "text",
    "value_mapper",
]

LONGEST = 60
Spec = Mapping[str, Any]


def text(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, Windowed):
        return f"{text(value.key)}@{value.window.start}/{value.window.end}"
    return str(value)


def digest(*parts: object) -> int:
    """A small number that depends on every character."""
    result = 7
    for part in parts:
        for letter in text(part):
            result = (result * 31 + ord(letter)) % 9973
        result = (result * 31 + 1) % 9973
    return result


def clip(value: str) -> str:
    """Values grow with every step; past a length only their beginning and a digest of the whole are kept."""
    return value if len(value) <= LONGEST else f"{value[: LONGEST // 2]}~{digest(value)}"


def is_chosen(spec: Spec, *parts: object) -> bool:
    return bool(digest(*parts) % spec["mod"] == spec.get("rest", 0))


def predicate(spec: Spec) -> Callable[[Any, Any], bool]:
    match spec["fn"]:
        case "digest":
            return lambda key, value: is_chosen(spec, key, value)
        case "key_digest":
            return lambda key, value: is_chosen(spec, key)
        case "value_digest":
            return lambda key, value: is_chosen(spec, value)
        case "has_value":
            return lambda key, value: value is not None
        case "has_key":
            return lambda key, value: key is not None
        case "longer":
            return lambda key, value: len(text(value)) > spec["than"]
        case "failing":
            return lambda key, value: _not_chosen(spec, True, key, value)
    raise _unknown("predicate", spec)


def value_mapper(spec: Spec) -> Callable[[Any, Any], str | None]:
    """Takes key and value."""
    match spec["fn"]:
        case "append":
            return lambda key, value: clip(text(value) + spec["text"])
        case "text":
            return lambda key, value: text(value)
        case "with_key":
            return lambda key, value: clip(f"{text(key)}:{text(value)}")
        case "nullable":
            return lambda key, value: None if is_chosen(spec, value) else clip(text(value) + "n")
        case "keep_null":
            return lambda key, value: None if value is None else clip(text(value) + "k")
        case "failing":
            return lambda key, value: clip(text(_not_chosen(spec, value, key, value)) + "f")
    raise _unknown("value mapper", spec)


def key_selector(spec: Spec) -> Callable[[Any, Any], str | None]:
    match spec["fn"]:
        case "first":
            return lambda key, value: text(value)[:1]
        case "bucket":
            return lambda key, value: f"b{digest(value) % spec['mod']}"
        case "nullable_bucket":
            return lambda key, value: None if digest(value) % spec["mod"] == 0 else f"b{digest(value) % spec['mod']}"
        case "key_bucket":
            return lambda key, value: f"k{digest(key) % spec['mod']}"
        case "key_text":
            return lambda key, value: text(key)
    raise _unknown("key selector", spec)


def flattener(spec: Spec) -> Callable[[Any, Any], Iterable[str]]:
    match spec["fn"]:
        case "split":
            return lambda key, value: text(value).split(",")
        case "repeat":
            return lambda key, value: [clip(f"{text(value)}#{copy}") for copy in range(digest(value) % spec["mod"])]
    raise _unknown("flattener", spec)


def joiner(spec: Spec) -> Callable[[Any, Any, Any], str | None]:
    """Takes key, left and right."""
    match spec["fn"]:
        case "pair":
            return lambda key, left, right: clip(f"({text(left)},{text(right)})")
        case "pair_key":
            return lambda key, left, right: clip(f"{text(key)}({text(left)},{text(right)})")
        case "failing":
            return lambda key, left, right: clip(f"({text(_not_chosen(spec, left, left, right))},{text(right)})")
        case "nullable_pair":
            return lambda key, left, right: (
                None if is_chosen(spec, left, right) else clip(f"({text(left)},{text(right)})")
            )
    raise _unknown("joiner", spec)


def reducer(spec: Spec) -> Callable[[Any, Any], Any]:
    match spec["fn"]:
        case "concat":
            return lambda aggregate, value: clip(f"{text(aggregate)}|{text(value)}")
        case "minus":
            return lambda aggregate, value: clip(f"{text(aggregate)}-{text(value)}")
        case "last":
            return lambda aggregate, value: value
        case "nullable":
            return lambda aggregate, value: (
                None if is_chosen(spec, aggregate, value) else clip(f"{text(aggregate)}|{text(value)}")
            )
    raise _unknown("reducer", spec)


def aggregator(spec: Spec) -> Callable[[Any, Any, Any], str | None]:
    """Takes key, value and aggregate."""
    match spec["fn"]:
        case "concat":
            return lambda key, value, aggregate: clip(f"{text(aggregate)}|{text(value)}")
        case "failing":
            return lambda key, value, aggregate: clip(f"{text(_not_chosen(spec, aggregate, key, value))}|{text(value)}")
        case "minus":
            return lambda key, value, aggregate: clip(f"{text(aggregate)}-{text(value)}")
        case "keyed":
            return lambda key, value, aggregate: clip(f"{text(aggregate)}|{text(key)}={text(value)}")
        case "nullable":
            return lambda key, value, aggregate: (
                None if is_chosen(spec, aggregate, value) else clip(f"{text(aggregate)}|{text(value)}")
            )
    raise _unknown("aggregator", spec)


def merger(spec: Spec) -> Callable[[Any, Any, Any], str]:
    """Takes key, one aggregate and the other."""
    if spec["fn"] == "merge":
        return lambda key, one, other: clip(f"[{text(one)}+{text(other)}]")
    raise _unknown("merger", spec)


def clock(spec: Spec) -> Callable[[Any, int], int]:
    """Reads a record's time: another than it has, or one that makes no sense."""
    match spec["fn"]:
        case "shifted":
            return lambda record, previous: max(0, record.timestamp - spec["by"])
        case "invalid":
            return lambda record, previous: -1 if is_chosen(spec, record.value) else record.timestamp
        case "previous":
            return lambda record, previous: (
                previous if is_chosen(spec, record.value) and previous >= 0 else record.timestamp
            )
    raise _unknown("clock", spec)


def _not_chosen(spec: Spec, result: Any, *parts: object) -> Any:
    """The result, or a failure for the parts that the case has chosen."""
    if is_chosen(spec, *parts):
        raise ValueError("the case wants this to fail")
    return result


def _unknown(what: str, spec: Spec) -> ValueError:
    return ValueError(f"no such {what}: {dict(spec)}")
