"""Types of expressions, as far as the types of the columns tell them."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.pipeline.dsl import expression_functions as f
from moldau.pipeline.dsl.expressions import expression_of, key, lit, value
from moldau.pipeline.ir.expressions import FUNCTIONS, columns_of
from moldau.pipeline.ir.inference import with_types
from moldau.pipeline.ir.types import Array, DataType, Decimal, Map, Primitive, Struct

TWEET = Struct(
    (
        ("likes", Primitive.INTEGER),
        ("text", Primitive.STRING),
        ("tags", Array(Primitive.STRING)),
        ("price", Decimal(10, 2)),
        ("counts", Map(Primitive.STRING, Primitive.BIGINT)),
        ("user", Struct((("name", Primitive.STRING),))),
    )
)


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (key, Primitive.STRING),
        (value["likes"], Primitive.INTEGER),
        (value["user"]["name"], Primitive.STRING),
        (value["missing"], None),
        (value["likes"] + 1, Primitive.BIGINT),
        (-value["likes"], Primitive.BIGINT),
        (value["likes"] * 0.5, Primitive.DOUBLE),
        (value["likes"] / 2, Primitive.DOUBLE),
        (value["likes"] // 2, Primitive.BIGINT),
        (value["missing"] / 2, None),
        (value["price"] + 0.5, Primitive.DOUBLE),
        (value["text"] + "!", Primitive.STRING),
        (value["missing"] > 10, Primitive.BOOLEAN),
        ((value["likes"] > 10) & ~value["text"].is_null(), Primitive.BOOLEAN),
        (f.split(value["text"], " "), Array(Primitive.STRING)),
        (value["tags"][0], Primitive.STRING),
        (value["counts"][key], Primitive.BIGINT),
        (f.when(value["likes"] > 1, "many", "one"), Primitive.STRING),
        (f.when(value["likes"] > 1, "many", 1), None),
        (f.coalesce(value["likes"], 0), Primitive.BIGINT),
        (f.upper(value["missing"]), Primitive.STRING),
        (f.length(value["text"]), Primitive.BIGINT),
        (value["text"].cast(Primitive.DOUBLE), Primitive.DOUBLE),
        ({"n": value["likes"], "t": value["text"]}, Struct((("n", Primitive.INTEGER), ("t", Primitive.STRING)))),
        ({"n": value["missing"]}, None),
        ([value["likes"], 5], Array(Primitive.BIGINT)),
        (lit(b"x"), Primitive.BYTES),
        (lit(None), None),
    ],
)
def test_a_type_follows_from_the_columns(term: Any, expected: DataType | None) -> None:
    assert with_types(expression_of(term), {"key": Primitive.STRING, "value": TWEET}).type == expected


def test_the_columns_an_expression_reads_are_known() -> None:
    assert columns_of(expression_of((key, value["a"] + value["b"]))) == {"key", "value"}
    assert columns_of(expression_of(5)) == set()


def test_every_function_says_what_it_means() -> None:
    assert all(FUNCTIONS.values())
