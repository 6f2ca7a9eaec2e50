"""The six consoles as people type them, and the two commands that start and stop a registry."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.integration.cli_commands import Terminal
from tests.integration.registry.calls import Http
from tests.integration.server_process import ServerProcess, wait_until

from moldau.cli.console.schema_tools import avro_producer
from moldau.cli.main import main as moldau
from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry

AVRO = '{"type":"record","name":"R","fields":[{"name":"f1","type":"string"},{"name":"n","type":["null","int"]}]}'
JSON = '{"type":"object","title":"R","properties":{"f1":{"type":"string"}},"required":["f1"]}'
PROTOBUF = 'syntax = "proto3"; package p; message R { string f1 = 1; int32 some_number = 2; }'


@pytest.fixture
def terminal(moldau_broker: Broker) -> Terminal:
    return Terminal(moldau_broker)


@pytest.fixture
def url(registry: SchemaRegistry) -> str:
    return f"--property schema.registry.url={registry.url}"


@pytest.fixture
def http(registry: SchemaRegistry) -> Iterator[Http]:
    with Http(registry.url) as http:
        yield http


def produce(terminal: Terminal, kind: str, topic: str, options: str, lines: list[str]) -> None:
    line = f"kafka-{kind}-console-producer --bootstrap-server localhost:9092 --topic {topic} {options}"
    terminal.output(line, stdin="".join(f"{one}\n" for one in lines))


def consume(terminal: Terminal, kind: str, topic: str, options: str, count: int) -> list[str]:
    line = (
        f"kafka-{kind}-console-consumer --bootstrap-server localhost:9092 --topic {topic} --from-beginning "
        f"--max-messages {count} {options}"
    )
    return terminal.output(line).splitlines()


CASES = {
    "avro": ("AVRO", AVRO, ['{"f1":"a","n":null}', '{"f1":"ü","n":{"int":7}}']),
    "json-schema": ("JSON", JSON, ['{"f1":"a"}', '{"f1":"b","more":[1,2.5,null]}']),
    "protobuf": ("PROTOBUF", PROTOBUF, ['{"f1":"a","someNumber":0}', '{"f1":"b","someNumber":7}']),
}


@pytest.mark.parametrize("kind", CASES)
def test_lines_go_in_as_json_and_come_out_as_json(terminal: Terminal, http: Http, url: str, kind: str) -> None:
    schema_type, schema, lines = CASES[kind]
    topic = f"console-{kind}"
    produce(terminal, kind, topic, f"{url} --property value.schema={shlex.quote(schema)}", lines)
    assert consume(terminal, kind, topic, url, 2) == lines
    status, registered = http.get(f"/subjects/{topic}-value/versions/1")
    assert (status, registered["schemaType"]) == (200, schema_type)


def test_keys_have_schemas_and_ids_are_shown(terminal: Terminal, http: Http, url: str) -> None:
    options = (
        f"{url} --property parse.key=true --property key.separator=@ --property key.schema='\"long\"' "
        f"--property value.schema={shlex.quote(AVRO)}"
    )
    produce(terminal, "avro", "keyed", options, ['5@{"f1": "a", "n": null}'])
    key_id = http.get("/subjects/keyed-key/versions/1")[1]["id"]
    value_id = http.get("/subjects/keyed-value/versions/1")[1]["id"]
    shown = consume(terminal, "avro", "keyed", f"{url} --property print.key=true --property print.schema.ids=true", 1)
    assert shown == [f'5\t{key_id}\t{{"f1":"a","n":null}}\t{value_id}']


def test_keys_may_be_plain_text_and_values_null(terminal: Terminal, moldau_broker: Broker, url: str) -> None:
    options = (
        f"{url} --property parse.key=true --property key.separator=: --property null.marker=NULL "
        f"--property key.serializer=org.apache.kafka.common.serialization.StringSerializer "
        f"--property value.schema='\"string\"'"
    )
    produce(terminal, "avro", "plain-keys", options, ['k:"v"', "k:NULL"])
    consumer = Consumer({"bootstrap.servers": moldau_broker.bootstrap_servers, "group.id": "plain-keys"})
    consumer.assign([TopicPartition("plain-keys", 0, 0)])
    try:
        first, second = consumer.poll(30), consumer.poll(30)
    finally:
        consumer.close()
    assert first is not None
    assert second is not None
    assert (first.key(), second.key(), second.value()) == (b"k", b"k", None)
    options = f"{url} --property print.key=true --property key.deserializer=StringDeserializer"
    assert consume(terminal, "avro", "plain-keys", options, 2) == ['k\t"v"', "k\tnull"]


def test_a_schema_comes_from_a_file_or_by_its_id(terminal: Terminal, http: Http, url: str, tmp_path: Path) -> None:
    (tmp_path / "r.avsc").write_text(AVRO)
    produce(
        terminal, "avro", "from-file", f"{url} --property value.schema.file={tmp_path}/r.avsc", ['{"f1":"a","n":null}']
    )
    schema_id = http.get("/subjects/from-file-value/versions/1")[1]["id"]
    produce(terminal, "avro", "by-id", f"{url} --property value.schema.id={schema_id}", ['{"f1":"b","n":null}'])
    assert consume(terminal, "avro", "by-id", url, 1) == ['{"f1":"b","n":null}']
    assert http.get("/subjects/by-id-value/versions") == (404, 40401)


def test_a_strategy_names_the_subject(terminal: Terminal, http: Http, url: str) -> None:
    options = (
        f"{url} --property value.schema={shlex.quote(PROTOBUF)} --property value.subject.name.strategy="
        "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy"
    )
    produce(terminal, "protobuf", "strategic", options, ['{"f1":"a"}'])
    assert http.get("/subjects/strategic-p.R/versions") == (200, [1])


@pytest.mark.parametrize(
    "refusal",
    [
        ("", "", "Must provide the value schema"),
        ("--property value.schema='\"int\"' --property parse.key=true", "", "Must provide the key schema"),
        ("--property value.schema='\"int\"'", '"text"', "Line 1: the value does not fit its schema"),
        ("--property value.schema='\"int\"'", "not json", "Line 1: the value does not fit its schema"),
        ("--property value.schema=nonsense", "1", "the Avro schema is not JSON"),
        ("--property value.schema.id=999", "1", "Schema 999 not found"),
        ("--property value.schema.id=x", "1", "value.schema.id=x is not the id of a schema"),
        ("--property value.schema.file=/no/such/file", "1", "cannot read the schema in /no/such/file"),
        ("--property value.schema='\"int\"' --property auto.register=false", "1", "not found"),
        ("--property value.schema='\"int\"' --property value.refs=x", "1", "x is not a list of references"),
    ],
)
def test_a_producer_that_cannot_go_on_says_why_in_a_line(
    registry: SchemaRegistry,
    moldau_broker: Broker,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    refusal: tuple[str, str, str],
) -> None:
    options, line, complaint = refusal
    servers = f"--bootstrap-server {moldau_broker.bootstrap_servers}"
    words = f"{servers} --topic refused --property schema.registry.url={registry.url} {options}"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"{line}\n".encode())))
    assert avro_producer(shlex.split(words)) == 1
    assert complaint in capsys.readouterr().err


def test_a_registry_that_is_not_there_is_named(terminal: Terminal) -> None:
    command = "kafka-avro-console-producer --broker-list localhost:9092 --topic t --property value.schema='\"int\"'"
    done = terminal.run(f"{command} --property schema.registry.url=http://localhost:1", stdin="1\n")
    assert done.returncode == 1
    assert "the schema registry cannot be reached at http://localhost:1" in done.stderr
    done = terminal.run(f"{command} --property schema.registry.url=nonsense", stdin="1\n")
    assert "write http://host:port" in done.stderr


def test_a_record_without_a_schema_stops_the_consumer_unless_skipped(
    terminal: Terminal, moldau_broker: Broker, url: str
) -> None:
    producer = Producer({"bootstrap.servers": moldau_broker.bootstrap_servers})
    for value in (b"plain text", b"\x00\x00\x00\x03\xe7x", b"\x00"):
        producer.produce("mixed", value)
    assert producer.flush(30) == 0
    produce(terminal, "avro", "mixed", f"{url} --property value.schema='\"int\"'", ["5"])
    line = "kafka-avro-console-consumer --bootstrap-server localhost:9092 --new-consumer --topic mixed --from-beginning"
    stopped = terminal.run(f"{line} --max-messages 4 {url}")
    assert (stopped.returncode, stopped.stdout) == (0, "")
    assert "Unknown magic byte!" in stopped.stderr
    skipped = terminal.run(f"{line} --max-messages 4 {url} --skip-message-on-error")
    assert skipped.stdout == "5\n", skipped.stderr
    assert "Schema 999 not found" in skipped.stderr


def test_the_plain_consoles_take_the_classes_too(terminal: Terminal, url: str) -> None:
    terminal.output(
        "kafka-console-producer --bootstrap-server localhost:9092 --topic by-class "
        f"--line-reader io.confluent.kafka.formatter.AvroMessageReader {url} --property value.schema='\"int\"'",
        stdin="42\n",
    )
    shown = terminal.output(
        "kafka-console-consumer --bootstrap-server localhost:9092 --topic by-class --from-beginning --max-messages 1 "
        f"--formatter io.confluent.kafka.formatter.AvroMessageFormatter {url}"
    )
    assert shown == "42\n"


@pytest.mark.parametrize("kind", ["avro", "json-schema", "protobuf"])
@pytest.mark.parametrize("side", ["producer", "consumer"])
def test_the_help_teaches(kind: str, side: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert moldau([f"kafka-{kind}-console-{side}", "--help"]) == 1
    shown = capsys.readouterr().err
    assert f"Example: kafka-{kind}-console-{side}" in shown
    assert "schema.registry.url=" in shown


_READY = re.compile(r"schema registry started: http://\S+:(\d+)")


def test_a_registry_is_started_by_its_file_and_stopped_by_its_command(moldau_broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "schema-registry.properties"
    file.write_text(
        "listeners=http://127.0.0.1:0\n"
        f"kafkastore.bootstrap.servers=PLAINTEXT://{moldau_broker.bootstrap_servers}\n"
        "kafkastore.topic=_schemas_of_the_command\nschema.registry.group.id=command\n"
    )
    environment = {"XDG_RUNTIME_DIR": str(tmp_path)}
    program = ("-m", "moldau.cli.main", "schema-registry-start")
    with ServerProcess([str(file)], program=program, environment=environment) as server:
        wait_until(lambda: _READY.search(server.output) or server.has_ended, what="the start")
        found = _READY.search(server.output)
        assert found, server.output
        with Http(f"http://127.0.0.1:{found.group(1)}") as http:
            assert http.register("s", '"string"')["id"] == 1
        stop = ("-m", "moldau.cli.main", "schema-registry-stop")
        with ServerProcess([], program=stop, environment=environment) as stopping:
            assert stopping.wait() == 0, stopping.output
        assert server.wait() == 0
        assert "schema registry stopped" in server.output
    with ServerProcess([], program=stop, environment=environment) as stopping:
        assert stopping.wait() == 1
        assert "No schema registry to stop" in stopping.output


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("--override schema.compatibility.level=sideways", "schema.compatibility.level=sideways: use one of none"),
        ("--override listeners=ftp://x:1", "http://host:port"),
        ("--override listeners=https://x:1", "an https listener needs ssl.keystore.location"),
        ("--override listeners=http://x:y", "the port must be a number"),
        ("--override kafkastore.timeout.ms=soon", "kafkastore.timeout.ms"),
        ("--override moldau.registry.dialect=9", "must be one of 7.x, 8.x"),
        ("no-such-file.properties", "no-such-file.properties: no such file"),
    ],
)
def test_settings_that_cannot_work_are_one_clear_line(
    options: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert moldau(["registry", "--check-config", *options.split()]) == 1
    shown = capsys.readouterr().err
    assert complaint in shown
    assert len(shown.splitlines()) == 1


def test_the_shipped_file_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(__file__).parents[3] / "config" / "schema-registry.properties"
    assert moldau(["registry", "--check-config", str(file)]) == 0
    assert capsys.readouterr() == ("The configuration is valid.\n", "")
