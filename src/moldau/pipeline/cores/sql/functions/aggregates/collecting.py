"""Aggregates that keep values: lists, sets, histograms, the largest ones, the first and the last."""

from __future__ import annotations

import itertools
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import Any

from moldau.formats.types import BIGINT, INTEGER, STRING, ArrayType, Field, MapType, SqlType, StructType, Value
from moldau.pipeline.cores.sql.functions.collections import frozen
from moldau.pipeline.cores.sql.functions.registry import BUILTIN, Aggregation, Settings, state_is_result
from moldau.pipeline.cores.sql.functions.resolution import FunctionLookupError
from moldau.pipeline.cores.sql.operations import order

Types = Sequence[SqlType | None]

_UNLIMITED = 2**31 - 1
_MAX_HISTOGRAM = 1000


def _limit(settings: Settings, function: str) -> int:
    limit = int(str(settings.get(f"ksql.functions.{function}.limit", _UNLIMITED)))
    return _UNLIMITED if limit < 0 else limit


# --- lists and sets ------------------------------------------------------------------------------------------


@BUILTIN.aggregate("COLLECT_LIST", "(value T) -> ARRAY<T>", is_undoable=True)
def collect_list(types: Types, constants: Sequence[Value], settings: Settings) -> Aggregation:
    """All values in the order of their arrival, NULLs included."""
    limit = _limit(settings, "collect_list")
    of = ArrayType(types[0] or STRING)

    def undo(state: list[Value], value: Value) -> list[Value]:
        for place in range(len(state) - 1, -1, -1):
            if state[place] == value:
                return state[:place] + state[place + 1 :]
        return state

    return Aggregation(
        initial=list,
        add=lambda state, value: [*state, value] if len(state) < limit else state,
        undo=undo,
        merge=lambda one, other: [*one, *other][:limit],
        result=state_is_result,
        result_type=of,
        state_type=of,
    )


@BUILTIN.aggregate("COLLECT_SET", "(value T) -> ARRAY<T>")
def collect_set(types: Types, constants: Sequence[Value], settings: Settings) -> Aggregation:
    """The distinct values in the order of their first arrival, NULL included."""
    limit = _limit(settings, "collect_set")
    of = ArrayType(types[0] or STRING)

    def merge(one: list[Value], other: list[Value]) -> list[Value]:
        known = {frozen(value): value for value in one}
        for value in other:
            known.setdefault(frozen(value), value)
        return list(known.values())[:limit]

    return Aggregation(
        initial=list,
        add=lambda state, value: state if len(state) >= limit or value in state else [*state, value],
        merge=merge,
        result=state_is_result,
        result_type=of,
        state_type=of,
    )


@BUILTIN.aggregate("HISTOGRAM", "(value STRING) -> MAP<STRING, BIGINT>", is_undoable=True)
def histogram(types: Types, constants: Sequence[Value], settings: Settings) -> Aggregation:
    """How often each value occurs, for at most 1000 distinct values."""

    def add(state: dict[str, int], value: str | None) -> dict[str, int]:
        if value is None or (value not in state and len(state) >= _MAX_HISTOGRAM):
            return state
        return state | {value: state.get(value, 0) + 1}

    def undo(state: dict[str, int], value: str | None) -> dict[str, int]:
        if value is None or value not in state:
            return state
        changed = state | {value: state[value] - 1}
        if changed[value] < 1:
            del changed[value]
        return changed

    def merge(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
        merged = dict(one)
        for value, number in other.items():
            if value in merged or len(merged) < _MAX_HISTOGRAM:
                merged[value] = merged.get(value, 0) + number
        return merged

    of = MapType(STRING, BIGINT)
    return Aggregation(
        initial=dict,
        add=add,
        undo=undo,
        merge=merge,
        result=state_is_result,
        result_type=of,
        state_type=of,
    )


@BUILTIN.aggregate("ATTR", "(value T) -> T", is_undoable=True)
def attr(types: Types, constants: Sequence[Value], settings: Settings) -> Aggregation:
    """The value that all rows share, NULL if they differ."""
    of = types[0] or STRING

    def counted(state: list[tuple[Value, int]], value: Value, change: int) -> list[tuple[Value, int]]:
        for place, (known, number) in enumerate(state):
            if known == value:
                left = [(known, number + change)] if number + change > 0 else []
                return [*state[:place], *left, *state[place + 1 :]]
        return [*state, (value, change)] if change > 0 else state

    def merge(one: list[tuple[Value, int]], other: list[tuple[Value, int]]) -> list[tuple[Value, int]]:
        for value, number in other:
            one = counted(one, value, number)
        return one

    return Aggregation(
        initial=list,
        add=lambda state, value: counted(state, value, 1),
        undo=lambda state, value: counted(state, value, -1),
        merge=merge,
        result=lambda state: state[0][0] if len(state) == 1 else None,
        result_type=of,
        state_type=ArrayType(StructType((Field("VALUE", of), Field("COUNT", INTEGER)))),
    )


# --- the largest ---------------------------------------------------------------------------------------------


def _descending(one: Any, other: Any) -> int:
    return order(other, one)


_rank = cmp_to_key(_descending)


def _wanted(constants: Sequence[Value], function: str) -> int:
    number = constants[0] if constants else None
    if not isinstance(number, int) or number < 1:
        raise FunctionLookupError(f"{function} needs a number of values of at least 1, not {number}")
    return number


def _with_value_inserted(state: list[Any], value: Any, keys: Callable[[Any], Any], most: int) -> list[Any]:
    """A list in descending order with one value more, after its equals."""
    place = bisect_right([keys(each) for each in state], keys(value))
    return state if place >= most else [*state[:place], value, *state[place:]][:most]


_SORTED = ("INTEGER", "BIGINT", "DOUBLE", "DECIMAL", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP")


@BUILTIN.aggregate("TOPK", *(f"(value {kind}, k INTEGER) -> ARRAY<{kind}>" for kind in _SORTED), constant_count=1)
def topk(types: Types, constants: Sequence[Value], settings: Settings) -> Aggregation:
    """The k largest values, in descending order; with further columns, structs of them."""
    most = _wanted(constants, "TOPK")
    of = ArrayType(types[0] or STRING)

    def merge(one: list[Value], other: list[Value]) -> list[Value]:
        return sorted([*one, *other], key=_rank)[:most]

    return Aggregation(
        initial=list,
        add=lambda state, value: state if value is None else _with_value_inserted(state, value, _rank, most),
        merge=merge,
        result=state_is_result,
        result_type=of,
        state_type=of,
    )


@BUILTIN.aggregate(
    "TOPK", *(f"(value {kind}, column T, others ANY..., k INTEGER) -> STRUCT" for kind in _SORTED), constant_count=1
)
def topk_rows(types: Types, constants: Sequence[Value], settings: Settings) -> Aggregation:
    """The rows with the k largest values of the first column, as structs."""
    most = _wanted(constants, "TOPK")
    names = ["sort_col", *(f"col{number}" for number in range(len(types) - 1))]
    of = ArrayType(StructType(tuple(Field(name, each or STRING) for name, each in zip(names, types, strict=True))))

    def key(row: tuple[Value, ...]) -> Any:
        return _rank(row[0])

    return Aggregation(
        initial=list,
        add=lambda state, *row: state if row[0] is None else _with_value_inserted(state, row, key, most),
        merge=lambda one, other: sorted([*one, *other], key=key)[:most],
        result=state_is_result,
        result_type=of,
        state_type=of,
    )


@BUILTIN.aggregate(
    "TOPKDISTINCT", *(f"(value {kind}, k INTEGER) -> ARRAY<{kind}>" for kind in _SORTED), constant_count=1
)
def topkdistinct(types: Types, constants: Sequence[Value], settings: Settings) -> Aggregation:
    """The k largest distinct values, in descending order."""
    most = _wanted(constants, "TOPKDISTINCT")
    of = ArrayType(types[0] or STRING)

    def add(state: list[Value], value: Value) -> list[Value]:
        return state if value is None or value in state else _with_value_inserted(state, value, _rank, most)

    def merge(one: list[Value], other: list[Value]) -> list[Value]:
        for value in other:
            one = add(one, value)
        return one

    return Aggregation(
        initial=list,
        add=add,
        merge=merge,
        result=state_is_result,
        result_type=of,
        state_type=of,
    )


# --- the first and the last ----------------------------------------------------------------------------------

_arrivals = itertools.count(time.time_ns())
"""Numbers of arrival, which order values when sessions merge; they go on rising after a restart."""


def _by_offset(is_latest: bool, count: int | None, ignores_nulls: bool, of: SqlType) -> Aggregation:
    """States are lists of (arrival, value) in the order of arrival, at most `count` of them."""
    most = count or 1
    entry = StructType((Field("SEQ", BIGINT), Field("VAL", of)))

    def kept(state: list[Any]) -> list[Any]:
        return state[-most:] if is_latest else state[:most]

    def add(state: list[Any], value: Value) -> list[Any]:
        if (value is None and ignores_nulls) or (not is_latest and len(state) >= most):
            return state
        return kept([*state, (next(_arrivals), value)])

    def merge(one: list[Any], other: list[Any]) -> list[Any]:
        return kept(sorted([*one, *other], key=lambda each: int(each[0])))

    def result(state: list[Any]) -> Value:
        values = [value for _, value in state]
        if count is not None:
            return values
        return values[0] if values else None

    return Aggregation(
        initial=list,
        add=add,
        merge=merge,
        result=result,
        result_type=of if count is None else ArrayType(of),
        state_type=ArrayType(entry),
    )


def _declare_by_offset(name: str, *, is_latest: bool, about: str) -> None:
    def one(types: Types, constants: Sequence[Value], settings: Settings) -> Aggregation:
        ignores = bool(constants[0]) if constants else True
        return _by_offset(is_latest, None, ignores, types[0] or STRING)

    def many(types: Types, constants: Sequence[Value], settings: Settings) -> Aggregation:
        number = constants[0]
        if not isinstance(number, int) or number < 1:
            raise FunctionLookupError(f"{'latest' if is_latest else 'earliest'}N must be 1 or greater")
        ignores = bool(constants[1]) if len(constants) > 1 else True
        return _by_offset(is_latest, number, ignores, types[0] or STRING)

    one.__doc__ = many.__doc__ = about
    BUILTIN.aggregate(name, "(value T) -> T")(one)
    BUILTIN.aggregate(name, "(value T, ignoreNulls BOOLEAN) -> T", constant_count=1)(one)
    BUILTIN.aggregate(name, "(value T, n INTEGER) -> ARRAY<T>", constant_count=1)(many)
    BUILTIN.aggregate(name, "(value T, n INTEGER, ignoreNulls BOOLEAN) -> ARRAY<T>", constant_count=2)(many)


_declare_by_offset(
    "EARLIEST_BY_OFFSET",
    is_latest=False,
    about="The value, or the n values, that arrived first; NULLs are left out unless told otherwise.",
)
_declare_by_offset(
    "LATEST_BY_OFFSET",
    is_latest=True,
    about="The value, or the n values, that arrived last; NULLs are left out unless told otherwise.",
)
