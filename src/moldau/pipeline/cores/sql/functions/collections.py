"""Functions on arrays and maps."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cmp_to_key
from typing import Any

from moldau.formats.types import (
    STRING,
    ArrayType,
    DecimalType,
    SqlType,
    Value,
)
from moldau.pipeline.cores.sql.casts import text_of
from moldau.pipeline.cores.sql.failures import ExpressionError
from moldau.pipeline.cores.sql.functions.math import same_type
from moldau.pipeline.cores.sql.functions.registry import BUILTIN
from moldau.pipeline.cores.sql.map_order import in_java_order
from moldau.pipeline.cores.sql.operations import order

_ARRAY = "ARRAY"
_MAP = "MAP"
MAX_SERIES = 1_000_000
"""Longest series that GENERATE_SERIES makes: two numbers must not cost gigabytes."""


def frozen(value: Any) -> Hashable:
    """A value that is equal for equal values and can be kept in a set, whatever it is composed of."""
    if isinstance(value, list):
        return ("list", *map(frozen, value))
    if isinstance(value, dict):
        return ("map", frozenset((frozen(key), frozen(item)) for key, item in value.items()))
    if isinstance(value, tuple):
        return ("struct", *map(frozen, value))
    return (type(value).__name__, value)


# --- sets ----------------------------------------------------------------------------------------------------


def _first_of_each(values: Sequence[Value]) -> list[Value]:
    seen: dict[Hashable, Value] = {}
    for value in values:
        seen.setdefault(frozen(value), value)
    return list(seen.values())


@BUILTIN.scalar("array_distinct", "(list ARRAY<T>) -> ARRAY<T>", category=_ARRAY)
def array_distinct(values: list[Value]) -> list[Value]:
    """The elements of an array, each once, in the order of their first occurrence."""
    return _first_of_each(values)


@BUILTIN.scalar("array_except", "(left ARRAY<T>, right ARRAY<T>) -> ARRAY<T>", category=_ARRAY)
def array_except(left: list[Value], right: list[Value]) -> list[Value]:
    """The distinct elements of one array that another does not have."""
    excluded = set(map(frozen, right))
    return [value for value in _first_of_each(left) if frozen(value) not in excluded]


@BUILTIN.scalar("array_intersect", "(left ARRAY<T>, right ARRAY<T>) -> ARRAY<T>", category=_ARRAY)
def array_intersect(left: list[Value], right: list[Value]) -> list[Value]:
    """The distinct elements that two arrays share."""
    shared = set(map(frozen, right))
    return [value for value in _first_of_each(left) if frozen(value) in shared]


@BUILTIN.scalar("array_union", "(left ARRAY<T>, right ARRAY<T>) -> ARRAY<T>", category=_ARRAY)
def array_union(left: list[Value], right: list[Value]) -> list[Value]:
    """The distinct elements of two arrays."""
    return _first_of_each([*left, *right])


@BUILTIN.scalar("array_concat", "(left ARRAY<T>, right ARRAY<T>) -> ARRAY<T>", category=_ARRAY, is_strict=False)
def array_concat(left: list[Value] | None, right: list[Value] | None) -> list[Value] | None:
    """The elements of two arrays, one after the other; NULL counts as empty if the other is an array."""
    if left is None or right is None:
        return left if right is None else right
    return [*left, *right]


@BUILTIN.scalar("array_contains", "(array ARRAY<T>, val T) -> BOOLEAN", category=_ARRAY, is_strict=False)
def array_contains(values: list[Value] | None, wanted: Value) -> bool:
    """Whether an array has an element; NULL can be one."""
    return values is not None and wanted in values


@BUILTIN.scalar("array_remove", "(array ARRAY<T>, element T) -> ARRAY<T>", category=_ARRAY, is_strict=False)
def array_remove(values: list[Value] | None, unwanted: Value) -> list[Value] | None:
    """An array without the elements that equal a value."""
    return None if values is None else [value for value in values if value != unwanted]


@BUILTIN.scalar("array_length", "(array ARRAY<T>) -> INTEGER", category=_ARRAY)
def array_length(values: list[Value]) -> int:
    """How many elements an array has."""
    return len(values)


# --- order ---------------------------------------------------------------------------------------------------


_sort_key = cmp_to_key(order)

_ORDERED = ("BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP")


def _element_type(arguments: Sequence[SqlType | None]) -> SqlType:
    first = arguments[0]
    return first.element if isinstance(first, ArrayType) else DecimalType(1, 0)


def _array_max(values: list[Value]) -> Value:
    """The largest element that is not NULL."""
    return max((value for value in values if value is not None), key=_sort_key, default=None)


def _array_min(values: list[Value]) -> Value:
    """The smallest element that is not NULL."""
    return min((value for value in values if value is not None), key=_sort_key, default=None)


for _name, _pick in (("array_max", _array_max), ("array_min", _array_min)):
    BUILTIN.scalar(_name, *(f"(array ARRAY<{kind}>) -> {kind}" for kind in _ORDERED), category=_ARRAY)(_pick)
    BUILTIN.scalar(_name, "(array ARRAY<DECIMAL>) -> DECIMAL", category=_ARRAY, returns=_element_type)(_pick)


def array_sort(values: list[Value], direction: str = "ASC") -> list[Value] | None:
    """An array in ascending order, or descending if DESC is given; NULLs are last."""
    if direction.strip().upper() not in ("ASC", "ASCENDING", "DESC", "DESCENDING"):
        return None
    is_descending = direction.strip().upper().startswith("DESC")
    known = sorted((value for value in values if value is not None), key=_sort_key, reverse=is_descending)
    return [*known, *([None] * (len(values) - len(known)))]


for _kind in _ORDERED:
    BUILTIN.scalar(
        "array_sort",
        f"(array ARRAY<{_kind}>) -> ARRAY<{_kind}>",
        f"(array ARRAY<{_kind}>, direction STRING) -> ARRAY<{_kind}>",
        category=_ARRAY,
    )(array_sort)
BUILTIN.scalar(
    "array_sort",
    "(array ARRAY<DECIMAL>) -> ARRAY<DECIMAL>",
    "(array ARRAY<DECIMAL>, direction STRING) -> ARRAY<DECIMAL>",
    category=_ARRAY,
    returns=same_type,
)(array_sort)


# --- parts and series ----------------------------------------------------------------------------------------


@BUILTIN.scalar("slice", "(in ARRAY<T>, from INTEGER, to INTEGER) -> ARRAY<T>", category=_ARRAY, is_strict=False)
def array_slice(values: list[Value] | None, first: int | None, last: int | None) -> list[Value] | None:
    """The elements from one position to another, both from 1 and included."""
    if values is None:
        return None
    start = 0 if first is None else first - 1
    end = len(values) if last is None else last
    return values[start:end] if 0 <= start < end <= len(values) else None


def generate_series(start: int, end: int, step: int | None = None) -> list[int]:
    """The numbers from one to another, both included, in steps of 1 (or -1) or of a given size."""
    if step is None:
        step = 1 if end >= start else -1
    if step == 0 or (end - start) * step < 0:
        raise ExpressionError(f"GENERATE_SERIES step must be {'positive' if end >= start else 'negative'}, got {step}")
    if abs((end - start) // step) >= MAX_SERIES:
        raise ExpressionError(f"a series has at most {MAX_SERIES} numbers")
    return list(range(start, end + (1 if step > 0 else -1), step))


for _kind in ("INTEGER", "BIGINT"):
    BUILTIN.scalar(
        "generate_series",
        f"(start {_kind}, end {_kind}) -> ARRAY<{_kind}>",
        f"(start {_kind}, end {_kind}, step INTEGER) -> ARRAY<{_kind}>",
        category=_ARRAY,
    )(generate_series)


def _join(arguments: Sequence[SqlType | None], result: SqlType) -> Callable[..., str | None]:
    """The texts of the elements of an array, with a delimiter (a comma if none is given) between them."""
    array = arguments[0]
    text = text_of(array.element if isinstance(array, ArrayType) else STRING)

    def join(values: list[Value] | None, delimiter: str | None = ",") -> str | None:
        if values is None:
            return None
        assert text is not None
        return ("" if delimiter is None else delimiter).join(
            "null" if value is None else str(text(value)) for value in values
        )

    return join


for _kind in ("BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "DECIMAL", "STRING"):
    BUILTIN.scalar(
        "array_join",
        f"(array ARRAY<{_kind}>) -> STRING",
        f"(array ARRAY<{_kind}>, delimiter STRING) -> STRING",
        category=_ARRAY,
        is_strict=False,
        is_typed=True,
    )(_join)


# --- maps ----------------------------------------------------------------------------------------------------


@BUILTIN.scalar("map_keys", "(input MAP<K, V>) -> ARRAY<K>", category=_MAP)
def map_keys(entries: dict[Value, Value]) -> list[Value]:
    """The keys of a map."""
    return [key for key, _ in in_java_order(entries)]


@BUILTIN.scalar("map_values", "(input MAP<K, V>) -> ARRAY<V>", category=_MAP)
def map_values(entries: dict[Value, Value]) -> list[Value]:
    """The values of a map."""
    return [value for _, value in in_java_order(entries)]


@BUILTIN.scalar("map_union", "(map1 MAP<K, V>, map2 MAP<K, V>) -> MAP<K, V>", category=_MAP, is_strict=False)
def map_union(one: dict[Value, Value] | None, other: dict[Value, Value] | None) -> dict[Value, Value] | None:
    """The entries of two maps; for a key that both have, the value of the second."""
    if one is None or other is None:
        return one if other is None else other
    return one | other


@BUILTIN.scalar("as_map", "(keys ARRAY<STRING>, values ARRAY<T>) -> MAP<STRING, T>", category=_MAP)
def as_map(keys: list[Value], values: list[Value]) -> dict[Value, Value]:
    """A map of keys and values from two arrays; a key without value gets NULL."""
    return {key: values[place] if place < len(values) else None for place, key in enumerate(keys)}


def entries_of(entries: dict[str, Value], is_sorted: bool) -> list[tuple[str, Value]]:
    """The entries of a map as structs K and V, by key if asked for."""
    if not is_sorted:
        return in_java_order(entries)
    return sorted(entries.items(), key=lambda entry: _sort_key(entry[0]))


BUILTIN.scalar("entries", "(map MAP<STRING, V>, sorted BOOLEAN) -> ARRAY<STRUCT<K STRING, V V>>", category=_MAP)(
    entries_of
)


# --- nulls ---------------------------------------------------------------------------------------------------


@BUILTIN.scalar("COALESCE", "(first T, others T...) -> T", category="OTHER", is_strict=False)
def coalesce(*values: Value) -> Value:
    """The first value that is not NULL."""
    return next((value for value in values if value is not None), None)


@BUILTIN.scalar("IFNULL", "(expression T, altValue T) -> T", category="OTHER", is_strict=False)
def ifnull(value: Value, otherwise: Value) -> Value:
    """A value, or another if it is NULL."""
    return otherwise if value is None else value


@BUILTIN.scalar("NULLIF", "(expression1 T, expression2 T) -> T", category="OTHER", is_strict=False)
def nullif(value: Value, unwanted: Value) -> Value:
    """A value, or NULL if it equals another."""
    return None if value is not None and value == unwanted else value


@BUILTIN.scalar("AS_VALUE", "(keyColumn T) -> T", category="OTHER", is_strict=False)
def as_value(value: Value) -> Value:
    """A key column as a value, so that it can be in key and value."""
    return value
