"""POST /inserts-stream: rows that arrive one after the other, each acknowledged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.integration.ksql.talk import name, query, run, stream
from tests.ksql_cases.rest_runner import RestServer


@pytest.fixture(params=["HTTP/1.1", "HTTP/2"])
def client(server: RestServer, request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    is_second = request.param == "HTTP/2"
    with httpx.Client(base_url=server.url, http1=not is_second, http2=is_second, timeout=30) as client:
        yield client


def lines(*documents: Any) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in documents)


def test_rows_are_acknowledged_and_stored(ksql: httpx.Client, client: httpx.Client) -> None:
    made = stream(ksql)
    answer = client.post(
        "/inserts-stream", content=lines({"target": made.lower()}, {"id": 1, "v": "a"}, {"ID": 2, "V": None})
    )
    assert [json.loads(line) for line in answer.text.splitlines()] == [
        {"status": "ok", "seq": 0},
        {"status": "ok", "seq": 1},
    ]
    _, *rows, _ = query(ksql, f"SELECT * FROM {made};")
    assert [one["row"]["columns"] for one in rows] == [[1, "a"], [2, None]]


def test_rows_with_nested_values(ksql: httpx.Client, client: httpx.Client) -> None:
    made = name("N")
    columns = "K INT KEY, S STRUCT<A INT, B ARRAY<STRING>>, M MAP<STRING, DOUBLE>"
    run(ksql, f"CREATE STREAM {made} ({columns}) WITH (kafka_topic='{made}', value_format='JSON', partitions=1);")
    row = {"K": 1, "S": {"a": 5, "B": ["x", "y"]}, "M": {"k": 1.5}}
    answer = client.post("/inserts-stream", content=lines({"target": made}, row, {"K": 2, "S": {"C": 1}}))
    first, error = [json.loads(line) for line in answer.text.splitlines()]
    assert first == {"status": "ok", "seq": 0}
    assert "C is not a field of STRUCT<" in error["message"]
    _, found, _ = query(ksql, f"SELECT * FROM {made};")
    assert found["row"]["columns"] == [1, {"A": 5, "B": ["x", "y"]}, {"k": 1.5}]


def test_acknowledgements_as_an_array(ksql: httpx.Client, client: httpx.Client) -> None:
    made = stream(ksql)
    content = lines({"target": made}, {"ID": 1})
    answer = client.post("/inserts-stream", content=content, headers={"accept": "application/json"})
    assert answer.json() == [{"status": "ok", "seq": 0}]


@pytest.mark.parametrize("row", [{"NOBODY": 1}, {"ID": "text"}, {"ID": [1]}, {"V": {"a": 1}}, 5])
def test_the_first_wrong_row_ends_the_stream(ksql: httpx.Client, client: httpx.Client, row: Any) -> None:
    made = stream(ksql)
    answer = client.post("/inserts-stream", content=lines({"target": made}, {"ID": 1}, row, {"ID": 3}))
    first, error = [json.loads(line) for line in answer.text.splitlines()]
    assert first == {"status": "ok", "seq": 0}
    assert {"status": "error", "seq": 1, "error_code": 40000, "@type": "generic_error"}.items() <= error.items()


def test_targets_that_take_no_rows(ksql: httpx.Client, client: httpx.Client) -> None:
    table = name("T")
    run(ksql, f"CREATE TABLE {table} (K INT PRIMARY KEY) WITH (kafka_topic='{table}', format='JSON', partitions=1);")
    for head in ({"target": "NOBODY"}, {"target": table}, {"goal": 1}, []):
        answer = client.post("/inserts-stream", content=lines(head, {"ID": 1}))
        assert (answer.status_code, answer.json()["error_code"]) == (400, 40000), answer.text
