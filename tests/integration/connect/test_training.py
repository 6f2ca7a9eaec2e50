"""What trainings print, through the commands and the REST API."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Consumer
from tests.integration.connect.conftest import cluster_settings
from tests.integration.connect.databases import Server, running
from tests.integration.server_process import ServerProcess, wait_until

from moldau.client.serialization import prepared_serde
from moldau.serdes.schema_serde import AvroSerde
from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry

pytestmark = pytest.mark.xdist_group("databases")
_numbers = count()
STARTED = re.compile(r"started: (http://\S+)")


@pytest.fixture(scope="module")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running("postgresql", tmp_path_factory.mktemp("training")) as server:
        yield server


@pytest.fixture(scope="module")
def registry(moldau_broker: Broker) -> Iterator[SchemaRegistry]:
    name = f"_schemas_training_{next(_numbers)}"
    settings = {"kafkastore.topic": name, "schema.registry.group.id": name}
    with SchemaRegistry(moldau_broker.bootstrap_servers, settings) as registry:
        yield registry


DRIVER_CONNECTOR = """
{
  "name": "Driver-Connector",
  "config": {
    "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
    "connection.url": "jdbc:postgresql://postgres:5432/postgres",
    "connection.user": "postgres",
    "table.whitelist": "driver",
    "topic.prefix": "",
    "mode": "timestamp+incrementing",
    "incrementing.column.name": "id",
    "timestamp.column.name": "timestamp",
    "table.types": "TABLE",
    "numeric.mapping": "best_fit"
  }
}
"""


@pytest.fixture(scope="module")
def distributed(
    moldau_broker: Broker, registry: SchemaRegistry, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """`connect-distributed worker.properties`, with Avro as the trainings' workers have it."""
    settings = {
        **cluster_settings(),
        "bootstrap.servers": moldau_broker.bootstrap_servers,
        "listeners": "http://127.0.0.1:0",
        "moldau.connect.engine": "threads",
    }
    for part in ("key", "value"):
        settings[f"{part}.converter"] = "io.confluent.connect.avro.AvroConverter"
        settings[f"{part}.converter.schema.registry.url"] = registry.url
    file = tmp_path_factory.mktemp("distributed") / "worker.properties"
    file.write_text("".join(f"{name}={text}\n" for name, text in settings.items()))
    with ServerProcess([str(file)], program=("-m", "moldau.cli.connect.distributed")) as process:
        wait_until(lambda: STARTED.search(process.output), what="the worker's start")
        found = STARTED.search(process.output)
        assert found is not None
        with httpx.Client(base_url=found.group(1), timeout=60) as client:
            yield client
        assert process.terminate() == 0


def test_a_table_streams_into_a_topic_in_avro(
    moldau_broker: Broker, registry: SchemaRegistry, postgresql: Server, distributed: httpx.Client
) -> None:
    postgresql.run(
        "CREATE TABLE driver (id SERIAL PRIMARY KEY, name TEXT NOT NULL, timestamp TIMESTAMP NOT NULL DEFAULT now())",
        "INSERT INTO driver (name) VALUES ('ann'), ('bob')",
    )
    body = DRIVER_CONNECTOR.replace("jdbc:postgresql://postgres:5432/postgres", postgresql.url)
    body = body.replace('"postgres"', json.dumps(postgresql.settings["connection.user"]))
    serde = prepared_serde(AvroSerde(), {"schema.registry.url": registry.url})
    reader = Consumer(
        {
            "bootstrap.servers": moldau_broker.bootstrap_servers,
            "group.id": "training-reader",
            "auto.offset.reset": "earliest",
        }
    )
    drivers: list[tuple[int, str]] = []

    def has_read(wanted: int) -> bool:
        message = reader.poll(0.2)
        if message is not None and message.error() is None:
            value = message.value()
            assert value is not None
            driver = serde.deserialize("driver", bytes(value))
            drivers.append((driver["id"], driver["name"]))
        return len(drivers) >= wanted

    answer = distributed.post("/connectors", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 201, answer.text
    try:
        wait_until(
            lambda: "driver" in distributed.get("/connectors/Driver-Connector/topics").text, what="the topic is there"
        )
        reader.subscribe(["driver"])
        wait_until(lambda: has_read(2), what="both rows")
        postgresql.run("INSERT INTO driver (name) VALUES ('eve')")
        postgresql.run("UPDATE driver SET name = 'anna', timestamp = now() WHERE name = 'ann'")
        wait_until(lambda: has_read(4), what="the insert and the update")
    finally:
        reader.close()
        distributed.delete("/connectors/Driver-Connector")
    assert drivers == [(1, "ann"), (2, "bob"), (3, "eve"), (1, "anna")]
    assert "driver-value" in httpx.get(f"{registry.url}/subjects").json()


def test_the_walk_through_the_rest_api(distributed: httpx.Client, tmp_path: Path) -> None:
    read, written = tmp_path / "test.txt", tmp_path / "test.sink.txt"
    read.write_text("foo\nbar\n")
    strings = {f"{part}.converter": "org.apache.kafka.connect.storage.StringConverter" for part in ("key", "value")}
    source = {"connector.class": "FileStreamSource", "file": str(read), "topic": "walk-through", **strings}
    sink = {"connector.class": "FileStreamSink", "file": str(written), "topics": "walk-through", **strings}

    assert distributed.get("/connectors").json() == []
    made = distributed.post("/connectors", json={"name": "file-source", "config": source})
    assert (made.status_code, made.headers["location"]) == (201, "/connectors/file-source")
    assert distributed.put("/connectors/file-sink/config", json=sink).status_code == 201
    assert sorted(distributed.get("/connectors").json()) == ["file-sink", "file-source"]
    assert distributed.get("/connectors/file-source/config").json() == {"name": "file-source", **source}
    wait_until(lambda: written.exists() and written.read_text() == "foo\nbar\n", what="the lines")

    def states() -> list[str]:
        status = distributed.get("/connectors/file-sink/status").json()
        return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]

    wait_until(lambda: states() == ["RUNNING", "RUNNING"], what="connector and task run")
    other = tmp_path / "other.sink.txt"
    changed = distributed.put("/connectors/file-sink/config", json={**sink, "file": str(other)})
    assert (changed.status_code, changed.json()["config"]["file"]) == (200, str(other))

    def is_in_the_other_file() -> bool:
        with read.open("a") as file:  # a line now and then: the first may still go where the old task writes
            file.write("baz\n")
        time.sleep(0.2)
        return other.exists() and "baz\n" in other.read_text()

    wait_until(is_in_the_other_file, what="new lines in the other file")
    for name in ("file-source", "file-sink"):
        assert distributed.delete(f"/connectors/{name}").status_code == 204
    assert distributed.get("/connectors").json() == []
    assert distributed.get("/connectors/file-source/status").status_code == 404


def test_a_file_source_and_a_file_sink_run_standalone(moldau_broker: Broker, tmp_path: Path) -> None:
    worker, source, sink = (tmp_path / f"{name}.properties" for name in ("worker", "source", "sink"))
    read, written = tmp_path / "test.txt", tmp_path / "test.sink.txt"
    worker.write_text(
        f"bootstrap.servers={moldau_broker.bootstrap_servers}\n"
        "key.converter=org.apache.kafka.connect.json.JsonConverter\n"
        "value.converter=org.apache.kafka.connect.json.JsonConverter\n"
        "key.converter.schemas.enable=true\n"
        "value.converter.schemas.enable=true\n"
        f"offset.storage.file.filename={tmp_path / 'connect.offsets'}\n"
        "listeners=http://127.0.0.1:0\n"
        "moldau.connect.engine=threads\n"
    )
    source.write_text(
        f"name=local-file-source\nconnector.class=FileStreamSource\ntasks.max=1\nfile={read}\ntopic=connect-test\n"
    )
    sink.write_text(
        f"name=local-file-sink\nconnector.class=FileStreamSink\ntasks.max=1\nfile={written}\ntopics=connect-test\n"
    )
    read.write_text("foo\nbar\n")
    program = ("-m", "moldau.cli.connect.standalone")
    with ServerProcess([str(worker), str(source), str(sink)], program=program) as process:
        wait_until(lambda: written.exists() and written.read_text() == "foo\nbar\n", what="the lines")
        with read.open("a") as file:
            file.write("baz\n")
        wait_until(lambda: written.read_text() == "foo\nbar\nbaz\n", what="the new line")
        url = STARTED.search(process.output)
        assert url is not None
        assert httpx.get(f"{url.group(1)}/connectors").json() == ["local-file-sink", "local-file-source"]
        assert process.terminate() == 0
