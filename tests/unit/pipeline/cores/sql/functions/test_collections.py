from __future__ import annotations

from typing import Any

import pytest
from tests.unit.pipeline.cores.sql.evaluating import evaluate, type_of

from moldau.pipeline.cores.sql.processing_log import ListLog

ARRAYS = {"A": ("ARRAY<INT>", [3, 1, None, 3]), "B": ("ARRAY<INT>", [1, 4]), "N": ("ARRAY<INT>", None)}
MAPS = {"M": ("MAP<STRING, INT>", {"b": 2, "a": 1}), "N": ("MAP<STRING, INT>", None)}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("ARRAY_DISTINCT(A)", [3, 1, None]),
        ("ARRAY_EXCEPT(A, B)", [3, None]),
        ("ARRAY_INTERSECT(A, B)", [1]),
        ("ARRAY_UNION(A, B)", [3, 1, None, 4]),
        ("ARRAY_UNION(A, N)", None),
        ("ARRAY_CONCAT(A, B)", [3, 1, None, 3, 1, 4]),
        ("ARRAY_CONCAT(N, B)", [1, 4]),
        ("ARRAY_CONTAINS(A, 1)", True),
        ("ARRAY_CONTAINS(A, NULL)", True),
        ("ARRAY_CONTAINS(B, NULL)", False),
        ("ARRAY_REMOVE(A, 3)", [1, None]),
        ("ARRAY_REMOVE(A, NULL)", [3, 1, 3]),
        ("ARRAY_LENGTH(A)", 4),
        ("ARRAY_MAX(A)", 3),
        ("ARRAY_MIN(A)", 1),
        ("ARRAY_MAX(ARRAY['a', 'c', 'b'])", "c"),
        ("ARRAY_SORT(A)", [1, 3, 3, None]),
        ("ARRAY_SORT(A, 'DESC')", [3, 3, 1, None]),
        ("ARRAY_SORT(A, 'sideways')", None),
        ("ARRAY_JOIN(A)", "3,1,null,3"),
        ("ARRAY_JOIN(B, '-')", "1-4"),
        ("ARRAY_JOIN(ARRAY[1.50, 2.25])", "1.50,2.25"),
        ("SLICE(A, 2, 3)", [1, None]),
        ("SLICE(A, 3, 9)", None),
        ("GENERATE_SERIES(1, 4)", [1, 2, 3, 4]),
        ("GENERATE_SERIES(4, 1)", [4, 3, 2, 1]),
        ("GENERATE_SERIES(1, 9, 4)", [1, 5, 9]),
        ("GENERATE_SERIES(1, 9, -1)", None),
        ("GENERATE_SERIES(1, 2000000000)", None),
        ("FILTER(B, x => x > 1)", [4]),
        ("FILTER(A, x => x IS NOT NULL)", [3, 1, 3]),
        ("TRANSFORM(B, x => x * 2)", [2, 8]),
        ("TRANSFORM(A, x => x * 2)", None),
        ("TRANSFORM(N, x => x * 2)", None),
        ("REDUCE(B, 10, (s, x) => s + x)", 15),
        ("REDUCE(N, 10, (s, x) => s + x)", 10),
        ("TRANSFORM(B, x => TRANSFORM(ARRAY[10, 20], y => x + y))", [[11, 21], [14, 24]]),
    ],
)
def test_functions_on_arrays(expression: str, expected: Any) -> None:
    assert evaluate(expression, **ARRAYS) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MAP_KEYS(M)", ["a", "b"]),
        ("MAP_VALUES(M)", [1, 2]),
        ("MAP_UNION(M, MAP('a' := 9))", {"b": 2, "a": 9}),
        ("MAP_UNION(M, N)", {"b": 2, "a": 1}),
        ("AS_MAP(ARRAY['x', 'y'], ARRAY[1])", {"x": 1, "y": None}),
        ("ENTRIES(M, true)", [("a", 1), ("b", 2)]),
        ("FILTER(M, (k, v) => v > 1)", {"b": 2}),
        ("TRANSFORM(M, (k, v) => UCASE(k), (k, v) => v + 1)", {"B": 3, "A": 2}),
        ("TRANSFORM(M, (k, v) => 'same', (k, v) => v)", None),
        ("REDUCE(M, 0, (s, k, v) => s + v)", 3),
    ],
)
def test_functions_on_maps(expression: str, expected: Any) -> None:
    assert evaluate(expression, **MAPS) == expected


def test_maps_are_visited_in_the_order_of_javas_hash_map() -> None:
    entries = ("MAP<STRING, INT>", {"yes, thanks": 1, "nope": 2, "sure, yeah": 3})
    assert evaluate("MAP_KEYS(M)", M=entries) == ["yes, thanks", "sure, yeah", "nope"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("COALESCE(A, B, 7)", 2),
        ("COALESCE(A, A)", None),
        ("IFNULL(A, 7)", 7),
        ("IFNULL(B, 7)", 2),
        ("NULLIF(B, 2)", None),
        ("NULLIF(B, 3)", 2),
        ("AS_VALUE(B)", 2),
    ],
)
def test_functions_on_nulls(expression: str, expected: Any) -> None:
    assert evaluate(expression, A=("INT", None), B=("INT", 2)) == expected


def test_types_follow_the_elements() -> None:
    assert str(type_of("ENTRIES(M, true)", **MAPS)) == "ARRAY<STRUCT<`K` STRING, `V` INTEGER>>"
    assert str(type_of("TRANSFORM(A, x => CAST(x AS STRING))", **ARRAYS)) == "ARRAY<STRING>"
    assert str(type_of("ARRAY_MAX(ARRAY[1.50])")) == "DECIMAL(3, 2)"


def test_an_element_for_which_a_lambda_fails_makes_the_item_null() -> None:
    log = ListLog()
    assert evaluate("TRANSFORM(ARRAY[1, 0], x => 10 / x)", log) is None
    assert log.entries == [("item 1", "division by zero")]
