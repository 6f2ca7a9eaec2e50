"""What stops a topology over records with a schema, what is skipped, and in which words."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from tests.unit.streams.schema_topologies import (
    ORDER,
    ORDER_PROTO,
    TEXT,
    TOTAL,
    copied,
    new_settings,
    order,
    register,
)

from moldau.core.errors import InvalidConfigError
from moldau.pipeline.cores.failures import DeserializationError, SerializationError, ServiceFailedError
from moldau.serdes.schema_serde import SchemaSerde
from moldau.serdes.schema_source import SchemaSourceError
from moldau.streams import (
    AvroSerde,
    BytesSerde,
    ProtobufSerde,
    TopologyTestDriver,
)


@pytest.fixture
def config() -> dict[str, Any]:
    return new_settings()


def test_a_record_that_grew_needs_a_schema_of_its_own(config: dict[str, Any]) -> None:
    def grown(value: dict[str, Any]) -> dict[str, Any]:
        value["vat"] = 1
        return value

    with (
        TopologyTestDriver(copied(AvroSerde(), grown), config) as driver,
        pytest.raises(ServiceFailedError, match=r"out.*has vat.*AvroSerde\(schema\)"),
    ):
        driver.create_input_topic("in", TEXT, AvroSerde(ORDER)).pipe_input("a", order("ann", 1))


def test_results_without_any_schema_are_refused_with_the_way_out(config: dict[str, Any]) -> None:
    with (
        TopologyTestDriver(copied(AvroSerde(), lambda value: {"new": 1}), config) as driver,
        pytest.raises(ServiceFailedError, match=r"subject out-value has none; write AvroSerde\(schema\)"),
    ):
        driver.create_input_topic("in", TEXT, AvroSerde(ORDER)).pipe_input("a", order("ann", 1))


def test_a_schema_that_may_not_be_registered_is_refused(config: dict[str, Any]) -> None:
    settings = config | {"auto.register.schemas": False}
    with (
        TopologyTestDriver(copied(AvroSerde(TOTAL)), settings) as driver,
        pytest.raises(SchemaSourceError, match=r"not registered under subject in-value.*auto\.register\.schemas=true"),
    ):
        driver.create_input_topic("in", TEXT, AvroSerde(ORDER)).pipe_input("a", order("ann", 1))


def test_a_schema_that_does_not_fit_the_ones_before_stops_the_pipeline(config: dict[str, Any]) -> None:
    register(config, "out-value", AvroSerde(TOTAL))
    settings = config | {"processing.exception.handler": "continue", "deserialization.exception.handler": "continue"}
    with (
        TopologyTestDriver(copied(AvroSerde(ORDER)), settings) as driver,
        pytest.raises(ServiceFailedError, match=r"refuses subject out-value.*incompatible.*new field needs a default"),
    ):
        driver.create_input_topic("in", TEXT, AvroSerde(ORDER)).pipe_input("a", order("ann", 1))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"\x00\x00\x00\x03\xe7body", "schema 999, which the registry does not have"),
        (b'{"customer":"ann"}', "Unknown magic byte"),
        (b"\x00\x00", "too few"),
        (b"", "magic byte"),
        (b"\x00\x00\x00\x00\x01\xff\xff", "do not match the Avro schema"),
    ],
    ids=["unknown-id", "no-magic", "cut", "empty", "garbled"],
)
def test_bytes_that_are_no_record_are_skipped_or_stop_the_pipeline(
    data: bytes, told: str, config: dict[str, Any]
) -> None:
    register(config, "in-value", AvroSerde(ORDER))
    with TopologyTestDriver(copied(AvroSerde()), config) as driver, pytest.raises(DeserializationError, match=told):
        driver.create_input_topic("in", TEXT, BytesSerde()).pipe_input("a", data)
    lenient = config | {"default.deserialization.exception.handler": "LogAndContinueExceptionHandler"}
    with TopologyTestDriver(copied(AvroSerde()), lenient) as driver:
        driver.create_input_topic("in", TEXT, BytesSerde()).pipe_input("a", data)
        driver.create_input_topic("in", TEXT, AvroSerde(ORDER)).pipe_input("b", order("bob", 2))
        assert driver.create_output_topic("out", TEXT, AvroSerde()).read_key_values_to_list() == [
            ("b", order("bob", 2))
        ]


def test_a_registry_that_is_not_there_stops_even_a_lenient_pipeline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    config = {
        "schema.registry.url": f"http://127.0.0.1:{port}",
        "default.deserialization.exception.handler": "continue",
        "processing.exception.handler": "continue",
        "errors.dead.letter.queue.topic.name": "dead",
    }
    with TopologyTestDriver(copied(AvroSerde()), config) as driver:
        with pytest.raises(ServiceFailedError, match=r"in, partition 0.*cannot be reached at .*schema\.registry\.url"):
            driver.create_input_topic("in", TEXT, BytesSerde()).pipe_input("a", b"\x00\x00\x00\x00\x01body")
        assert driver.produced_topic_names() == set()


def test_a_result_that_does_not_fit_its_schema_is_told_with_its_line(config: dict[str, Any]) -> None:
    with (
        TopologyTestDriver(copied(AvroSerde(TOTAL)), config) as driver,
        pytest.raises(SerializationError, match=r"schema_topologies\.py.*does not fit the Avro schema.*orders"),
    ):
        driver.create_input_topic("in", TEXT, AvroSerde(ORDER)).pipe_input("a", order("ann", 1))


@pytest.mark.parametrize(
    ("serde", "settings", "told"),
    [
        (AvroSerde(), {}, r"schema\.registry\.url is missing"),
        (AvroSerde("{"), {"schema.registry.url": "mock://x"}, "schema of AvroSerde cannot be used"),
        (ProtobufSerde(ORDER_PROTO, message="Bill"), {"schema.registry.url": "mock://x"}, "no message 'Bill'"),
        (AvroSerde(), {"schema.registry.url": "ftp://x"}, "write http://host:port"),
        (AvroSerde(), {"schema.registry.url": "mock://x", "use.latest.version": "maybe"}, "not true or false"),
        (AvroSerde(subject_name_strategy="Mine"), {"schema.registry.url": "mock://x"}, "not a subject name strategy"),
    ],
    ids=["no-url", "no-schema", "no-message", "odd-url", "odd-flag", "odd-strategy"],
)
def test_settings_that_can_never_work_are_refused_before_the_first_record(
    serde: SchemaSerde, settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidConfigError, match=told):
        TopologyTestDriver(copied(serde), settings)
