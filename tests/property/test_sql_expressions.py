"""Any expression that types also compiles, evaluates on any row without an exception, and gives a value of its type."""

from __future__ import annotations

import pickle
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.formats.columns import Column
from moldau.formats.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    STRING,
    ArrayType,
    DecimalType,
    MapType,
    SqlType,
    StructType,
)
from moldau.pipeline.cores.sql.rows import compile_row
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax.parser import parse_expression
from moldau.pipeline.ksql.typing.scope import RowScope
from moldau.pipeline.ksql.typing.typing import typed_select

COLUMNS = [
    Column("I", INTEGER),
    Column("L", BIGINT),
    Column("D", DOUBLE),
    Column("X", DecimalType(6, 2)),
    Column("S", STRING),
    Column("B", BOOLEAN),
    Column("A", ArrayType(INTEGER)),
    Column("M", MapType(STRING, INTEGER)),
]
TEXT = st.text(max_size=5)
INTEGERS = st.integers(-(2**31), 2**31 - 1)
ROWS = st.tuples(
    *(
        st.none() | values
        for values in (
            INTEGERS,
            st.integers(-(2**63), 2**63 - 1),
            st.floats(),
            st.integers(-999_999, 999_999).map(lambda number: Decimal(number).scaleb(-2)),
            TEXT,
            st.booleans(),
            st.lists(st.none() | INTEGERS, max_size=3),
            st.dictionaries(TEXT, st.none() | INTEGERS, max_size=3),
        )
    )
)
LEAVES = st.sampled_from(
    [*"ILDXSBAM", "1", "-7", "0", "2.50", "1E1", "'a'", "'12'", "NULL", "TRUE", "3000000000", "ARRAY[1, 2]"]
)
UNARY = st.sampled_from(
    [
        "(- {0})", "(NOT {0})", "({0} IS NULL)", "CAST({0} AS STRING)", "CAST({0} AS INT)",
        "CAST({0} AS DECIMAL(5, 1))", "ABS({0})", "LEN({0})", "UCASE({0})", "{0}[1]", "{0}['a']",
        "TO_JSON_STRING({0})", "ARRAY[{0}]",
        "STRUCT(F := {0})", "STRUCT(F := {0})->F", "MAP('k' := {0})", "TRANSFORM({0}, v => v)", "COALESCE({0}, {0})",
        "ROUND({0}, 1)", "TRANSFORM({0}, v => v + I)", "FILTER({0}, v => v > 1)", "REDUCE({0}, 0, (s, v) => s + v)",
    ]
)  # fmt: skip
BINARY = st.sampled_from(
    [
        "({0} + {1})", "({0} - {1})", "({0} * {1})", "({0} / {1})", "({0} % {1})", "({0} = {1})", "({0} < {1})",
        "({0} <> {1})", "({0} IS DISTINCT FROM {1})", "({0} AND {1})", "({0} OR {1})", "({0} || {1})", "({0} LIKE {1})",
        "({0} IN ({1}, {0}))", "ARRAY[{0}, {1}]", "CASE WHEN {0} THEN {1} ELSE {1} END", "IFNULL({0}, {1})",
        "({0} BETWEEN {1} AND {1})", "GREATEST({0}, {1})", "CONCAT({0}, {1})", "ARRAY_CONTAINS({0}, {1})",
    ]
)  # fmt: skip
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(lambda form, one: form.format(one), UNARY, inner)
        | st.builds(lambda form, one, other: form.format(one, other), BINARY, inner, inner)
    ),
    max_leaves=12,
)


def is_of(value: Any, kind: SqlType) -> bool:
    if value is None:
        return True
    match kind:
        case DecimalType():
            return isinstance(value, Decimal) and -int(value.as_tuple().exponent) == kind.scale
        case ArrayType():
            return isinstance(value, list) and all(is_of(each, kind.element) for each in value)
        case MapType():
            return isinstance(value, dict) and all(is_of(each, kind.value) for each in value.values())
        case StructType():
            pairs = zip(value, kind.fields, strict=True)
            return isinstance(value, tuple) and all(is_of(each, field.type) for each, field in pairs)
    if kind in (INTEGER, BIGINT):
        bits = 31 if kind == INTEGER else 63
        return type(value) is int and -(1 << bits) <= value < 1 << bits
    return type(value) is {BOOLEAN: bool, DOUBLE: float, STRING: str}[kind]


@settings(max_examples=400)
@given(EXPRESSIONS, ROWS)
def test_what_types_also_evaluates_to_its_type(text: str, row: tuple[Any, ...]) -> None:
    try:
        typed = typed_select(parse_expression(text), RowScope(COLUMNS))
    except KsqlError:
        return
    assert typed.type is not None
    (value,) = compile_row([pickle.loads(pickle.dumps(typed))])(row)
    assert is_of(value, typed.type), (value, typed.type)
