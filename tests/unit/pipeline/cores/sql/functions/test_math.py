from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from tests.unit.pipeline.cores.sql.evaluating import evaluate, type_of

from moldau.formats.types import BIGINT, DOUBLE, INTEGER, DecimalType
from moldau.pipeline.cores.sql.processing_log import ListLog


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("ABS(-7)", 7),
        ("ABS(-2.50)", Decimal("2.50")),
        ("ABS(CAST(-3 AS BIGINT))", 3),
        ("ABS(-1.5E0)", 1.5),
        ("SIGN(-4)", -1),
        ("SIGN(0E0)", 0),
        ("CEIL(1.2)", Decimal("2.0")),
        ("CEIL(-1.5E0)", -1.0),
        ("FLOOR(-1.2)", Decimal("-2.0")),
        ("FLOOR(7)", 7),
        ("ROUND(2.5E0)", 3),
        ("ROUND(-2.5E0)", -2),
        ("ROUND(1.25E0, 1)", 1.3),
        ("ROUND(-1.25E0, 1)", -1.2),
        ("ROUND(1250E0, -2)", 1300.0),
        ("ROUND(2.567)", Decimal(3)),
        ("ROUND(2.567, 1)", Decimal("2.600")),
        ("ROUND(5)", 5),
        ("TRUNC(-1.7E0)", -1),
        ("TRUNC(-1.79E0, 1)", -1.7),
        ("TRUNC(2.567, 2)", Decimal("2.560")),
        ("TRUNC(2.567)", Decimal(2)),
        ("TRUNC(-0.567)", Decimal(0)),
        ("TRUNC(-1.1E0, -1)", 0.0),
        ("ROUND(-0.1)", Decimal(0)),
        ("-(1.0 - 1.0)", Decimal("0.0")),
        ("CEIL(-0.5)", Decimal("0.0")),
        ("SQRT(9)", 3.0),
        ("CBRT(-27)", -3.0),
        ("POWER(2, 10)", 1024.0),
        ("POWER(2, 5000)", math.inf),
        ("EXP(0)", 1.0),
        ("LN(1)", 0.0),
        ("LOG(2, 8)", 3.0),
        ("LOG(0)", -math.inf),
        ("PI()", math.pi),
        ("COT(0)", math.inf),
        ("ATAN2(1, 1)", math.pi / 4),
        ("COS(0)", 1.0),
        ("SIN(0)", 0.0),
        ("TAN(0)", 0.0),
        ("COSH(0)", 1.0),
        ("SINH(0)", 0.0),
        ("TANH(0)", 0.0),
        ("ACOS(1)", 0.0),
        ("ASIN(0)", 0.0),
        ("ATAN(0)", 0.0),
        ("DEGREES(0)", 0.0),
        ("RADIANS(180)", math.pi),
        ("GREATEST(1, 5, 3)", 5),
        ("GREATEST('a', 'c', 'b')", "c"),
        ("GREATEST(1.5, 2.25)", Decimal("2.25")),
        ("LEAST(1.50, 2.0)", Decimal("1.50")),
        ("LEAST(4, NULL, 2)", 2),
    ],
)
def test_functions_on_numbers(expression: str, expected: Any) -> None:
    found = evaluate(expression)
    assert found == expected
    assert type(found) is type(expected)
    assert str(found) == str(expected)
    if isinstance(expected, Decimal):
        assert found.as_tuple() == expected.as_tuple()


@pytest.mark.parametrize("expression", ["SQRT(-1)", "LN(-1)", "ACOS(2)", "ASIN(2)", "LOG(1, 5)", "LOG(-2, 5)"])
def test_outside_the_domain_is_nan(expression: str) -> None:
    assert math.isnan(evaluate(expression))


def test_types_of_results() -> None:
    assert type_of("ROUND(D)", D=("DECIMAL(6,2)", None)) == DecimalType(4, 0)
    assert type_of("ROUND(D, 1)", D=("DECIMAL(6,2)", None)) == DecimalType(6, 2)
    assert type_of("TRUNC(X)", X=("DOUBLE", None)) == BIGINT
    assert type_of("SIGN(X)", X=("DOUBLE", None)) == INTEGER
    assert type_of("FLOOR(X)", X=("DOUBLE", None)) == DOUBLE
    assert type_of("GREATEST(A, B)", A=("DECIMAL(4,1)", None), B=("DECIMAL(5,3)", None)) == DecimalType(6, 3)


def test_null_gives_null() -> None:
    assert evaluate("ABS(A)", A=("INT", None)) is None
    assert evaluate("POWER(A, 2)", A=("INT", None)) is None


def test_the_absolute_value_of_the_smallest_integer_wraps() -> None:
    assert evaluate("ABS(A)", A=("INT", -(2**31))) == -(2**31)


def test_random_is_below_one() -> None:
    assert all(0 <= evaluate("RANDOM()") < 1 for _ in range(20))


def test_distances_of_places() -> None:
    prague_to_vienna = evaluate("GEO_DISTANCE(50.0755, 14.4378, 48.2082, 16.3738)")
    assert 250 < prague_to_vienna < 253
    assert evaluate("GEO_DISTANCE(0, 0, 0, 0, 'MILE')") == 0.0


@pytest.mark.parametrize("expression", ["GEO_DISTANCE(91, 0, 0, 0)", "GEO_DISTANCE(0, 0, 0, 0, 'PARSEC')"])
def test_distances_of_impossible_places_fail(expression: str) -> None:
    log = ListLog()
    assert evaluate(expression, log) is None
    assert len(log.entries) == 1
