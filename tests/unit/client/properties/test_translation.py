"""Java's properties in librdkafka's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.client.connection import build, load_properties, normalize_servers
from moldau.client.properties.translation import translate
from moldau.core.errors import InvalidConfigError


@pytest.mark.parametrize(
    ("java", "librdkafka"),
    [
        ({"fetch.max.wait.ms": "100"}, {"fetch.wait.max.ms": "100"}),
        ({"max.partition.fetch.bytes": "9"}, {"max.partition.fetch.bytes": "9"}),
        ({"receive.buffer.bytes": "9"}, {"socket.receive.buffer.bytes": "9"}),
        ({"request.timeout.ms": "1500"}, {"socket.timeout.ms": "1500"}),
        ({"auto.offset.reset": "none"}, {"auto.offset.reset": "error"}),
        ({"auto.offset.reset": "Earliest"}, {"auto.offset.reset": "earliest"}),
        (
            {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.RoundRobinAssignor"},
            {"partition.assignment.strategy": "roundrobin"},
        ),
        (
            {
                "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor,"
                "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
            },
            {"partition.assignment.strategy": "range"},
        ),
        (
            {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"},
            {"partition.assignment.strategy": "cooperative-sticky"},
        ),
    ],
)
def test_consumer_keys(java: dict[str, str], librdkafka: dict[str, str]) -> None:
    settings = translate(java, "consumer").settings
    assert {key: settings.get(key) for key in librdkafka} == librdkafka


@pytest.mark.parametrize(
    ("java", "librdkafka"),
    [
        ({"buffer.memory": "33554432"}, {"queue.buffering.max.kbytes": "32768", "queue.buffering.max.messages": "0"}),
        ({"max.request.size": "5"}, {"message.max.bytes": "5"}),
        ({"request.timeout.ms": "1500"}, {"socket.timeout.ms": "1500", "request.timeout.ms": "1500"}),
        ({"batch.size": "0"}, {"batch.num.messages": "1"}),
        ({"compression.zstd.level": "7"}, {"compression.level": "7"}),
        ({}, {"partitioner": "murmur2_random", "acks": "all", "enable.idempotence": "true", "linger.ms": "5"}),
        ({"partitioner.ignore.keys": "true"}, {"partitioner": "random"}),
    ],
)
def test_producer_keys(java: dict[str, str], librdkafka: dict[str, str]) -> None:
    settings = translate(java, "producer").settings
    assert {key: settings.get(key) for key in librdkafka} == librdkafka


def test_a_consumer_reads_uncommitted_records_as_javas_does() -> None:
    assert translate({}, "consumer").settings["isolation.level"] == "read_uncommitted"


def test_keys_for_the_tool_itself_stay_with_it() -> None:
    translated = translate(
        {"max.block.ms": "5", "key.deserializer": "x", "auto.offset.reset": "by_duration:PT1H"}, "consumer"
    )
    assert translated.own == {"max.block.ms": "5", "key.deserializer": "x", "auto.offset.reset": "by_duration:PT1H"}
    assert not {"max.block.ms", "key.deserializer"} & set(translated.settings)


@pytest.mark.parametrize("conflict", [{"acks": "1"}, {"retries": "0"}, {"max.in.flight.requests.per.connection": "6"}])
def test_idempotence_yields_unless_it_was_asked_for(conflict: dict[str, str]) -> None:
    assert translate(conflict, "producer").settings["enable.idempotence"] == "false"
    with pytest.raises(InvalidConfigError, match="idempotent producer was asked for"):
        translate({**conflict, "enable.idempotence": "true"}, "producer")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("interceptor.classes", "com.acme.Spy"),
        ("partitioner.class", "com.acme.Partitioner"),
        ("partition.assignment.strategy", "org.apache.kafka.clients.consumer.StickyAssignor"),
        ("ssl.engine.factory.class", "com.acme.Factory"),
    ],
)
def test_what_cannot_be_translated_is_named(key: str, value: str) -> None:
    warnings = translate({key: value}, "consumer" if "assignment" in key else "producer").warnings
    assert any(key in warning for warning in warnings)


def test_an_impossible_reset_policy_is_refused() -> None:
    with pytest.raises(InvalidConfigError, match=r"auto\.offset\.reset"):
        translate({"auto.offset.reset": "yesterday"}, "consumer")


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        (
            'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b c;";',
            {"sasl.username": "a", "sasl.password": "b c;"},
        ),
        (
            "org.apache.kafka.common.security.scram.ScramLoginModule required username=a password=b;",
            {"sasl.username": "a", "sasl.password": "b"},
        ),
        (
            'com.sun.security.auth.module.Krb5LoginModule required keyTab="/k" principal="p@R";',
            {"sasl.kerberos.keytab": "/k", "sasl.kerberos.principal": "p@R"},
        ),
    ],
)
def test_jaas_lines_become_settings(line: str, settings: dict[str, str]) -> None:
    found = translate({"sasl.jaas.config": line}, "admin").settings
    assert found == settings


def test_an_unknown_login_module_is_named() -> None:
    with pytest.raises(InvalidConfigError, match=r"com\.acme\.Login"):
        translate({"sasl.jaas.config": "com.acme.Login required;"}, "admin")


def test_pem_stores_pass_by_location_and_by_text() -> None:
    given = {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem", "ssl.keystore.key": "KEY"}
    found = translate({**given, "ssl.keystore.certificate.chain": "CERT"}, "admin").settings
    assert found == {"ssl.ca.location": "/ca.pem", "ssl.key.pem": "KEY", "ssl.certificate.pem": "CERT"}
    assert translate({"ssl.endpoint.identification.algorithm": ""}, "admin").settings == {
        "ssl.endpoint.identification.algorithm": "none"
    }


@pytest.mark.parametrize(
    ("written", "servers"),
    [
        ("localhost:9092", "localhost:9092"),
        ("a:1, b:2,  c:3", "a:1,b:2,c:3"),
        ("0.0.0.0:2181/kafka", "127.0.0.1:2181"),
        ("[::1]:9092", "[::1]:9092"),
        ("PLAINTEXT://h:1", "h:1"),
    ],
)
def test_bootstrap_servers_are_tidied(written: str, servers: str) -> None:
    assert normalize_servers(written) == servers


@pytest.mark.parametrize("written", ["", "localhost", ":9092", "h:0", "h:99999", "h:port"])
def test_what_is_no_address_is_refused(written: str) -> None:
    with pytest.raises(InvalidConfigError):
        normalize_servers(written)


def test_unknown_properties_are_left_out_with_a_warning() -> None:
    from confluent_kafka import Producer

    said: list[str] = []
    properties = {"bootstrap.servers": "localhost:1", "no.such.thing": "1"}
    producer, _ = build(Producer, "producer", properties, report=lambda level, text: said.append(text), title="x")
    assert producer is not None
    assert "no.such.thing has no counterpart here and is left out" in said


def test_a_value_librdkafka_refuses_is_one_line() -> None:
    from confluent_kafka import Producer

    with pytest.raises(InvalidConfigError, match="brotli"):
        build(Producer, "producer", {"compression.type": "brotli"}, report=lambda level, text: None, title="x")


def test_a_properties_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="No such file"):
        load_properties(str(tmp_path / "nothing"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidConfigError, match="not a text file"):
        load_properties(str(tmp_path / "binary"))


def test_a_transactional_producer_remembers_its_brokers_while_all_are_away() -> None:
    transactional = translate({"transactional.id": "t"}, "producer").settings

    assert transactional["metadata.recovery.strategy"] == "none"
    assert "metadata.recovery.strategy" not in translate({}, "producer").settings
    chosen = translate({"transactional.id": "t", "metadata.recovery.strategy": "rebootstrap"}, "producer").settings
    assert chosen["metadata.recovery.strategy"] == "rebootstrap"
