"""Records that fail: tolerated, reported and written to a dead-letter topic, or the end of their task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Consumer, Producer
from tests.integration.connect.connectors import rows
from tests.integration.connect.talk import COUNTER, SINK, await_states, delete, make, states
from tests.integration.server_process import wait_until

from moldau.testing import Broker

JSON = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


def send(broker: Broker, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for value in values:
        producer.produce(topic, value, headers=[("origin", b"test")])
    assert producer.flush(60) == 0


@pytest.fixture
def read(moldau_broker: Broker) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": moldau_broker.bootstrap_servers,
            "group.id": "reader-of-dead-letters",
            "auto.offset.reset": "earliest",
            "allow.auto.create.topics": "true",
        }
    )
    yield consumer
    consumer.close()


def test_bad_records_go_to_the_dead_letter_topic_with_the_reason(
    connect: httpx.Client, moldau_broker: Broker, read: Consumer, tmp_path: Path
) -> None:
    database = tmp_path / "rows.db"
    send(moldau_broker, "mixed", '"good"', "{bad", '"poison"', '"better"')
    make(
        connect,
        "tolerant",
        {
            **JSON,
            "connector.class": SINK,
            "topics": "mixed",
            "database": str(database),
            "poison": "poison",
            "errors.tolerance": "all",
            "errors.log.enable": "true",
            "errors.deadletterqueue.topic.name": "letters",
            "errors.deadletterqueue.context.headers.enable": "true",
        },
    )
    wait_until(lambda: rows(database) == ["good", "better"], what="the good rows")
    read.subscribe(["letters"])
    found = []
    while len(found) < 2:
        message = read.poll(1)
        if message is not None and message.error() is None:
            found.append(message)
    assert [message.value() for message in found] == [b"{bad", b'"poison"']
    headers = [dict(message.headers()) for message in found]
    assert [one["__connect.errors.stage"] for one in headers] == [b"VALUE_CONVERTER", b"TASK_PUT"]
    assert headers[0]["origin"] == b"test"
    assert headers[0]["__connect.errors.topic"] == b"mixed"
    assert headers[0]["__connect.errors.offset"] == b"1"
    assert headers[0]["__connect.errors.partition"] == b"0"
    assert headers[0]["__connect.errors.connector.name"] == b"tolerant"
    assert headers[0]["__connect.errors.task.id"] == b"0"
    assert b"DataError" in headers[0]["__connect.errors.exception.class.name"]
    assert b"Traceback" in headers[0]["__connect.errors.exception.stacktrace"]
    assert states(connect, "tolerant") == ("RUNNING", ["RUNNING"])
    delete(connect, "tolerant")


def test_without_tolerance_the_first_bad_record_ends_the_task(
    connect: httpx.Client, moldau_broker: Broker, tmp_path: Path
) -> None:
    send(moldau_broker, "strict", "{bad")
    make(
        connect,
        "strict",
        {**JSON, "connector.class": SINK, "topics": "strict", "database": str(tmp_path / "rows.db")},
    )
    await_states(connect, "strict", "RUNNING", "FAILED")
    trace = connect.get("/connectors/strict/tasks/0/status").json()["trace"]
    assert "record 0 of strict-0 failed at VALUE_CONVERTER" in trace
    delete(connect, "strict")


def test_a_target_that_is_away_gets_the_same_records_again(
    connect: httpx.Client, moldau_broker: Broker, tmp_path: Path
) -> None:
    database, away = tmp_path / "rows.db", tmp_path / "away"
    away.touch()
    send(moldau_broker, "patient", "a", "b", "c")
    make(
        connect,
        "patient",
        {"connector.class": SINK, "topics": "patient", "database": str(database), "away": str(away)},
    )
    await_states(connect, "patient", "RUNNING", "RUNNING")
    wait_until(
        lambda: 'total_retries{connector="patient",task="0"} 0' not in connect.get("/metrics").text, what="a retry"
    )
    assert rows(database) == []
    away.unlink()
    wait_until(lambda: rows(database) == ["a", "b", "c"], what="the rows")
    delete(connect, "patient")


def test_transforms_change_and_drop_records(connect: httpx.Client, tmp_path: Path) -> None:
    database = tmp_path / "rows.db"
    make(
        connect,
        "routed",
        {
            "connector.class": COUNTER,
            "topic": "raw",
            "limit": "3",
            "transforms": "route",
            "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
            "transforms.route.regex": "r(.*)",
            "transforms.route.replacement": "st$1",
            "topic.creation.default.partitions": "3",
            "topic.creation.default.replication.factor": "1",
            "topic.creation.default.retention.ms": "86400000",
        },
    )
    sink = {"connector.class": SINK, "topics.regex": "sta.", "database": str(database)}
    make(connect, "pattern", sink)
    wait_until(lambda: sorted(rows(database)) == ["0:0", "0:1", "0:2"], what="the rows")
    assert connect.get("/connectors/routed/topics").json() == {"routed": {"topics": ["staw"]}}
    delete(connect, "routed")
    delete(connect, "pattern")
