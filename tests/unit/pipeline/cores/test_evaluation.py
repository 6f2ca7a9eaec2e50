"""What expressions give on one record; nulls are SQL's."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.pipeline.cores.evaluation import _LENIENT, _STRICT, compile_expression
from moldau.pipeline.dsl import expression_functions as f
from moldau.pipeline.dsl.expressions import aggregate, call, col, expression_of, key, lit, value
from moldau.pipeline.ir import types
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.expressions import FUNCTIONS
from moldau.pipeline.ir.types import Primitive

RECORD = {"likes": 11, "text": " Hello World ", "tags": ["a", "b"], "none": None, "half": 2.5, "by": {"n": 7}}


def result(term: Any, **arguments: Any) -> Any:
    arguments = arguments or {"key": "k", "value": RECORD}
    return compile_expression(expression_of(term), tuple(arguments))(*arguments.values())


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (value / 2, -3.5),
        (value // 2, -4),
        (value % 2, Decimal(1)),
        (value // 0, None),
        (-15 // value, 2),
        (15 % value, Decimal(-6)),
    ],
)
def test_decimals_are_divided_as_other_numbers_are(term: Any, expected: Any) -> None:
    found = result(term, value=Decimal(-7))
    assert (type(found), found) == (type(expected), expected)


def test_a_quotient_rounded_down_is_a_whole_number() -> None:
    assert type(result(col("half") // 2)) is int


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (key, "k"),
        (col("likes") > 10, True),
        (col("none") > 10, None),
        (col("likes") == 11, True),
        (col("likes") != 11, False),
        (col("likes") + 1, 12),
        (1 + col("likes"), 12),
        (20 - col("likes"), 9),
        (2 * col("likes"), 22),
        (22 / col("likes"), 2.0),
        (25 // col("likes"), 2),
        (25 % col("likes"), 3),
        (-7 % lit(3), 2),
        (col("half") // 2, 1),
        (-col("half") // 2, -2),
        (col("likes") / 0, None),
        (col("likes") // 0, None),
        (col("likes") % 0, None),
        (-col("likes"), -11),
        (key + "!", "k!"),
        (col("by")["n"], 7),
        (col("none")["n"], None),
        (col("nowhere"), None),
        (col("tags")[1], "b"),
        (col("tags")[2], None),
        (col("tags")[-1], None),
        (col("by")[lit("n")], 7),
        (f.split(f.lower(f.trim(col("text"))), " "), ["hello", "world"]),
        (f.upper(key), "K"),
        (f.length(col("tags")), 2),
        (f.substring(lit("abcdef"), 2, 3), "bcd"),
        (f.substring(lit("abcdef"), 0, 2), "ab"),
        (f.substring(lit("abcdef"), -2, 5), "ef"),
        (f.substring(lit("abc"), -5, 2), ""),
        (f.concat(key, "-", key), "k-k"),
        (f.concat(key, col("none")), None),
        (f.replace(lit("a.b.c"), ".", "/"), "a/b/c"),
        (lit("hello").contains("ell"), True),
        (col("tags").contains("z"), False),
        (lit("hello").starts_with("he"), True),
        (lit("hello").ends_with("he"), False),
        (f.absolute(lit(-3)), 3),
        (f.rounded(col("half")), 3.0),
        (f.rounded(lit(-2.5)), -3.0),
        (f.rounded(lit(2.345), 2), 2.35),
        (f.rounded(lit(7), 1), 7),
        (f.floor(col("half")), 2),
        (f.ceil(col("half")), 3),
        (f.coalesce(col("none"), col("nowhere"), 5), 5),
        (f.coalesce(col("none")), None),
        (f.least(3, col("none"), 1), 1),
        (f.greatest(col("none")), None),
        (f.when(col("likes") > 10, "hot", "cold"), "hot"),
        (f.when(col("none") > 10, "hot", "cold"), "cold"),
        (col("likes").is_in(1, 11), True),
        (col("likes").is_in(1, None), None),
        (col("likes").is_in(1, 2), False),
        (col("none").is_in(1), None),
        (col("none").is_null(), True),
        (col("likes").is_not_null(), True),
        ({"a": col("likes"), "b": None}, {"a": 11, "b": None}),
        (f.struct(a=1), {"a": 1}),
        ([col("likes"), 1], [11, 1]),
        (f.array(1, 2), [1, 2]),
        ((col("likes"), key), (11, "k")),
    ],
)
def test_an_expression_has_its_value(term: Any, expected: Any) -> None:
    assert result(term) == expected
    assert type(result(term)) is type(expected)


T, F, N = True, False, None


@pytest.mark.parametrize(
    ("one", "other", "both", "either"),
    [(T, T, T, T), (T, F, F, T), (F, T, F, T), (F, F, F, F), (T, N, N, T), (N, T, N, T), (F, N, F, N), (N, F, F, N),
     (N, N, N, N)],
)  # fmt: skip
def test_and_and_or_know_three_values(one: Any, other: Any, both: Any, either: Any) -> None:
    assert result(lit(one) & lit(other)) is both
    assert result(lit(one) | lit(other)) is either


@pytest.mark.parametrize(
    ("given", "data_type", "expected"),
    [
        ("12", Primitive.BIGINT, 12),
        ("12x", Primitive.BIGINT, None),
        (3.9, Primitive.BIGINT, 3),
        (2**31, Primitive.INTEGER, None),
        (2**63, Primitive.BIGINT, None),
        (float("inf"), Primitive.BIGINT, None),
        ("1.5", Primitive.DOUBLE, 1.5),
        (7, Primitive.STRING, "7"),
        (True, Primitive.STRING, "true"),
        (b"ab", Primitive.STRING, "ab"),
        ("ab", Primitive.BYTES, b"ab"),
        (" TRUE", Primitive.BOOLEAN, True),
        ("yes", Primitive.BOOLEAN, None),
        (0, Primitive.BOOLEAN, False),
        ("2.345", types.Decimal(5, 2), Decimal("2.35")),
        ("x", types.Decimal(5, 2), None),
        (None, Primitive.BIGINT, None),
    ],
)
def test_a_cast_gives_the_type_or_null(given: Any, data_type: Any, expected: Any) -> None:
    assert result(lit(given).cast(data_type)) == expected


def test_fields_of_an_object_are_its_attributes() -> None:
    assert result(value["likes"] + 1, value=SimpleNamespace(likes=4)) == 5


def test_arguments_go_by_the_names_they_are_given() -> None:
    assert result(aggregate + value, aggregate=3, value=4) == 7


def test_what_cannot_be_computed_is_refused_before_the_first_record() -> None:
    with pytest.raises(TopologyError, match="aggregate is not known here, only key, value"):
        compile_expression(aggregate.expression, ("key", "value"))
    with pytest.raises(TopologyError, match="no function called FROBNICATE"):
        compile_expression(call("FROBNICATE", 1).expression, ())
    with pytest.raises(TopologyError, match="cast"):
        compile_expression(value.cast(Primitive.TIMESTAMP).expression, ("value",))


def test_every_function_that_is_promised_can_be_computed() -> None:
    assert set(FUNCTIONS) == {*_LENIENT, *_STRICT}
