"""Topologies in memory with a real registry: what it refuses, what changes under way, what it knows afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from moldau.pipeline.cores.failures import DeserializationError, ServiceFailedError
from moldau.streams import (
    AvroSerde,
    BytesSerde,
    Consumed,
    JsonSchemaSerde,
    Materialized,
    Produced,
    ProtobufSerde,
    StreamsBuilder,
    StringSerde,
    Topology,
    TopologyTestDriver,
)
from moldau.testing.registry import SchemaRegistry

TEXT = StringSerde()
_numbers = count()


def avro(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "Reading", "fields": [{"name": "celsius", "type": "double"}, *fields]})


def kept(source: str, target: str, results: Any = None) -> Topology:
    builder = StreamsBuilder()
    table = builder.table(source, Consumed.with_(TEXT, AvroSerde()), Materialized.as_("kept"))
    table.to_stream().to(target, Produced.with_(TEXT, results or AvroSerde()))
    return builder.build()


@pytest.fixture
def topics() -> tuple[str, str]:
    number = next(_numbers)
    return f"readings-{number}", f"copies-{number}"


@pytest.fixture
def client(registry: SchemaRegistry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


@pytest.fixture
def config(registry: SchemaRegistry, topics: tuple[str, str]) -> dict[str, Any]:
    return {"application.id": f"app-{topics[0]}", "schema.registry.url": registry.url}


def test_a_version_that_is_registered_under_way_flows_through(
    client: SchemaRegistryClient, topics: tuple[str, str], config: dict[str, Any]
) -> None:
    source, target = topics
    newer = avro({"name": "place", "type": "string", "default": "?"})
    with TopologyTestDriver(kept(source, target), config) as driver:
        driver.create_input_topic(source, TEXT, AvroSerde(avro())).pipe_input("a", {"celsius": 20.0})
        driver.create_input_topic(source, TEXT, AvroSerde(newer)).pipe_input("b", {"celsius": 1.0, "place": "hall"})
        results = driver.create_output_topic(target, TEXT, AvroSerde()).read_values_to_list()

    assert results == [{"celsius": 20.0}, {"celsius": 1.0, "place": "hall"}]
    changelog = f"app-{source}-kept-changelog-value"
    assert {subject: client.get_versions(subject) for subject in (f"{target}-value", changelog)} == {
        f"{target}-value": [1, 2],
        changelog: [1, 2],
    }


def test_a_schema_that_the_registry_refuses_is_told_with_subject_and_way_out(
    client: SchemaRegistryClient, topics: tuple[str, str], config: dict[str, Any]
) -> None:
    source, target = topics
    client.register_schema(f"{target}-value", Schema(avro({"name": "place", "type": "string"}), "AVRO"))
    results = AvroSerde(avro({"name": "height", "type": "double"}))
    with (
        TopologyTestDriver(kept(source, target, results), config) as driver,
        pytest.raises(ServiceFailedError, match=rf"refuses subject {target}-value: .*incompatible.*needs a default"),
    ):
        driver.create_input_topic(source, TEXT, AvroSerde(avro())).pipe_input("a", {"celsius": 20.0})


def test_an_id_that_the_registry_does_not_know_is_the_records_fault(
    topics: tuple[str, str], config: dict[str, Any]
) -> None:
    source, target = topics
    bad = b"\x00\x00\x0f\xff\xffbody"
    with (
        TopologyTestDriver(kept(source, target), config) as driver,
        pytest.raises(DeserializationError, match=r"names schema 1048575, which the registry does not have"),
    ):
        driver.create_input_topic(source, TEXT, BytesSerde()).pipe_input("a", bad)
    with TopologyTestDriver(kept(source, target), config | {"deserialization.exception.handler": "continue"}) as driver:
        driver.create_input_topic(source, TEXT, BytesSerde()).pipe_input("a", bad)
        assert driver.produced_topic_names() == set()


def test_a_registry_that_went_away_is_missed_only_for_what_is_new(
    registry: SchemaRegistry, topics: tuple[str, str], config: dict[str, Any]
) -> None:
    source, target = topics
    with TopologyTestDriver(kept(source, target), config) as driver:
        known = driver.create_input_topic(source, TEXT, AvroSerde(avro()))
        known.pipe_input("a", {"celsius": 20.0})
        registry.stop()
        try:
            known.pipe_input("b", {"celsius": 21.0})
            with pytest.raises(ServiceFailedError, match=r"cannot be reached.*correct schema\.registry\.url"):
                driver.create_input_topic(source, TEXT, BytesSerde()).pipe_input("c", b"\x00\x00\x0f\xff\xfebody")
        finally:
            registry.start()
        assert len(driver.create_output_topic(target, TEXT, AvroSerde()).read_values_to_list()) == 2


def test_schemas_that_build_on_others_are_found(
    client: SchemaRegistryClient, topics: tuple[str, str], config: dict[str, Any]
) -> None:
    source, target = topics
    place = {"type": "record", "name": "Place", "fields": [{"name": "room", "type": "int"}]}
    client.register_schema(f"place-of-{source}", Schema(json.dumps(place), "AVRO"))
    references = [{"name": "Place", "subject": f"place-of-{source}", "version": 1}]
    serde = AvroSerde(avro({"name": "place", "type": "Place"}), references=references)
    with TopologyTestDriver(kept(source, target), config) as driver:
        driver.create_input_topic(source, TEXT, serde).pipe_input("a", {"celsius": 1.0, "place": {"room": 7}})
        assert driver.create_output_topic(target, TEXT, AvroSerde()).read_value()["place"] == {"room": 7}


@pytest.mark.parametrize(
    ("given", "nothing"),
    [
        (JsonSchemaSerde({"title": "Reading", "properties": {"celsius": {"type": "number"}}}), JsonSchemaSerde()),
        (ProtobufSerde('syntax = "proto3"; message Reading { double celsius = 1; }'), ProtobufSerde()),
    ],
    ids=["json", "protobuf"],
)
def test_the_other_formats_pass_through_the_real_registry_too(
    given: Any, nothing: Any, topics: tuple[str, str], config: dict[str, Any]
) -> None:
    source, target = topics
    builder = StreamsBuilder()
    builder.stream(source, Consumed.with_(TEXT, nothing)).to(target, Produced.with_(TEXT, nothing))
    with TopologyTestDriver(builder.build(), config) as driver:
        driver.create_input_topic(source, TEXT, given).pipe_input("a", {"celsius": 20.5})
        assert driver.create_output_topic(target, TEXT, nothing).read_value() == {"celsius": 20.5}
