from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from tests.unit.pipeline.cores.sql.evaluating import Columns, evaluate, scope_of

from moldau.pipeline.cores.sql.processing_log import ListLog
from moldau.pipeline.cores.sql.rows import compile_filter, compile_projection, compile_row, compile_value
from moldau.pipeline.ksql.syntax.parser import parse_expression
from moldau.pipeline.ksql.typing.typing import typed_condition, typed_select

COLUMNS: Columns = {
    "I": ("INT", 5),
    "N": ("INT", None),
    "D": ("DOUBLE", 2.5),
    "DEC": ("DECIMAL(4,2)", Decimal("1.50")),
    "S": ("STRING", "hello"),
    "B": ("BOOLEAN", None),
    "A": ("ARRAY<INT>", [1, 2, 3]),
    "M": ("MAP<STRING, INT>", {"k": 9}),
    "ST": ("STRUCT<F INT>", None),
}
ROW = tuple(value for _, value in COLUMNS.values())


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("I / 2", 2),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("I / 0", None),
        ("2147483647 + I", -2147483644),
        ("D / 0", float("inf")),
        ("N + 1", None),
        ("DEC * 2", Decimal("3.00")),
        ("DEC / 3.0", Decimal("0.500000")),
        ("DEC / 0.7", None),
        ("N = 1", False),
        ("N <> 1", False),
        ("NOT (N = 1)", True),
        ("N IS DISTINCT FROM 1", True),
        ("N IS NOT DISTINCT FROM N", True),
        ("N IS NULL AND I IS NOT NULL", True),
        ("B OR I = 5", None),
        ("I = 5 OR B", True),
        ("I = 6 AND B", False),
        ("NOT B", None),
        ("N IN (1, 2)", False),
        ("N NOT IN (1, 2)", True),
        ("I IN (1, '5')", True),
        ("I IN (N, I)", True),
        ("I BETWEEN 5 AND 6", True),
        ("I NOT BETWEEN 5 AND 6", False),
        ("S LIKE 'h%'", True),
        ("S LIKE '%l_o'", True),
        ("S LIKE 'H%'", False),
        ("S LIKE 'ell'", False),
        ("S LIKE 'h!%' ESCAPE '!'", False),
        ("'a%b' LIKE 'a!%b' ESCAPE '!'", True),
        ("S LIKE 'x!' ESCAPE '!'", None),
        ("CASE WHEN I > 9 THEN 'big' WHEN I > 1 THEN 'some' END", "some"),
        ("CASE WHEN N > 9 THEN 'big' END", None),
        ("CASE WHEN B THEN 1 ELSE 2 END", None),
        ("CASE WHEN I = 5 THEN 1 ELSE 1 / 0 END", 1),
        ("A[1]", 1),
        ("A[-1]", 3),
        ("A[0]", None),
        ("A[4]", None),
        ("M['k']", 9),
        ("M['x']", None),
        ("ST->F", None),
        ("ARRAY[I, I / 0]", [5, None]),
        ("MAP('a' := I / 0)", {"a": None}),
        ("STRUCT(X := I / 0, Y := S)", (None, "hello")),
        ("COALESCE(I / 0, 7)", 7),
        ("D > DEC", True),
        ("'\U00010000' < '\uffff'", True),
        ("'a' < 'b'", True),
        ("TO_BYTES('80', 'hex') < TO_BYTES('01', 'hex')", True),
        ("GREATEST(TO_BYTES('80', 'hex'), TO_BYTES('01', 'hex'))", b"\x01"),
    ],
)
def test_operators(expression: str, expected: Any) -> None:
    assert evaluate(expression, **COLUMNS) == expected


@pytest.mark.parametrize(
    ("kind", "value", "target", "expected"),
    [
        ("DOUBLE", 1.0, "STRING", "1.0"),
        ("DOUBLE", 1e10, "STRING", "1.0E10"),
        ("DECIMAL(6,2)", Decimal("12.30"), "STRING", "12.30"),
        ("BOOLEAN", True, "STRING", "true"),
        ("TIMESTAMP", 1, "STRING", "1970-01-01T00:00:00.001"),
        ("DATE", -1, "STRING", "1969-12-31"),
        ("TIME", 36_900_000, "STRING", "10:15"),
        ("ARRAY<INT>", [1, None], "STRING", "[1, null]"),
        ("MAP<STRING, INT>", {"k": 1}, "STRING", "{k=1}"),
        ("STRUCT<F INT>", (1,), "STRING", "Struct{F=1}"),
        ("STRING", "YE", "BOOLEAN", True),
        ("STRING", "f", "BOOLEAN", False),
        ("STRING", " 12 ", "INT", 12),
        ("STRING", "1.5", "INT", None),
        ("STRING", "99999999999", "INT", None),
        ("STRING", "1e3", "DOUBLE", 1000.0),
        ("STRING", "NaN", "DOUBLE", None),
        ("STRING", "1.255", "DECIMAL(3,2)", Decimal("1.26")),
        ("STRING", "100", "DECIMAL(3,2)", None),
        ("STRING", "IQ==", "BYTES", b"!"),
        ("STRING", "2020", "DATE", 18262),
        ("STRING", "2020-01-01T01:00+01:00", "TIMESTAMP", 1_577_836_800_000),
        ("STRING", "10:15", "TIME", 36_900_000),
        ("STRING", "nonsense", "TIMESTAMP", None),
        ("BIGINT", 2**31, "INT", -(2**31)),
        ("DOUBLE", 1e20, "INT", 2**31 - 1),
        ("DOUBLE", -1.9, "BIGINT", -1),
        ("DOUBLE", 1.25, "DECIMAL(2,1)", Decimal("1.3")),
        ("DECIMAL(4,2)", Decimal("-1.99"), "INT", -1),
        ("TIMESTAMP", 86_400_001, "DATE", 1),
        ("TIMESTAMP", 86_400_001, "TIME", 1),
        ("DATE", 1, "TIMESTAMP", 86_400_000),
        ("ARRAY<BIGINT>", [1, None], "ARRAY<STRING>", ["1", None]),
        ("MAP<STRING, STRING>", {"a": "1"}, "MAP<STRING, INT>", {"a": 1}),
        ("STRUCT<A INT, B INT>", (1, 2), "STRUCT<B STRING, C INT>", ("2", None)),
        ("INT", None, "STRING", None),
    ],
)
def test_casts(kind: str, value: Any, target: str, expected: Any) -> None:
    assert evaluate(f"CAST(V AS {target})", V=(kind, value)) == expected


def test_a_failing_item_leaves_the_others_alone_and_is_logged() -> None:
    log = ListLog()
    items = [typed_select(parse_expression(text), scope_of(COLUMNS)) for text in ("I / 0", "I + 1")]
    assert compile_row(items, log, labels=["`X`", "`Y`"])(ROW) == (None, 6)
    assert log.entries == [("`X`", "division by zero")]


def test_a_failing_condition_drops_the_row() -> None:
    log = ListLog()
    condition = typed_condition(parse_expression("I / 0 = 1"), scope_of(COLUMNS), "WHERE")
    assert compile_filter(condition, log)(ROW) is False
    assert log.entries == [("WHERE", "division by zero")]


def test_a_projection_filters_first() -> None:
    items = [typed_select(parse_expression("I + 1"), scope_of(COLUMNS))]
    kept = typed_condition(parse_expression("I > 1"), scope_of(COLUMNS), "WHERE")
    dropped = typed_condition(parse_expression("I > 10"), scope_of(COLUMNS), "WHERE")
    assert compile_projection(kept, items)(ROW) == (6,)
    assert compile_projection(dropped, items)(ROW) is None


@pytest.mark.parametrize(
    "step",
    ["s || s", "s + s", "JSON_CONCAT(s, s)", "ENCODE(s, 'utf8', 'hex')", "TO_JSON_STRING(s)", "REPLACE(s, '1', s)"],
)
def test_values_that_double_with_each_step_are_stopped(step: str) -> None:
    log = ListLog()
    assert evaluate(f"REDUCE(GENERATE_SERIES(1, 500), '[\"11\"]', (s, x) => {step})", log) is None
    assert len(log.entries) >= 1


def test_lambdas_within_lambdas_are_stopped() -> None:
    log = ListLog()
    inner = "REDUCE(GENERATE_SERIES(1, 100000), 0, (s, y) => s + y)"
    assert evaluate(f"TRANSFORM(GENERATE_SERIES(1, 100000), x => {inner})", log) is None
    assert "lambdas" in log.entries[0][1]
    assert evaluate("TRANSFORM(GENERATE_SERIES(1, 3), x => x)") == [1, 2, 3]


def test_arrays_that_double_with_each_step_are_stopped() -> None:
    log = ListLog()
    assert evaluate("REDUCE(GENERATE_SERIES(1, 500), ARRAY[1], (s, x) => ARRAY_CONCAT(s, s))", log) is None
    assert "elements" in log.entries[0][1]


def test_no_items_give_an_empty_row() -> None:
    assert compile_row([])(ROW) == ()


def test_text_of_the_user_never_becomes_source() -> None:
    hostile = '\'); import os; os.abort(); (\'"""\\'
    items = [typed_select(parse_expression("S + S"), scope_of({"S": ("STRING", "")}))]
    assert compile_row(items)((hostile,)) == (hostile * 2,)
    quoted = hostile.replace("'", "''")
    assert evaluate(f"'{quoted}'") == hostile
    assert compile_value(typed_select(parse_expression(f"STRUCT(`{hostile}` := 1)"), scope_of({})))(()) == (1,)
