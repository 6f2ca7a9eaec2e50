"""Topologies over Avro, JSON Schema and Protobuf, in memory and with a registry inside the test."""

from __future__ import annotations

import itertools
import socket
from typing import Any

import pytest

from moldau.client.mock_registry import mock_registry
from moldau.client.registered_schemas import RegistryTroubleError
from moldau.client.schema_registry import RegistryClient
from moldau.client.schema_serde import SchemaSerde
from moldau.core.errors import InvalidConfigError
from moldau.pipeline.cores.failures import DeserializationError, SerializationError, ServiceFailedError
from moldau.streams import (
    AvroSerde,
    BytesSerde,
    Consumed,
    Grouped,
    Joined,
    JsonSchemaSerde,
    LongSerde,
    Materialized,
    Produced,
    ProtobufSerde,
    StreamsBuilder,
    StringSerde,
    TimeWindowedSerde,
    TimeWindows,
    Topology,
    TopologyTestDriver,
)

TEXT = StringSerde()
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "customer", "type": "string"}, {"name": "amount", "type": "long"}],
}
TOTAL = {
    "type": "record",
    "name": "Total",
    "namespace": "shop",
    "fields": [{"name": "orders", "type": "long"}, {"name": "amount", "type": "long"}],
}
ORDER_JSON = {
    "title": "Order",
    "type": "object",
    "properties": {"customer": {"type": "string"}, "amount": {"type": "integer"}},
    "required": ["customer", "amount"],
}
TOTAL_JSON = {"title": "Total", "type": "object", "properties": {"orders": {"type": "integer"}}}
ORDER_PROTO = 'syntax = "proto3"; package shop; message Order { string customer = 1; int64 amount = 2; }'
TOTAL_PROTO = 'syntax = "proto3"; package shop; message Total { int64 orders = 1; int64 amount = 2; }'
_names = itertools.count()


@pytest.fixture
def config() -> dict[str, Any]:
    """Settings with a registry that nobody else knows."""
    return {"application.id": "shop", "schema.registry.url": f"mock://test-{next(_names)}"}


def order(customer: str, amount: int) -> dict[str, Any]:
    return {"customer": customer, "amount": amount}


def totals(orders: SchemaSerde, total: SchemaSerde) -> Topology:
    """The orders of each customer beyond 10, added up."""
    builder = StreamsBuilder()
    (
        builder.stream("orders", Consumed.with_(TEXT, orders))
        .filter(lambda key, value: value["amount"] > 10)
        .group_by(lambda key, value: value["customer"], Grouped.with_(TEXT, orders))
        .aggregate(
            lambda: {"orders": 0, "amount": 0},
            lambda key, value, sum: {"orders": sum["orders"] + 1, "amount": sum["amount"] + value["amount"]},
            Materialized.as_("totals").with_key_serde(TEXT).with_value_serde(total),
        )
        .to_stream()
        .to("totals", Produced.with_(TEXT, total))
    )
    return builder.build()


@pytest.mark.parametrize(
    ("orders", "total", "nothing"),
    [
        (AvroSerde(ORDER), AvroSerde(TOTAL), AvroSerde()),
        (JsonSchemaSerde(ORDER_JSON), JsonSchemaSerde(TOTAL_JSON), JsonSchemaSerde()),
        (ProtobufSerde(ORDER_PROTO), ProtobufSerde(TOTAL_PROTO), ProtobufSerde()),
    ],
    ids=["avro", "json", "protobuf"],
)
def test_records_with_a_schema_are_filtered_grouped_and_added_up(
    orders: SchemaSerde, total: SchemaSerde, nothing: SchemaSerde, config: dict[str, Any]
) -> None:
    # The topology is given no schema to read with, nor one for the repartitioned orders: those bring their own.
    with TopologyTestDriver(totals(nothing, total), config, partitions=2) as driver:
        source = driver.create_input_topic("orders", TEXT, orders)
        results = driver.create_output_topic("totals", TEXT, nothing)
        for customer, amount in (("ann", 20), ("bob", 5), ("ann", 30), ("cid", 2**40)):
            source.pipe_input(None, order(customer, amount))

        assert results.read_key_values_to_map() == {
            "ann": {"orders": 2, "amount": 50},
            "cid": {"orders": 1, "amount": 2**40},
        }
        assert driver.get_key_value_store("totals").get("ann") == {"orders": 2, "amount": 50}


def test_subjects_are_named_as_kafka_streams_names_them(config: dict[str, Any]) -> None:
    with TopologyTestDriver(totals(AvroSerde(), AvroSerde(TOTAL)), config) as driver:
        driver.create_input_topic("orders", TEXT, AvroSerde(ORDER)).pipe_input(None, order("ann", 20))
    assert subjects(config) == {
        "orders-value",
        "shop-totals-repartition-value",
        "shop-totals-changelog-value",
        "totals-value",
    }


def test_keys_and_values_may_name_their_subjects_differently(config: dict[str, Any]) -> None:
    key = {"type": "record", "name": "Id", "fields": [{"name": "id", "type": "int"}]}
    strategies = {
        "key.subject.name.strategy": "io.confluent.kafka.serializers.subject.RecordNameStrategy",
        "value.subject.name.strategy": "TopicRecordNameStrategy",
    }
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    defaults = {"default.key.serde": "avro", "default.value.serde": "GenericAvroSerde"}
    with TopologyTestDriver(builder.build(), config | strategies | defaults) as driver:
        serdes = AvroSerde(key), AvroSerde(ORDER)
        driver.create_input_topic("in", *serdes).pipe_input({"id": 7}, order("ann", 20))
        assert driver.create_output_topic("out", *serdes).read_key_value() == ({"id": 7}, order("ann", 20))
    assert subjects(config) == {"Id", "in-shop.Order", "out-shop.Order"}


def test_a_new_version_of_a_schema_comes_under_way(config: dict[str, Any]) -> None:
    newer = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": "-"}]}  # type: ignore[misc]
    builder = StreamsBuilder()
    table = builder.table("orders", Consumed.with_(TEXT, AvroSerde()), Materialized.as_("kept"))
    table.to_stream().to("copies", Produced.with_(TEXT, AvroSerde()))
    with TopologyTestDriver(builder.build(), config) as driver:
        old_input = driver.create_input_topic("orders", TEXT, AvroSerde(ORDER))
        new_input = driver.create_input_topic("orders", TEXT, AvroSerde(newer))
        old_input.pipe_input("a", order("ann", 20))
        new_input.pipe_input("b", order("bob", 30) | {"note": "gift"})
        old_input.pipe_input("c", order("cid", 40))

        copies = driver.create_output_topic("copies", TEXT, AvroSerde(reader_schema=newer))
        assert copies.read_values_to_list() == [
            order("ann", 20) | {"note": "-"},
            order("bob", 30) | {"note": "gift"},
            order("cid", 40) | {"note": "-"},
        ]
        assert driver.get_key_value_store("kept").get("b") == order("bob", 30) | {"note": "gift"}


def test_windowed_keys_and_joined_tables_have_schemas_too(config: dict[str, Any]) -> None:
    key, value, minute = AvroSerde(), AvroSerde(ORDER), 60_000
    builder = StreamsBuilder()
    names = builder.table("names", Consumed.with_(key, AvroSerde()))
    (
        builder.stream("orders", Consumed.with_(key, AvroSerde()))
        .join(names, lambda order, name: {**order, "customer": name}, joined=Joined.with_(key, value, AvroSerde()))
        .group_by_key(Grouped.with_(key, value))
        .windowed_by(TimeWindows.of_size_with_no_grace(minute))
        .count()
        .to_stream()
        .to("counts", Produced.with_(TimeWindowedSerde(key, minute), LongSerde()))
    )
    with TopologyTestDriver(builder.build(), config) as driver:
        driver.create_input_topic("names", key, key).pipe_input("a", "Ann", 0)
        driver.create_input_topic("orders", key, value).pipe_input("a", order("?", 1), 0)
        counts = driver.create_output_topic("counts", TimeWindowedSerde(key, minute), LongSerde())
        ((windowed, count),) = counts.read_key_values_to_list()
    assert (windowed.key, windowed.window.start, count) == ("a", 0, 1)


def test_tables_are_joined_by_foreign_keys_with_schemas(config: dict[str, Any]) -> None:
    key = AvroSerde({"type": "record", "name": "Id", "fields": [{"name": "id", "type": "int"}]})
    builder = StreamsBuilder()
    orders = builder.table("orders", Consumed.with_(key, AvroSerde()))
    names = builder.table("names", Consumed.with_(key, AvroSerde()))
    joined = orders.foreign_key_join(
        names,
        lambda order: {"id": int(order["customer"])},
        lambda order, name: {"orders": order["amount"], "amount": len(name)},
        materialized=Materialized.as_("joined").with_key_serde(key).with_value_serde(AvroSerde(TOTAL)),
    )
    joined.to_stream().to("joined", Produced.with_(key, AvroSerde(TOTAL)))
    with TopologyTestDriver(builder.build(), config, partitions=3) as driver:
        driver.create_input_topic("orders", key, AvroSerde(ORDER)).pipe_input({"id": 1}, order("7", 5))
        driver.create_input_topic("names", key, AvroSerde()).pipe_input({"id": 7}, "Ann")
        results = driver.create_output_topic("joined", key, AvroSerde()).read_key_values_to_list()
    assert results == [({"id": 1}, {"orders": 5, "amount": 3})]
    foreign = {subject for subject in subjects(config) if not subject.startswith(("shop-", "orders-", "names-"))}
    assert foreign == {"joined-key", "joined-value"}


def test_a_record_that_grew_needs_a_schema_of_its_own(config: dict[str, Any]) -> None:
    def grown(value: dict[str, Any]) -> dict[str, Any]:
        value["vat"] = 1
        return value

    with (
        TopologyTestDriver(copied(AvroSerde(), grown), config) as driver,
        pytest.raises(ServiceFailedError, match=r"out.*has got vat.*AvroSerde\(schema\)"),
    ):
        driver.create_input_topic("in", TEXT, AvroSerde(ORDER)).pipe_input("a", order("ann", 1))


def test_results_without_any_schema_are_refused_with_the_way_out(config: dict[str, Any]) -> None:
    with (
        TopologyTestDriver(copied(AvroSerde(), lambda value: {"new": 1}), config) as driver,
        pytest.raises(ServiceFailedError, match=r"subject out-value has none; write AvroSerde\(schema\)"),
    ):
        driver.create_input_topic("in", TEXT, AvroSerde(ORDER)).pipe_input("a", order("ann", 1))


def test_the_latest_version_is_used_where_that_is_asked_for(config: dict[str, Any]) -> None:
    register(config, "out-value", AvroSerde(TOTAL))
    settings = config | {"use.latest.version": "true", "auto.register.schemas": "false"}
    with TopologyTestDriver(copied(AvroSerde(), lambda value: {"orders": 1, "amount": 2}), settings) as driver:
        source = driver.create_input_topic("in", TEXT, AvroSerde(ORDER, auto_register=True, use_latest_version=False))
        source.pipe_input("a", order("ann", 1))
        assert driver.create_output_topic("out", TEXT, AvroSerde()).read_value() == {"orders": 1, "amount": 2}


def test_a_schema_that_may_not_be_registered_is_refused(config: dict[str, Any]) -> None:
    settings = config | {"auto.register.schemas": False}
    with (
        TopologyTestDriver(copied(AvroSerde(TOTAL)), settings) as driver,
        pytest.raises(
            RegistryTroubleError, match=r"not registered under subject in-value.*auto\.register\.schemas=true"
        ),
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
        (b"\x00\x00\x00\x00\x01\xff\xff", "no data of the Avro schema"),
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
        pytest.raises(SerializationError, match=r"test_schema_serdes\.py.*does not fit the Avro schema.*orders"),
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


def copied(results: SchemaSerde, change: Any = lambda value: value) -> Topology:
    builder = StreamsBuilder()
    values = builder.stream("in", Consumed.with_(TEXT, type(results)())).map_values(change)
    values.to("out", Produced.with_(TEXT, results))
    return builder.build()


def register(config: dict[str, Any], subject: str, serde: SchemaSerde) -> None:
    assert serde.options.schema is not None
    RegistryClient(config).register(subject, serde.schema_type, serde.options.schema)


def subjects(config: dict[str, Any]) -> set[str]:
    return set(mock_registry(config["schema.registry.url"]).ask("GET", "/subjects"))
