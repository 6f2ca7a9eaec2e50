"""Statements that are huge, deep or wide, or against what is in use: an answer with a code, and never a hang."""

from __future__ import annotations

import httpx
import pytest
from tests.integration.ksql.talk import filled_stream, name, query, refused, run, stream

MEGABYTE = 1024 * 1024


def test_a_statement_of_5_mb_that_is_right_is_carried_out(ksql: httpx.Client) -> None:
    made = stream(ksql)
    text = "x" * (5 * MEGABYTE)
    answer = ksql.post("/ksql", json={"ksql": f"-- {text}\nINSERT INTO {made} VALUES (1, 'a');"})
    assert (answer.status_code, answer.text) == (200, "[]")


def test_a_value_of_5_mb_is_more_than_a_topic_takes(ksql: httpx.Client) -> None:
    made = stream(ksql)
    status, error = refused(ksql, f"INSERT INTO {made} VALUES (1, '{'x' * (5 * MEGABYTE)}');")
    assert status in (400, 500)
    assert made in error["message"]
    assert len(error["message"]) < 10_000


def test_a_statement_of_5_mb_of_columns_is_refused_with_its_size(ksql: httpx.Client) -> None:
    made = stream(ksql)
    columns = ", ".join(["V"] * (5 * MEGABYTE // 3))
    status, error = refused(ksql, f"CREATE STREAM {name('X')} AS SELECT {columns} FORM {made};")
    assert (status, error["error_code"]) == (400, 40001)
    assert "too large to parse: it has 3," in error["message"]
    assert "Split it into several statements" in error["message"]
    assert len(error["message"]) + len(error["statementText"]) < 10_000


def test_500_columns(ksql: httpx.Client) -> None:
    wide, made = name("WIDE"), name("NARROW")
    columns = ", ".join(f"C{number} INT" for number in range(500))
    run(ksql, f"CREATE STREAM {wide} ({columns}) WITH (kafka_topic='{wide}', value_format='JSON', partitions=1);")
    run(ksql, f"INSERT INTO {wide} VALUES ({', '.join(map(str, range(500)))});")
    [described] = run(ksql, f"DESCRIBE {wide};")
    assert len(described["sourceDescription"]["fields"]) == 500
    run(ksql, f"CREATE STREAM {made} AS SELECT * FROM {wide};")
    total = " + ".join(f"C{number}" for number in range(100))
    [_, row, *_] = query(ksql, f"SELECT *, {total} AS T FROM {wide} EMIT CHANGES LIMIT 1;")
    assert row["row"]["columns"] == [*range(500), sum(range(100))]


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 1000 + "ID" + ")" * 1000,
        "ABS(" * 1000 + "ID" + ")" * 1000,
        "- " * 1000 + "ID",
        "NOT " * 1000 + "(ID = 1)",
        "CASE WHEN ID = 1 THEN " * 1000 + "1" + " END" * 1000,
        "ARRAY[" * 1000 + "ID" + "]" * 1000,
        "CAST(NULL AS " + "ARRAY<" * 1000 + "INT" + ">" * 1000 + ")",
    ],
    ids=["parentheses", "calls", "signs", "negations", "cases", "arrays", "types"],
)
def test_nesting_of_1000_levels_is_refused(ksql: httpx.Client, expression: str) -> None:
    source = stream(ksql)
    status, error = refused(ksql, f"CREATE STREAM {name('X')} AS SELECT {expression} AS X FROM {source};")
    assert (status, error["error_code"]) == (400, 40001)
    assert "nested" in error["message"]
    answer = ksql.post("/query", json={"ksql": f"SELECT {expression} AS X FROM {source} EMIT CHANGES;"})
    assert answer.status_code == 400
    assert "nested" in answer.json()["message"]


def test_what_is_in_use_is_not_dropped(ksql: httpx.Client) -> None:
    source, made = filled_stream(ksql), name("READER")
    [created] = run(ksql, f"CREATE STREAM {made} AS SELECT * FROM {source};")
    query_id = created["commandStatus"]["queryId"]
    status, error = refused(ksql, f"DROP STREAM {source};")
    assert (status, error["error_code"]) == (400, 40001)
    assert query_id in error["message"]
    assert "terminate them before dropping" in error["message"]
    inserting = run(ksql, f"INSERT INTO {made} SELECT * FROM {source};")[0]["commandStatus"]["queryId"]
    assert inserting in refused(ksql, f"DROP STREAM {made};")[1]["message"]
    run(ksql, f"TERMINATE {inserting}; DROP STREAM {made}; DROP STREAM {source};")
