"""POST /ksql: every kind of statement and the object that answers it."""

from __future__ import annotations

import httpx
import pytest
from tests.integration.ksql.talk import EARLIEST, filled_stream, name, query, refused, run, stream
from tests.ksql_cases.rest_runner import RestServer


def test_create_and_drop(ksql: httpx.Client) -> None:
    made = name("C")
    text = f"CREATE STREAM {made} (V INT) WITH (kafka_topic='{made}', format='JSON', partitions=1);"
    [created] = run(ksql, text)
    assert created["@type"] == "currentStatus"
    assert created["statementText"] == text
    assert created["commandId"] == f"stream/`{made}`/create"
    assert created["commandStatus"] == {"status": "SUCCESS", "message": "Stream created", "queryId": None}
    assert created["warnings"] == []
    status, error = refused(ksql, text)
    assert (status, error["error_code"]) == (400, 40001)
    assert error["message"].startswith(f"Cannot add stream '{made}'")
    [dropped] = run(ksql, f"DROP STREAM {made} DELETE TOPIC;")
    assert dropped["commandStatus"]["message"] == f"Source `{made}` (topic: {made}) was dropped."
    assert all(topic["name"] != made for topic in run(ksql, "SHOW TOPICS;")[0]["topics"])


def test_persistent_queries(ksql: httpx.Client) -> None:
    source, made = filled_stream(ksql), name("P")
    [created] = run(ksql, f"CREATE STREAM {made} AS SELECT * FROM {source};", streamsProperties=EARLIEST)
    query_id = created["commandStatus"]["queryId"]
    assert query_id.startswith(f"CSAS_{made}_")
    assert created["commandStatus"]["message"] == f"Created query with ID {query_id}"
    [listed] = run(ksql, "SHOW QUERIES;")
    [row] = [one for one in listed["queries"] if one["id"] == query_id]
    assert (row["sinks"], row["sinkKafkaTopics"], row["queryType"]) == ([made], [made], "PERSISTENT")
    [explained] = run(ksql, f"EXPLAIN {query_id};")
    assert explained["@type"] == "queryDescription"
    assert explained["queryDescription"]["sources"] == [source]
    assert explained["queryDescription"]["topology"]
    described = run(ksql, f"DESCRIBE {made} EXTENDED;")[0]["sourceDescription"]
    [summary] = described["queryOffsetSummaries"]
    assert summary["groupId"].endswith(f"query_{query_id}")
    assert [one["kafkaTopic"] for one in summary["topicSummaries"]] == [source]
    [extended] = run(ksql, "SHOW QUERIES EXTENDED;")
    assert extended["@type"] == "query_descriptions"
    messages = [
        run(ksql, f"{action} {query_id};")[0]["commandStatus"]["message"] for action in ("PAUSE", "RESUME", "TERMINATE")
    ]
    assert messages == ["Query paused.", "Query resumed.", "Query terminated."]
    assert refused(ksql, f"TERMINATE {query_id};")[1]["error_code"] == 40001


def test_insert_into_select(ksql: httpx.Client) -> None:
    source, target = filled_stream(ksql), stream(ksql)
    [answer] = run(ksql, f"INSERT INTO {target} SELECT * FROM {source};")
    assert answer["commandStatus"]["queryId"].startswith("INSERTQUERY_")


def test_silent_statements_have_no_answer(ksql: httpx.Client) -> None:
    made = stream(ksql)
    text = f"SET 'auto.offset.reset'='earliest'; DEFINE v = 'x'; INSERT INTO {made} VALUES (1, '${{v}}'); UNDEFINE v;"
    assert run(ksql, text + " UNSET 'auto.offset.reset';") == []


def test_streams_and_tables(ksql: httpx.Client) -> None:
    made, table = stream(ksql), name("T")
    run(ksql, f"CREATE TABLE {table} (K INT PRIMARY KEY) WITH (kafka_topic='{table}', format='JSON', partitions=2);")
    [streams] = run(ksql, "SHOW STREAMS;")
    expected = {
        "type": "STREAM",
        "name": made,
        "topic": made,
        "keyFormat": "JSON",
        "valueFormat": "JSON",
        "isWindowed": False,
    }
    assert expected in streams["streams"]
    [tables] = run(ksql, "LIST TABLES;")
    assert table in [one["name"] for one in tables["tables"]]
    [extended] = run(ksql, "SHOW TABLES EXTENDED;")
    assert extended["@type"] == "source_descriptions"
    [found] = [one for one in extended["sourceDescriptions"] if one["name"] == table]
    assert (found["partitions"], found["replication"]) == (2, 1)


def test_describe(ksql: httpx.Client) -> None:
    made = stream(ksql)
    [answer] = run(ksql, f"DESCRIBE {made};")
    found = answer["sourceDescription"]
    assert answer["@type"] == "sourceDescription"
    assert [(one["name"], one.get("type"), one["schema"]["type"]) for one in found["fields"]] == [
        ("ID", "KEY", "INTEGER"),
        ("V", None, "STRING"),
    ]
    assert (found["extended"], found["partitions"]) == (False, 0)
    assert run(ksql, f"DESCRIBE {made} EXTENDED;")[0]["sourceDescription"]["partitions"] == 1
    assert refused(ksql, "DESCRIBE NOBODY;")[1]["error_code"] == 40001


def test_topics(ksql: httpx.Client, server: RestServer) -> None:
    made = stream(ksql)
    [answer] = run(ksql, "SHOW TOPICS;")
    assert answer["@type"] == "kafka_topics"
    assert {"name": made, "replicaInfo": [1]} in answer["topics"]
    assert server.settings.command_topic not in [one["name"] for one in answer["topics"]]
    assert server.settings.command_topic in [one["name"] for one in run(ksql, "SHOW ALL TOPICS;")[0]["topics"]]
    [extended] = run(ksql, "SHOW TOPICS EXTENDED;")
    assert extended["@type"] == "kafka_topics_extended"
    assert {"consumerCount", "consumerGroupCount"} <= extended["topics"][0].keys()


def test_properties(ksql: httpx.Client) -> None:
    [answer] = run(ksql, "SHOW PROPERTIES;", streamsProperties=EARLIEST)
    assert answer["@type"] == "properties"
    found = {one["name"]: one for one in answer["properties"]}
    assert found["ksql.streams.auto.offset.reset"]["value"] == "earliest"
    assert answer["overwrittenProperties"] == ["ksql.streams.auto.offset.reset"]


def test_functions(ksql: httpx.Client) -> None:
    [names] = run(ksql, "SHOW FUNCTIONS;")
    assert {"name": "COUNT", "type": "AGGREGATE"}.items() <= next(
        one.items() for one in names["functions"] if one["name"] == "COUNT"
    )
    [described] = run(ksql, "DESCRIBE FUNCTION UCASE;")
    assert (described["@type"], described["type"]) == ("describe_function", "SCALAR")
    assert described["functions"][0]["returnType"]
    assert refused(ksql, "DESCRIBE FUNCTION NO_SUCH;")[0] == 400


def test_types(ksql: httpx.Client) -> None:
    made = name("TY")
    [created] = run(ksql, f"CREATE TYPE {made} AS STRUCT<A INT>;")
    assert created["commandStatus"]["message"].startswith(f"Registered custom type with name '{made}'")
    assert run(ksql, "SHOW TYPES;")[0]["types"][made]["type"] == "STRUCT"
    [dropped] = run(ksql, f"DROP TYPE {made};")
    assert dropped["commandStatus"]["message"] == f"Dropped type '{made}'"


def test_variables(ksql: httpx.Client) -> None:
    [answer] = run(ksql, "DEFINE a = '1'; SHOW VARIABLES;", sessionVariables={"b": "2"})
    assert answer["variables"] == [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]


def test_if_exists_that_does_nothing(ksql: httpx.Client) -> None:
    made = stream(ksql)
    [there] = run(ksql, f"CREATE STREAM IF NOT EXISTS {made} (V INT) WITH (kafka_topic='{made}', format='JSON');")
    [absent] = run(ksql, "DROP STREAM IF EXISTS NOBODY;")
    assert there["@type"] == absent["@type"] == "warning_entity"
    assert absent["message"]


def test_alter_system(ksql: httpx.Client) -> None:
    [answer] = run(ksql, "ALTER SYSTEM 'ksql.streams.max.task.idle.ms'='0';")
    assert answer["commandStatus"]["message"] == "System property ksql.streams.max.task.idle.ms was set to 0."
    assert refused(ksql, "ALTER SYSTEM 'no.such.thing'='0';")[1]["error_code"] == 40001


def test_assertions_of_topics(ksql: httpx.Client) -> None:
    made = stream(ksql)
    [answer] = run(ksql, f"ASSERT TOPIC {made} WITH (PARTITIONS=1, REPLICAS=1);")
    assert (answer["@type"], answer["topicName"], answer["exists"]) == ("assert_topic", made, True)
    assert run(ksql, "ASSERT NOT EXISTS TOPIC nobody;")[0]["exists"] is False
    for text in (
        "ASSERT TOPIC nobody TIMEOUT 10 MILLISECONDS;",
        f"ASSERT TOPIC {made} WITH (PARTITIONS=7) TIMEOUT 10 MILLISECONDS;",
        f"ASSERT NOT EXISTS TOPIC {made} TIMEOUT 10 MILLISECONDS;",
    ):
        status, error = refused(ksql, text)
        assert (status, error["error_code"]) == (417, 41700), error


def test_assertions_of_schemas(ksql: httpx.Client) -> None:
    made = name("AV")
    run(ksql, f"CREATE STREAM {made} (V INT) WITH (kafka_topic='{made}', value_format='AVRO', partitions=1);")
    [answer] = run(ksql, f"ASSERT SCHEMA SUBJECT '{made}-value';")
    assert (answer["@type"], answer["subject"], answer["exists"]) == ("assert_schema", f"{made}-value", True)
    assert run(ksql, "ASSERT NOT EXISTS SCHEMA ID 9999;")[0]["id"] == 9999
    assert refused(ksql, "ASSERT SCHEMA SUBJECT nobody TIMEOUT 10 MILLISECONDS;")[1]["error_code"] == 41700


@pytest.mark.parametrize(
    "text",
    [
        "SHOW CONNECTORS;",
        "CREATE SOURCE CONNECTOR c WITH ('a'='b');",
        "DESCRIBE CONNECTOR c;",
        "DROP CONNECTOR c;",
    ],
)
def test_connectors_need_a_worker(ksql: httpx.Client, text: str) -> None:
    status, error = refused(ksql, text)
    assert (status, error["error_code"]) == (500, 50000)
    assert "ksql.connect.url" in error["message"]


def test_explain_of_a_query_for_clients_says_where_it_runs(ksql: httpx.Client) -> None:
    made = stream(ksql)
    [answer] = run(ksql, f"EXPLAIN SELECT * FROM {made} EMIT CHANGES;")
    assert answer["queryDescription"]["queryType"] == "PUSH"
    assert "in memory" in answer["queryDescription"]["executionPlan"]
    assert [one["name"] for one in answer["queryDescription"]["fields"]] == ["ID", "V"]


def test_explain_of_a_statement_that_does_not_run_yet(ksql: httpx.Client) -> None:
    made = stream(ksql)
    [answer] = run(ksql, f"EXPLAIN CREATE TABLE C AS SELECT V, COUNT(*) AS N FROM {made} GROUP BY V;")
    found = answer["queryDescription"]
    assert (found["queryType"], found["sources"], found["sinks"]) == ("PERSISTENT", [made], ["C"])
    assert "with Python, because of" in found["executionPlan"]
    assert "unknown place" not in found["executionPlan"]
    plain = name("P")
    run(ksql, f"CREATE STREAM {plain} (ID INT KEY, V STRING) WITH (kafka_topic='{made}', value_format='JSON');")
    [native] = run(ksql, f"EXPLAIN CREATE STREAM C AS SELECT ID, V FROM {plain} WHERE ID > 1;")
    assert "without Python" in native["queryDescription"]["executionPlan"]
    assert [(one["name"], one["schema"]["type"]) for one in found["fields"]] == [("V", "STRING"), ("N", "BIGINT")]
    assert refused(ksql, "DESCRIBE C;")[1]["error_code"] == 40001


@pytest.mark.parametrize("text", ["SELECT * FROM X EMIT CHANGES;", "PRINT x;"])
def test_queries_belong_to_another_endpoint(ksql: httpx.Client, text: str) -> None:
    status, error = refused(ksql, text)
    assert (status, error["error_code"]) == (400, 40002)


def test_one_wrong_statement_refuses_all(ksql: httpx.Client) -> None:
    made = name("N")
    text = f"CREATE STREAM {made} (V INT) WITH (kafka_topic='{made}', format='JSON', partitions=1); DROP STREAM NOBODY;"
    status, error = refused(ksql, text)
    assert (status, error["@type"], error["error_code"]) == (400, "statement_error", 40001)
    assert error["statementText"] == "DROP STREAM NOBODY;"
    assert made not in [one["name"] for one in run(ksql, "SHOW STREAMS;")[0]["streams"]]


def test_a_missing_semicolon_is_a_syntax_error(ksql: httpx.Client) -> None:
    assert refused(ksql, "SHOW STREAMS")[1]["error_code"] == 40001


@pytest.mark.parametrize(
    "text",
    [
        "SELECT" + " " * 5_000_000 + ";",
        "CREATE STREAM BIG (" + "V" * 5_000_000 + " INT) WITH (kafka_topic='x', format='JSON');",
        f"CREATE STREAM DEEP AS SELECT {'(' * 1000}1{')' * 1000} AS V FROM NOBODY;",
        f"CREATE STREAM DEEP (V {'ARRAY<' * 1000}INT{'>' * 1000}) WITH (kafka_topic='x', format='JSON');",
        f"CREATE STREAM DEEP AS SELECT {'ABS(' * 1000}1{')' * 1000} AS V FROM NOBODY;",
    ],
    ids=["long", "long name", "parentheses", "types", "calls"],
)
def test_statements_without_measure_are_refused(ksql: httpx.Client, text: str) -> None:
    status, error = refused(ksql, text)
    assert 400 <= status < 500, error
    assert error["message"]
    assert ksql.get("/info").status_code == 200


def test_five_hundred_columns(ksql: httpx.Client) -> None:
    made = name("WIDE")
    columns = ", ".join(f"C{number} INT" for number in range(500))
    run(ksql, f"CREATE STREAM {made} ({columns}) WITH (kafka_topic='{made}', format='JSON', partitions=1);")
    assert len(run(ksql, f"DESCRIBE {made};")[0]["sourceDescription"]["fields"]) == 500


def test_a_time_of_zero_is_written_as_it_is(ksql: httpx.Client) -> None:
    made = stream(ksql)
    run(ksql, f"INSERT INTO {made} (ROWTIME, ID, V) VALUES (0, 1, 'a'); INSERT INTO {made} (ID, V) VALUES (2, 'b');")
    rows = [one["row"]["columns"] for one in query(ksql, f"SELECT ID, ROWTIME FROM {made};") if "row" in one]
    times = dict(map(tuple, rows))
    assert times[1] == 0
    assert times[2] > 1_000_000_000_000
