"""A server that runs the statements of a file takes none from clients, and does the same after a restart."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.ksql_cases.rest_runner import RestServer, RestWorld
from tests.ksql_cases.world import CaseRecord

from moldau.core.errors import StartupError
from moldau.ksql.server import KsqlServer
from moldau.ksql.settings import KsqlSettings
from moldau.pipeline.runtime.hosting.host import PipelineHost
from moldau.pipeline.runtime.hosting.local_link import LocalLink
from moldau.pipeline.runtime.states import State
from moldau.testing import Broker

WAIT_S = 60.0
STATEMENTS = """
SET 'auto.offset.reset' = 'earliest';
CREATE STREAM ORDERS (ID INT KEY, AMOUNT INT) WITH (kafka_topic='{0}', format='JSON', partitions=1);
CREATE STREAM LARGE WITH (kafka_topic='{0}-large') AS SELECT * FROM ORDERS WHERE AMOUNT > 10;
"""


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def first_value(broker: Broker, topic: str) -> bytes | None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "x", "log_level": "2"})
    try:
        consumer.list_topics(topic, timeout=WAIT_S)
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(WAIT_S)
        assert message is not None
        return message.value()  # type: ignore[return-value]
    finally:
        consumer.close()


def test_it_runs_the_file_and_nothing_else(moldau_broker: Broker, world: RestWorld, tmp_path: Path) -> None:
    file = tmp_path / "queries.sql"
    file.write_text(STATEMENTS.format("headless"))
    for _ in range(2):
        server = RestServer(moldau_broker.bootstrap_servers, tmp_path, world.send, ksql_queries_file=str(file))
        try:
            assert list(server.server.state.queries) == ["CSAS_LARGE_0"]
            pipelines = server.builder.pipelines
            wait_for(lambda pipelines=pipelines: [one.states.state for one in pipelines] == [State.RUNNING])  # type: ignore[misc]
            world.send("headless", 0, CaseRecord(b"1", b'{"AMOUNT": 50}', 5))
            assert first_value(moldau_broker, "headless-large") == b'{"AMOUNT":50}'
            with httpx.Client(base_url=server.url, timeout=WAIT_S) as client:
                for path, body in (
                    ("/ksql", {"ksql": "SHOW STREAMS;"}),
                    ("/query", {"ksql": "SELECT * FROM ORDERS;"}),
                    ("/ksql/terminate", {}),
                ):
                    answer = client.post(path, json=body)
                    assert (answer.status_code, answer.json()["error_code"]) == (403, 40300)
                    assert str(file) in answer.json()["message"]
                assert client.get("/healthcheck").json()["isHealthy"]
                assert client.get("/info").json()["KsqlServerInfo"]["kafkaClusterId"]
        finally:
            server.close()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("CREATE STREAM X;", "KAFKA_TOPIC"),
        ("SELECT * FROM X;", "SELECT"),
        ("CREATE STREAM X AS SELECT * FROM NOWHERE;", "Source `NOWHERE` does not exist"),
    ],
)
def test_a_file_that_is_wrong_stops_the_start(moldau_broker: Broker, tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "queries.sql"
    file.write_text(text)
    settings = KsqlSettings.of(
        {
            "bootstrap.servers": moldau_broker.bootstrap_servers,
            "ksql.queries.file": str(file),
            "ksql.streams.state.dir": str(tmp_path),
        }
    )

    async def start() -> None:
        server = KsqlServer(settings, LocalLink(PipelineHost({})))
        try:
            await server.start()
        finally:
            await server.stop()

    with pytest.raises(StartupError) as told:
        asyncio.run(start())
    assert str(told.value).startswith(f"ksql.queries.file: {file}: ")
    assert reason in str(told.value)
