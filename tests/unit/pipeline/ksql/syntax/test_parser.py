"""The way in: several statements, their texts and places, and inputs that are made to break a parser."""

from __future__ import annotations

import pickle
import sys
import time

import pytest

from moldau.pipeline.ksql.syntax.errors import KsqlParseError
from moldau.pipeline.ksql.syntax.expressions import In, Location
from moldau.pipeline.ksql.syntax.parser import parse
from moldau.pipeline.ksql.syntax.statements import CreateAsSelect, CreateSource, Query


def test_each_statement_has_its_own_text_and_place() -> None:
    first, second = parse("-- the first\nSHOW TABLES ;\n\n  SHOW\n STREAMS; -- the end")

    assert (first.text, first.location) == ("SHOW TABLES ;", Location(2, 1))
    assert (second.text, second.location) == ("SHOW\n STREAMS;", Location(4, 3))


def test_no_statement_at_all() -> None:
    assert parse("") == parse(" -- nothing\n") == []


def test_the_last_semicolon_may_be_missing_where_that_is_allowed() -> None:
    first, second = parse("SHOW TABLES; SHOW STREAMS -- so far", allow_missing_semicolon=True)

    assert (first.text, second.text) == ("SHOW TABLES;", "SHOW STREAMS")
    with pytest.raises(KsqlParseError, match="missing ';' at '<EOF>'"):
        parse("SHOW TABLES; SHOW STREAMS")
    with pytest.raises(KsqlParseError, match="Expecting ';'"):
        parse("SHOW TABLES SHOW STREAMS;", allow_missing_semicolon=True)


def test_text_from_slides_is_accepted() -> None:
    (statement,) = parse("CREATE STREAM x WITH (PARTITIONS=1) AS \\\nSELECT a→b→c AS d, \\  \n  e FROM s;")

    assert isinstance(statement, CreateAsSelect)


def test_the_error_tells_place_token_and_statement() -> None:
    with pytest.raises(KsqlParseError) as refusal:
        parse("SHOW TABLES;\nSELECT a FROM where;")

    error = refusal.value
    assert error.message.startswith("line 2:15: Syntax Error\nSyntax error at or near 'where' at line 2:15")
    assert str(error) == f"{error.message}\nStatement: SHOW TABLES;\nSELECT a FROM where;"
    assert (error.location, error.token) == (Location(2, 15), "where")


def test_an_error_of_the_meaning_has_the_text_of_its_statement_alone() -> None:
    with pytest.raises(KsqlParseError) as refusal:
        parse("SHOW TABLES;\nSELECT a FROM s LIMIT 0.5;\nSHOW STREAMS;")

    assert refusal.value.statement == "SELECT a FROM s LIMIT 0.5;"


def test_the_error_survives_the_way_to_another_process() -> None:
    with pytest.raises(KsqlParseError) as refusal:
        parse("SELECT")

    copy = pickle.loads(pickle.dumps(refusal.value))
    assert (str(copy), copy.location, copy.token) == (str(refusal.value), Location(1, 7), "<EOF>")


def test_a_reserved_word_as_a_name_is_explained() -> None:
    with pytest.raises(KsqlParseError) as refusal:
        parse("SELECT STRUCT(values := 1) FROM s;")

    assert refusal.value.message == (
        "line 1:15: Syntax Error\nSyntax error at or near 'values' at line 1:15\n"
        '"values" is a reserved keyword: as a name, write it in back quotes, `VALUES`'
    )


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 1000 + "1" + ")" * 1000,
        "f(" * 1000 + "1" + ")" * 1000,
        "ARRAY[" * 1000 + "1" + "]" * 1000,
        "MAP(1 := " * 1000 + "1" + ")" * 1000,
        "STRUCT(a := " * 1000 + "1" + ")" * 1000,
        "CASE WHEN true THEN " * 1000 + "1" + " END" * 1000,
        "CASE " * 1000,
        "CAST(" * 1000 + "1" + " AS INT)" * 1000,
        "NOT " * 1000 + "true",
        "- " * 1000 + "a",
        "a" + "[1]" * 1000,
        "a" + "->b" * 1000,
        "1" + " + 1" * 1000,
        "'a'" + " || 'a'" * 1000,
        "1 + (" * 1000 + "1" + ")" * 1000,
        "f(1, x => " * 1000 + "1" + ")" * 1000,
        "a IN (" * 1000 + "1" + ")" * 1000,
        "(a OR (b AND " * 1000 + "c" + "))" * 1000,
    ],
)
def test_deep_nesting_is_refused_with_a_clear_error(expression: str) -> None:
    with pytest.raises(KsqlParseError, match="Statement is too large to parse") as refusal:
        parse(f"SELECT {expression} FROM s;")

    assert "at most 200 levels" in refusal.value.message


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 150 + "1" + ")" * 150,
        "f(" * 90 + "1" + ")" * 90,
        "1" + " + 1" * 190,
        "CASE WHEN a THEN " * 90 + "1" + " END" * 90,
        "1 + (" * 90 + "1" + ")" * 90,
    ],
)
def test_nesting_that_people_write_is_read(expression: str) -> None:
    assert len(parse(f"SELECT {expression} FROM s;")) == 1


def test_nested_explain_is_refused_with_a_clear_error() -> None:
    with pytest.raises(KsqlParseError, match="Statement is too large to parse"):
        parse("EXPLAIN " * 100_000 + "SHOW TABLES;")


def test_a_caller_that_is_deep_in_the_stack_gets_the_same_error() -> None:
    def descend(frames: int) -> None:
        if frames:
            descend(frames - 1)
        else:
            parse("SELECT " + "(" * 190 + "1" + ")" * 190 + " FROM s;")

    with pytest.raises(KsqlParseError, match="Statement is too large to parse"):
        descend(sys.getrecursionlimit() - 350)


def test_a_statement_of_five_megabytes_takes_linear_time() -> None:
    values = ",".join(map(str, range(700_000)))
    started = time.perf_counter()

    (statement,) = parse(f"SELECT * FROM s WHERE a IN ({values});")

    assert time.perf_counter() - started < 60  # takes about 5 s; quadratic time would take hours
    assert isinstance(statement, Query)
    assert isinstance(statement.where, In)
    assert len(statement.where.options) == 700_000


@pytest.mark.parametrize(
    "text",
    [
        "'" * 5_000_001,
        "/*" * 1_000_000,
        "\\ " * 1_000_000,
        "1" * 5_000_000,
        "`" * 999_999,
        "(" * 1_000_000,
        "x 'a" + "b" * 999_999,
    ],
)
def test_megabytes_of_noise_are_refused_at_once(text: str) -> None:
    with pytest.raises(KsqlParseError) as refusal:
        parse(f"SELECT {text}")

    assert len(refusal.value.message) < 1000


def test_five_hundred_columns() -> None:
    columns = ", ".join(f"c{number} STRUCT<a INT, b ARRAY<STRING>>" for number in range(500))
    (statement,) = parse(f"CREATE STREAM s ({columns}) WITH (kafka_topic='t');")

    assert isinstance(statement, CreateSource)
    assert len(statement.columns) == 500
