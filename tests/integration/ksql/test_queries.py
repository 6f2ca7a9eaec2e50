"""Rows of queries: /query, /query-stream in its media types over both versions of HTTP, /ws/query, PRINT."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.integration.ksql.talk import EARLIEST, filled_stream, name, query, run, stream
from tests.ksql_cases.rest_runner import RestServer
from websockets.sync.client import connect

DELIMITED = "application/vnd.ksqlapi.delimited.v1"
KSQL_JSON = "application/vnd.ksql.v1+json"
PATIENCE_S = 30.0


@pytest.fixture(params=["HTTP/1.1", "HTTP/2"])
def client(server: RestServer, request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    """A client for each version of HTTP; version 2 without an upgrade from version 1."""
    is_second = request.param == "HTTP/2"
    with httpx.Client(base_url=server.url, http1=not is_second, http2=is_second, timeout=PATIENCE_S) as client:
        yield client


def asked(text: str) -> dict[str, Any]:
    return {"sql": text, "properties": EARLIEST}


def table(ksql: httpx.Client) -> str:
    """A table that counts the rows of a stream by V."""
    source, made = filled_stream(ksql), name("T")
    text = f"CREATE TABLE {made} AS SELECT V, COUNT(*) AS N FROM {source} GROUP BY V;"
    run(ksql, text, streamsProperties=EARLIEST)
    rows = query(ksql, f"SELECT * FROM {made} EMIT CHANGES LIMIT 2;")
    assert len(rows) == 4
    return made


def test_push_query(ksql: httpx.Client) -> None:
    source = filled_stream(ksql)
    header, *rows, last = query(ksql, f"SELECT ID, UCASE(V) AS U FROM {source} EMIT CHANGES LIMIT 2;")
    assert header["header"]["queryId"].startswith(f"transient_{source}_")
    assert header["header"]["schema"] == "`ID` INTEGER, `U` STRING"
    assert rows == [{"row": {"columns": [1, "A"]}}, {"row": {"columns": [2, "B"]}}]
    assert last == {"finalMessage": "Limit Reached"}


def test_pull_query_on_a_stream(ksql: httpx.Client) -> None:
    source = filled_stream(ksql)
    _, *rows, last = query(ksql, f"SELECT * FROM {source};")
    assert [one["row"]["columns"] for one in rows] == [[1, "a"], [2, "b"]]
    assert last == {"finalMessage": "Query Completed"}


def test_pull_query_on_a_table(ksql: httpx.Client) -> None:
    made = table(ksql)
    header, *rows = query(ksql, f"SELECT * FROM {made} WHERE V = 'a';")
    assert header["header"]["schema"] == "`V` STRING KEY, `N` BIGINT"
    assert rows == [{"row": {"columns": ["a", 1]}}]


def test_pull_queries_of_one_shape_answer_for_their_own_keys(ksql: httpx.Client) -> None:
    made = table(ksql)

    def rows_where(where: str) -> list[Any]:
        return [one["row"]["columns"] for one in query(ksql, f"SELECT * FROM {made} WHERE {where};")[1:]]

    for _ in range(2):
        assert rows_where("V = 'a'") == [["a", 1]]
        assert rows_where("V = 'b'") == [["b", 1]]
        assert rows_where("V = 'nobody'") == []
        assert sorted(rows_where("V IN ('a', 'b')")) == [["a", 1], ["b", 1]]
        assert rows_where("V IN ('b', 'b')") == [["b", 1]]
        assert rows_where("'b' = V AND N = 1") == [["b", 1]]
        assert rows_where("'b' = V AND N = 2") == []


def test_a_prepared_pull_query_follows_the_table(ksql: httpx.Client) -> None:
    made = name("T")
    text = f"SELECT * FROM {made} WHERE ID = {{}};"
    for columns, row in (("V STRING", [7, "x"]), ("V STRING, W INT", [7, "x", None])):
        create = f"CREATE SOURCE TABLE {made} (ID INT PRIMARY KEY, {columns}) WITH (kafka_topic='{made}', "
        run(ksql, f"{create} value_format='JSON', partitions=1);")
        if columns == "V STRING":
            run(ksql, f"CREATE TABLE W{made} (ID INT PRIMARY KEY, V STRING) WITH (kafka_topic='{made}', "
                f"value_format='JSON'); INSERT INTO W{made} VALUES (7, 'x');")  # fmt: skip
        deadline = time.monotonic() + PATIENCE_S
        while not (rows := query(ksql, text.format(7))[1:]) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert rows == [{"row": {"columns": row}}]
        assert query(ksql, text.format(8))[1:] == []
        assert query(ksql, text.format(-7))[1:] == []
        run(ksql, f"DROP TABLE {made};")
    assert ksql.post("/query", json={"ksql": text.format(7)}).status_code == 400


@pytest.mark.parametrize("accepted", [DELIMITED, None])
def test_query_stream_by_lines(ksql: httpx.Client, client: httpx.Client, accepted: str | None) -> None:
    source = filled_stream(ksql)
    headers = {} if accepted is None else {"accept": accepted}
    answer = client.post("/query-stream", json=asked(f"SELECT * FROM {source} EMIT CHANGES LIMIT 2;"), headers=headers)
    head, *rows = [json.loads(line) for line in answer.text.splitlines() if line]
    assert head["columnNames"] == ["ID", "V"]
    assert head["columnTypes"] == ["INTEGER", "STRING"]
    assert head["queryId"]
    assert rows == [[1, "a"], [2, "b"]]
    assert answer.headers["content-type"].startswith(DELIMITED)


def test_query_stream_as_an_array(ksql: httpx.Client, client: httpx.Client) -> None:
    source = filled_stream(ksql)
    answer = client.post(
        "/query-stream", json=asked(f"SELECT * FROM {source};"), headers={"accept": "application/json"}
    )
    head, *rows = answer.json()
    assert head["columnNames"] == ["ID", "V"]
    assert rows == [[1, "a"], [2, "b"]]


def test_query_stream_in_the_elements_of_query(ksql: httpx.Client, client: httpx.Client) -> None:
    made = table(ksql)
    answer = client.post(
        "/query-stream", json=asked(f"SELECT N FROM {made} WHERE V='b';"), headers={"accept": KSQL_JSON}
    )
    header, *rows = answer.json()
    assert header["header"]["schema"] == "`N` BIGINT"
    assert rows == [{"row": {"columns": [1]}}]


def test_a_push_query_is_closed_by_its_id(ksql: httpx.Client, client: httpx.Client) -> None:
    source = stream(ksql)
    with client.stream("POST", "/query-stream", json=asked(f"SELECT * FROM {source} EMIT CHANGES;")) as answer:
        lines = answer.iter_lines()
        query_id = json.loads(next(lines))["queryId"]
        [listed] = run(ksql, "SHOW QUERIES;")
        assert {"id": query_id, "queryType": "PUSH"}.items() <= next(
            one.items() for one in listed["queries"] if one["id"] == query_id
        )
        assert ksql.post("/close-query", json={"queryId": query_id}).status_code == 200
        assert [line for line in lines if line] == []
    answer = ksql.post("/close-query", json={"queryId": query_id})
    assert (answer.status_code, answer.json()["error_code"]) == (400, 40000)


def test_a_push_query_is_terminated_by_a_statement(ksql: httpx.Client, client: httpx.Client) -> None:
    source = stream(ksql)
    with client.stream("POST", "/query-stream", json=asked(f"SELECT * FROM {source} EMIT CHANGES;")) as answer:
        lines = answer.iter_lines()
        query_id = json.loads(next(lines))["queryId"]
        [ended] = run(ksql, f"TERMINATE {query_id};")
        assert (ended["@type"], ended["queryId"], ended["wasTerminated"]) == ("terminate_query", query_id, True)
        assert [line for line in lines if line] == []


def test_rows_over_a_websocket(ksql: httpx.Client, server: RestServer) -> None:
    source = filled_stream(ksql)
    request = {"ksql": f"SELECT * FROM {source} EMIT CHANGES LIMIT 2;", "streamsProperties": EARLIEST}
    url = server.url.replace("http://", "ws://")
    with connect(f"{url}/ws/query?request={quote(json.dumps(request))}", open_timeout=PATIENCE_S) as socket:
        messages = [json.loads(message) for message in socket]
    header, *rows, end = messages
    assert header["header"]["schema"].endswith("`V` STRING")
    assert rows == [{"row": {"columns": [1, "a"]}}, {"row": {"columns": [2, "b"]}}]
    assert end == {"finalMessage": "Limit Reached"}


def test_print(ksql: httpx.Client) -> None:
    source = filled_stream(ksql)
    answer = ksql.post("/query", json={"ksql": f"PRINT {source} FROM BEGINNING LIMIT 2;"})
    lines = [line for line in answer.text.splitlines() if line]
    assert lines[0].startswith("Key format: JSON or ")
    assert lines[1] == "Value format: JSON or KAFKA_STRING"
    assert 'value: {"V":"a"}, partition: 0' in lines[2]
    assert len([line for line in lines if line.startswith("rowtime: ")]) == 2


def test_print_of_a_registry_format(ksql: httpx.Client) -> None:
    made = name("PA")
    run(ksql, f"CREATE STREAM {made} (V INT) WITH (kafka_topic='{made}', value_format='AVRO', partitions=1);")
    run(ksql, f"INSERT INTO {made} (V) VALUES (7);")
    answer = ksql.post("/query-stream", json={"sql": f"PRINT {made} FROM BEGINNING LIMIT 1;"})
    assert "Value format: AVRO" in answer.text
    assert "key: <null>" in answer.text
    assert "7" in answer.text.splitlines()[-1]


def test_print_of_a_topic_that_is_not_there(ksql: httpx.Client) -> None:
    source = stream(ksql)
    answer = ksql.post("/query", json={"ksql": f"PRINT '{source.lower()}';"})
    assert (answer.status_code, answer.json()["error_code"]) == (400, 40000)
    assert answer.json()["message"].startswith(f"Could not find topic '{source.lower()}'")
    assert "Did you mean" in answer.json()["message"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SHOW STREAMS;", 40000),
        ("SELECT * FROM NOBODY EMIT CHANGES;", 40001),
        ("SELECT * FROM NOBODY;", 40001),
        ("SELECT", 40001),
        ("SELECT 1 FROM A EMIT CHANGES; SELECT 1 FROM A EMIT CHANGES;", 40000),
    ],
)
def test_queries_that_are_refused(ksql: httpx.Client, text: str, code: int) -> None:
    answer = ksql.post("/query", json={"ksql": text})
    assert (answer.status_code, answer.json()["error_code"]) == (code // 100, code)


def test_values_of_all_types(ksql: httpx.Client) -> None:
    made = name("ALL")
    columns = (
        "B BOOLEAN, I INT, L BIGINT, D DOUBLE, N DECIMAL(10, 2), S STRING, Y BYTES, DA DATE, TI TIME, TS TIMESTAMP, "
        "A ARRAY<INT>, M MAP<STRING, INT>, R STRUCT<F INT>, Z INT"
    )
    run(ksql, f"CREATE STREAM {made} ({columns}) WITH (kafka_topic='{made}', format='JSON', partitions=1);")
    values = (
        "true, 1, 9007199254740993, 1.5, 12.30, 'x', TO_BYTES('ab', 'utf8'), '2020-01-02', '10:20:30', "
        "'2020-01-02T03:04:05.678', ARRAY[1, 2], MAP('k' := 1), STRUCT(F := 5), NULL"
    )
    run(ksql, f"INSERT INTO {made} VALUES ({values});")
    answer = ksql.post("/query-stream", json={"sql": f"SELECT * FROM {made};"})
    head, row = [line for line in answer.text.splitlines() if line]
    assert json.loads(head)["columnTypes"][4] == "DECIMAL(10, 2)"
    assert row == (
        '[true,1,9007199254740993,1.5,12.30,"x","YWI=","2020-01-02","10:20:30","2020-01-02T03:04:05.678",[1,2],'
        '{"k":1},{"F":5},null]'
    )


@pytest.mark.parametrize(("path", "member"), [("/query", "ksql"), ("/query-stream", "sql")])
def test_rows_as_protobuf_messages(ksql: httpx.Client, path: str, member: str) -> None:
    source = filled_stream(ksql)
    answer = ksql.post(
        path, json={member: f"SELECT ID, V FROM {source};"}, headers={"accept": "application/vnd.ksql.v1+protobuf"}
    )
    assert answer.headers["content-type"].startswith("application/vnd.ksql.v1+protobuf")
    header, *rows = answer.json()
    assert header["header"]["schema"] == "`ID` INTEGER, `V` STRING"
    assert "int32 ID = 1;" in header["header"]["protoSchema"]
    assert "string V = 2;" in header["header"]["protoSchema"]
    messages = [base64.b64decode(one["row"]["protobufBytes"]) for one in rows if "row" in one]
    # field 1, varint; field 2, one character
    assert messages == [b"\x08\x01\x12\x01a", b"\x08\x02\x12\x01b"]
