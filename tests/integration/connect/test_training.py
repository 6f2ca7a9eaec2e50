"""What trainings print, through the commands and the REST API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Consumer
from tests.integration.connect.conftest import cluster_settings
from tests.integration.connect.databases import Server, running
from tests.integration.server_process import ServerProcess, wait_until

from moldau.testing import Broker
from moldau.testing.connect import ConnectWorker
from moldau.testing.registry import SchemaRegistry

pytestmark = pytest.mark.xdist_group("databases")
_numbers = count()


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


def test_a_table_streams_into_a_topic_in_avro(
    moldau_broker: Broker, registry: SchemaRegistry, postgresql: Server
) -> None:
    postgresql.run(
        "CREATE TABLE driver (id SERIAL PRIMARY KEY, name TEXT NOT NULL, timestamp TIMESTAMP NOT NULL DEFAULT now())",
        "INSERT INTO driver (name) VALUES ('ann'), ('bob')",
    )
    avro = {
        f"{part}.converter{more}": text
        for part in ("key", "value")
        for more, text in (("", "io.confluent.connect.avro.AvroConverter"), (".schema.registry.url", registry.url))
    }
    body = {
        "name": "Driver-Connector",
        "config": {
            "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
            "connection.url": postgresql.url,
            "connection.user": postgresql.settings["connection.user"],
            "table.whitelist": "driver",
            "topic.prefix": "",
            "mode": "timestamp+incrementing",
            "incrementing.column.name": "id",
            "timestamp.column.name": "timestamp",
            "table.types": "TABLE",
            "numeric.mapping": "best_fit",
        },
    }
    worker_settings = {**cluster_settings(), **avro}
    reader = Consumer(
        {
            "bootstrap.servers": moldau_broker.bootstrap_servers,
            "group.id": "training-reader",
            "auto.offset.reset": "earliest",
        }
    )
    names: list[bytes] = []

    def has_read(wanted: int) -> bool:
        message = reader.poll(0.2)
        if message is not None and message.error() is None:
            value = message.value()
            assert value is not None
            assert value[0] == 0  # Confluent's format: a zero, the schema's id, Avro
            names.append(bytes(value))
        return len(names) >= wanted

    try:
        with ConnectWorker(moldau_broker.bootstrap_servers, worker_settings) as worker:
            answer = httpx.post(f"{worker.url}/connectors", json=body, timeout=60)
            assert answer.status_code == 201, answer.text
            wait_until(
                lambda: "driver" in httpx.get(f"{worker.url}/connectors/Driver-Connector/topics").text,
                what=f"the topic: {httpx.get(f'{worker.url}/connectors/Driver-Connector/status').text}",
            )
            reader.subscribe(["driver"])
            wait_until(lambda: has_read(2), what="both rows")
            postgresql.run(
                "INSERT INTO driver (name) VALUES ('eve')",
                "UPDATE driver SET name = 'anna', timestamp = now() WHERE name = 'ann'",
            )
            wait_until(lambda: has_read(4), what="the insert and the update")
    finally:
        reader.close()
    assert [next(name for name in (b"anna", b"ann", b"bob", b"eve") if name in one) for one in names[:2]] == [
        b"ann",
        b"bob",
    ]
    assert {name for name in (b"anna", b"eve") for one in names[2:] if name in one} == {b"anna", b"eve"}
    assert "driver-value" in httpx.get(f"{registry.url}/subjects").json()


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
        "offset.flush.interval.ms=500\n"
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
        url = re.search(r"started: (http://\S+)", process.output)
        assert url is not None
        assert httpx.get(f"{url.group(1)}/connectors").json() == ["local-file-sink", "local-file-source"]
        assert process.terminate() == 0
