"""Strategies for columns of any types and rows of them, as far as a format holds them. Start at `columns_and_row`."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from moldau.formats.columns import Column
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
    ArrayType,
    DecimalType,
    Field,
    MapType,
    Row,
    SqlType,
    StructType,
)

PRIMITIVES = (BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING, BYTES, DATE, TIME, TIMESTAMP)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
DAYS = (-719_162, 2_932_896)
"""From the year 1 to 9999: what a date with a year, month and day can be."""


@dataclass(frozen=True)
class Limits:
    """What a format can hold."""

    names: SearchStrategy[str] = NAMES
    has_nested: bool = True
    has_null_scalars: bool = True
    has_null_collections: bool = True
    has_nested_collections: bool = True
    has_null_elements: bool = True
    map_keys: tuple[SqlType, ...] = (STRING,)


@st.composite
def decimals(draw: DrawFn) -> DecimalType:
    precision = draw(st.integers(1, 45))
    return DecimalType(precision, draw(st.integers(0, precision)))


@st.composite
def types(draw: DrawFn, limits: Limits, depth: int = 3, inside: bool = False) -> SqlType:
    kinds = ["primitive", "primitive", "decimal"]
    if limits.has_nested and depth > 0:
        kinds.append("struct")
        if limits.has_nested_collections or not inside:
            kinds += ["array", "map"]
    match draw(st.sampled_from(kinds)):
        case "decimal":
            return draw(decimals())
        case "array":
            return ArrayType(draw(types(limits, depth - 1, True)))
        case "map":
            return MapType(draw(st.sampled_from(limits.map_keys)), draw(types(limits, depth - 1, True)))
        case "struct":
            names = draw(unique_names(limits, 3))
            return StructType(tuple(Field(name, draw(types(limits, depth - 1))) for name in names))
    return draw(st.sampled_from(PRIMITIVES))


def unique_names(limits: Limits, count: int) -> SearchStrategy[list[str]]:
    return st.lists(limits.names, min_size=1, max_size=count, unique_by=lambda name: name.upper().replace("_", ""))


SCALARS: dict[SqlType, SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    INTEGER: st.integers(-(2**31), 2**31 - 1),
    BIGINT: st.integers(-(2**63), 2**63 - 1),
    DOUBLE: st.floats(allow_nan=False),
    STRING: TEXT,
    BYTES: st.binary(max_size=12),
    DATE: st.integers(*DAYS),
    TIME: st.integers(0, 86_399_999),
    TIMESTAMP: st.integers(-(2**53), 2**53),
}


def values(sql_type: SqlType, limits: Limits) -> SearchStrategy[Any]:
    """Values of a type, nulls among them where the format can hold them."""
    found: SearchStrategy[Any]
    match sql_type:
        case DecimalType(precision, scale):
            highest = 10**precision - 1
            found = st.integers(-highest, highest).map(lambda number: decimal_of(number, scale))
            allowed = True
        case ArrayType(element):
            found, allowed = st.lists(elements(element, limits), max_size=3), limits.has_null_collections
        case MapType(key, value):
            found = st.dictionaries(SCALARS[key], elements(value, limits), max_size=3)
            allowed = limits.has_null_collections
        case StructType(fields):
            found, allowed = st.tuples(*(values(field.type, limits) for field in fields)), True
        case _:
            found, allowed = SCALARS[sql_type], limits.has_null_scalars or sql_type in (DATE, TIME, TIMESTAMP)
    return st.none() | found if allowed else found


def elements(sql_type: SqlType, limits: Limits) -> SearchStrategy[Any]:
    """Values inside of an array or a map."""
    found = values(sql_type, limits)
    return found if limits.has_null_elements else found.filter(lambda value: value is not None)


def decimal_of(number: int, scale: int) -> Decimal:
    digits = tuple(int(digit) for digit in str(abs(number)))
    return Decimal((int(number < 0), digits, -scale))


@st.composite
def columns_and_row(draw: DrawFn, limits: Limits, max_columns: int = 5) -> tuple[tuple[Column, ...], Row]:
    names = draw(unique_names(limits, max_columns))
    columns = tuple(Column(name, draw(types(limits))) for name in names)
    return columns, draw(st.tuples(*(values(column.type, limits) for column in columns)))
