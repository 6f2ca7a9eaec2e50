from __future__ import annotations

import pytest
from tests.unit.ksql.queries.test_pull_keys import table

from moldau.formats.types import BIGINT, DOUBLE, INTEGER, STRING, SqlType
from moldau.ksql.queries.prepared_pulls import key_places, shape_of
from moldau.pipeline.ksql.syntax.parser import parse
from moldau.pipeline.ksql.syntax.statements import Query


def keys(where: str, *types: SqlType) -> object:
    """The keys that a query asks for as one of its shape; None if it has to be planned."""
    text = f"SELECT * FROM T WHERE {where};"
    [query] = parse(text)
    assert isinstance(query, Query)
    shape, places = shape_of(text), key_places(query, table(*types))
    return None if shape is None or places is None else places.keys(shape.literals)


def test_queries_for_other_keys_have_the_same_shape() -> None:
    first, second = (shape_of(f"SELECT N FROM T WHERE ID = '{key}' LIMIT 3;") for key in ("a", "it''s"))
    assert first is not None
    assert second is not None
    assert first.words == second.words
    assert (first.literals, second.literals) == (("'a'",), ("'it''s'",))


@pytest.mark.parametrize(
    "other",
    [
        "SELECT 'b' FROM T WHERE ID = 'a';",
        "SELECT 'a' FROM T WHERE ID = 3;",
        "SELECT 'a' FROM T WHERE `ID` = 'a';",
        "SELECT 'a' FROM T WHERE ID = 'a' LIMIT 1;",
    ],
)
def test_other_words_are_another_shape(other: str) -> None:
    first, second = shape_of("SELECT 'a' FROM T WHERE ID = 'a';"), shape_of(other)
    assert first is not None
    assert second is not None
    assert first.words != second.words


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM T;",
        "SELECT * FROM T WHERE ID = ${key};",
        "SELECT * FROM T WHERE ID = '${key}';",
        "SELECT * FROM T WHERE ID = -1;",
        "SELECT * FROM T WHERE ID IN (" + ", ".join(["'a'"] * 2000) + ");",
    ],
)
def test_texts_without_a_shape(text: str) -> None:
    assert shape_of(text) is None


def test_keys_are_read_from_the_literals() -> None:
    assert keys("K0 = 'it''s'", STRING) == [("it's",)]
    assert keys("3 = K0", INTEGER) == [(3,)]
    assert keys("K0 IN ('a', 'b')", STRING) == [("a",), ("b",)]
    assert keys("K1 = 'x' AND K0 = 7", BIGINT, STRING) == [(7, "x")]


@pytest.mark.parametrize(
    ("where", "types"),
    [
        ("K0 > 'a'", (STRING,)),
        ("NOT K0 = 'a'", (STRING,)),
        ("K0 NOT IN ('a')", (STRING,)),
        ("K0 = 'a' OR K0 = 'b'", (STRING,)),
        ("K0 = 'a' AND K0 = 'b'", (STRING,)),
        ("K0 = 'a' AND V = 1", (STRING,)),
        ("K0 = 'a'", (STRING, STRING)),
        ("K0 = 'a'", (INTEGER,)),
        ("K0 = 1", (STRING,)),
        ("K0 = 1", (DOUBLE,)),
        ("K0 IN (1, '2')", (INTEGER,)),
        ("K0 = UCASE('a')", (STRING,)),
        ("K0 = 3000000000", (INTEGER,)),
    ],
)
def test_other_conditions_are_planned(where: str, types: tuple[SqlType, ...]) -> None:
    assert keys(where, *types) is None
