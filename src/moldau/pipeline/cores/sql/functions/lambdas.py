"""Functions that apply lambdas to the elements of arrays and maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.formats.types import Value
from moldau.pipeline.cores.sql.failures import ExpressionError
from moldau.pipeline.cores.sql.functions.registry import BUILTIN
from moldau.pipeline.cores.sql.map_order import in_java_order

_LAMBDA = "LAMBDA"


def _decides(outcome: object) -> bool:
    if outcome is None:
        raise ExpressionError("the condition of FILTER is NULL for an element")
    return bool(outcome)


@BUILTIN.scalar("filter", "(array ARRAY<T>, lambda (T) => BOOLEAN) -> ARRAY<T>", category=_LAMBDA)
def filter_array(values: list[Value], keeps: Callable[[Value], Any]) -> list[Value]:
    """The elements, or entries, for which a lambda is true."""
    return [value for value in values if _decides(keeps(value))]


@BUILTIN.scalar("filter", "(map MAP<K, V>, lambda (K, V) => BOOLEAN) -> MAP<K, V>", category=_LAMBDA)
def filter_map(entries: dict[Value, Value], keeps: Callable[[Value, Value], Any]) -> dict[Value, Value]:
    """The entries for which a lambda is true."""
    return {key: value for key, value in entries.items() if _decides(keeps(key, value))}


@BUILTIN.scalar("transform", "(array ARRAY<T>, lambda (T) => U) -> ARRAY<U>", category=_LAMBDA)
def transform_array(values: list[Value], change: Callable[[Value], Value]) -> list[Value]:
    """Each element, or the key and value of each entry, changed by lambdas."""
    return [change(value) for value in values]


@BUILTIN.scalar(
    "transform", "(map MAP<K, V>, key_lambda (K, V) => R, value_lambda (K, V) => T) -> MAP<R, T>", category=_LAMBDA
)
def transform_map(
    entries: dict[Value, Value],
    change_key: Callable[[Value, Value], Value],
    change_value: Callable[[Value, Value], Value],
) -> dict[Value, Value]:
    """The key and value of each entry changed by lambdas; two equal keys are an error."""
    changed: dict[Value, Value] = {}
    for key, value in entries.items():
        new_key = change_key(key, value)
        if new_key in changed:
            raise ExpressionError(f"Duplicate key {new_key}")
        changed[new_key] = change_value(key, value)
    return changed


@BUILTIN.scalar("reduce", "(array ARRAY<T>, state S, lambda (S, T) => S) -> S", category=_LAMBDA, is_strict=False)
def reduce_array(values: list[Value] | None, state: Value, step: Callable[[Value, Value], Value]) -> Value:
    """A state carried from element to element by a lambda."""
    if state is None:
        return None
    for value in values or ():
        state = step(state, value)
    return state


@BUILTIN.scalar("reduce", "(map MAP<K, V>, state S, lambda (S, K, V) => S) -> S", category=_LAMBDA, is_strict=False)
def reduce_map(entries: dict[Value, Value] | None, state: Value, step: Callable[[Value, Value, Value], Value]) -> Value:
    """A state carried from entry to entry by a lambda."""
    if state is None:
        return None
    for key, value in in_java_order(entries or {}):
        state = step(state, key, value)
    return state
