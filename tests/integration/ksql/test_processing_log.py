"""Records that fail are skipped and told in the processing log, which is a stream; queries have metrics."""

from __future__ import annotations

import time

import httpx
import pytest
from tests.integration.ksql.talk import EARLIEST, name, query, run, stream
from tests.ksql_cases.rest_runner import RestServer, RestWorld
from tests.ksql_cases.world import CaseRecord

from moldau.ksql.pipelines import pipeline_options
from moldau.ksql.processing_log import stream_statement
from moldau.ksql.settings import KsqlSettings

WAIT_S = 60.0


@pytest.fixture(scope="module")
def server_settings() -> dict[str, str]:
    return {
        "ksql_logging_processing_stream_auto_create": "true",
        "ksql_logging_processing_topic_auto_create": "true",
    }


def test_failures_are_rows_of_a_stream(ksql: httpx.Client, server: RestServer, world: RestWorld) -> None:
    # The server has declared it at its start; the fixture has dropped all.
    statuses = ksql.get("/status").json()["commandStatuses"]
    assert statuses["stream/`KSQL_PROCESSING_LOG`/create"] == "SUCCESS"
    run(ksql, stream_statement(server.settings))
    source, made = stream(ksql), name("DIVIDED")
    run(ksql, f"CREATE STREAM {made} AS SELECT ID, 10 / (ID - 1) AS X FROM {source};", streamsProperties=EARLIEST)
    world.send(source, 0, CaseRecord(b"1", b"not JSON", 5))
    run(ksql, f"INSERT INTO {source} VALUES (1, 'a'); INSERT INTO {source} VALUES (3, 'b');")
    rows = query(ksql, f"SELECT ID, X FROM {made} EMIT CHANGES LIMIT 2;")
    assert [one["row"]["columns"] for one in rows if "row" in one] == [[1, None], [3, 5]]
    found = query(
        ksql,
        "SELECT LEVEL, MESSAGE->TYPE, MESSAGE->DESERIALIZATIONERROR->`topic`, "
        "MESSAGE->RECORDPROCESSINGERROR->ERRORMESSAGE FROM KSQL_PROCESSING_LOG EMIT CHANGES LIMIT 2;",
    )
    first, second = [one["row"]["columns"] for one in found if "row" in one]
    assert first == ["ERROR", 0, source, None]
    assert second[:3] == ["ERROR", 1, None]
    assert "X" in second[3]


def test_metrics_tell_of_every_query(ksql: httpx.Client) -> None:
    source, made = stream(ksql), name("WATCHED")
    [created] = run(ksql, f"CREATE STREAM {made} AS SELECT * FROM {source};")
    query_id = created["commandStatus"]["queryId"]
    deadline = time.monotonic() + WAIT_S
    wanted = [
        f'moldau_ksql_query_state{{query="{query_id}"',
        f'moldau_ksql_query_lag{{query="{query_id}"',
        "moldau_ksql_persistent_queries 1",
        "moldau_ksql_servers 1",
    ]
    while not all(text in (shown := ksql.get("/metrics").text) for text in wanted):
        assert time.monotonic() < deadline, shown
        time.sleep(0.1)
    assert 'group="_confluent-ksql-' in shown
    assert ksql.get("/healthz").status_code == 200


def test_unreadable_records_do_not_end_queries_unless_asked_to() -> None:
    kept = pipeline_options(KsqlSettings.of({"ksql.service.id": "a_"}), {}, {}).task_settings
    assert kept["deserialization.exception.handler"] == "continue"
    assert kept["ksql.logging.processing.topic.name"] == "a_ksql_processing_log"
    strict = KsqlSettings.of(
        {"ksql.fail.on.deserialization.error": "true", "ksql.logging.processing.topic.auto.create": "false"}
    )
    settings = pipeline_options(strict, {}, {}).task_settings
    assert settings["deserialization.exception.handler"] == "fail"
    assert "ksql.logging.processing.topic.name" not in settings
