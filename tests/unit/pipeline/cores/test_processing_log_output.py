from __future__ import annotations

import json
from typing import Any

from tests.unit.pipeline.ksql.sql_session import SqlSession

from moldau.pipeline.cores.handlers import log_and_continue
from moldau.pipeline.cores.in_memory_run import InMemoryRun
from moldau.pipeline.cores.settings import TaskSettings

SOURCE = "CREATE STREAM S (K STRING KEY, A INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
QUERY = "CREATE STREAM Q AS SELECT K, 1 / A AS X FROM S;"


def entries(topic: str | None, *values: bytes) -> tuple[list[Any], list[Any]]:
    """What a query writes to its log, and to its topic."""
    query = SqlSession(SOURCE).start(QUERY)
    settings = TaskSettings(application_id="Q", deserialization_handler=log_and_continue, processing_log_topic=topic)
    run = InMemoryRun(query.topology, settings)
    for value in values:
        run.pipe("s", b"k", value, 7, partition=0)
    found = run.drain()
    run.close()
    written = [json.loads(one.value or b"null") for one in found if one.topic == topic]
    return written, [json.loads(one.value or b"null") for one in found if one.topic == "Q"]


def test_a_failing_item_is_logged_and_its_row_survives() -> None:
    log, rows = entries("log", b'{"A": 0}')
    assert rows == [{"X": None}]
    assert [(one["logger"], one["time"], one["message"]["type"]) for one in log] == [("processing.Q.column `X`", 7, 1)]
    assert "Error computing column `X`" in log[0]["message"]["recordProcessingError"]["errorMessage"]


def test_a_record_that_cannot_be_read_is_logged_and_dropped() -> None:
    log, rows = entries("log", b"no JSON", b'{"A": 1}')
    assert rows == [{"X": 1}]
    assert [(one["message"]["type"], one["message"]["deserializationError"]["topic"]) for one in log] == [(0, "s")]


def test_without_a_topic_nothing_is_written() -> None:
    log, rows = entries(None, b'{"A": 0}')
    assert (log, rows) == ([], [{"X": None}])
