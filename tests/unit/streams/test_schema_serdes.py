"""Topologies over Avro, JSON Schema and Protobuf, in memory and with a registry inside the test."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.streams.schema_topologies import (
    ORDER,
    ORDER_JSON,
    ORDER_PROTO,
    TEXT,
    TOTAL,
    TOTAL_JSON,
    TOTAL_PROTO,
    copied,
    new_settings,
    order,
    register,
    subjects,
    totals,
)

from moldau.serdes.schema_serde import SchemaSerde
from moldau.streams import (
    AvroSerde,
    BufferConfig,
    Consumed,
    Grouped,
    Joined,
    JoinWindows,
    JsonSchemaSerde,
    LongSerde,
    Materialized,
    Produced,
    ProtobufSerde,
    SessionWindows,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindowedSerde,
    TimeWindows,
    TopologyTestDriver,
)


@pytest.fixture
def config() -> dict[str, Any]:
    return new_settings()


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


def test_streams_with_two_schemas_are_joined_in_windows(config: dict[str, Any]) -> None:
    key, minute = AvroSerde(), 60_000
    builder = StreamsBuilder()
    names = builder.stream("names", Consumed.with_(key, AvroSerde()))
    (
        builder.stream("orders", Consumed.with_(key, AvroSerde()))
        .left_join(
            names,
            lambda order, name: {"orders": order["amount"], "amount": 0 if name is None else len(name)},
            JoinWindows.of_time_difference_with_no_grace(minute),
            joined=StreamJoined.with_(key, AvroSerde(), AvroSerde()),
        )
        .to("joined", Produced.with_(key, AvroSerde(TOTAL)))
    )
    with TopologyTestDriver(builder.build(), config) as driver:
        orders = driver.create_input_topic("orders", key, AvroSerde(ORDER))
        orders.pipe_input("a", order("ann", 5), 0)
        driver.create_input_topic("names", key, AvroSerde()).pipe_input("a", "Ann", 1)
        orders.pipe_input("b", order("bob", 6), 2)
        orders.pipe_input("late", order("eve", 7), 10 * minute)
        results = driver.create_output_topic("joined", key, AvroSerde()).read_key_values_to_list()
    assert results == [("a", {"orders": 5, "amount": 3}), ("b", {"orders": 6, "amount": 0})]


def test_regrouped_tables_and_suppressed_sessions_hold_records_with_schemas(config: dict[str, Any]) -> None:
    key, total, gap = AvroSerde(), AvroSerde(TOTAL), 1_000
    zero: dict[str, Any] = {"orders": 0, "amount": 0}

    def moved(sign: int) -> Any:
        return lambda _, order, sum: {
            "orders": sum["orders"] + sign,
            "amount": sum["amount"] + sign * order["amount"],
        }

    builder = StreamsBuilder()
    orders = builder.table("orders", Consumed.with_(key, AvroSerde()))
    (
        orders.group_by(lambda _, order: (order["customer"], order), Grouped.with_(key, AvroSerde(ORDER)))
        .aggregate(
            lambda: zero, moved(1), moved(-1), Materialized.as_("sums").with_key_serde(key).with_value_serde(total)
        )
        .to_stream()
        .to("sums", Produced.with_(key, total))
    )
    (
        builder.stream("visits", Consumed.with_(key, AvroSerde()))
        .group_by_key(Grouped.with_(key, AvroSerde()))
        .windowed_by(SessionWindows.of_inactivity_gap_with_no_grace(gap))
        .reduce(
            lambda first, second: second, Materialized.as_("last").with_key_serde(key).with_value_serde(AvroSerde())
        )
        .suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
        .to_stream()
        .map(lambda windowed, order: (windowed.key, order))
        .to("last", Produced.with_(key, AvroSerde()))
    )
    with TopologyTestDriver(builder.build(), config | {"statestore.cache.max.bytes": 0}) as driver:
        table = driver.create_input_topic("orders", key, AvroSerde(ORDER))
        table.pipe_input("1", order("ann", 5), 0)
        table.pipe_input("1", order("bob", 6), 0)
        visits = driver.create_input_topic("visits", key, AvroSerde(ORDER))
        for amount, at in ((1, 0), (2, 500), (3, 10_000)):
            visits.pipe_input("a", order("ann", amount), at)
        sums = driver.create_output_topic("sums", key, total).read_key_values_to_map()
        last = driver.create_output_topic("last", key, AvroSerde()).read_key_values_to_list()
    assert sums == {"ann": zero, "bob": {"orders": 1, "amount": 6}}
    assert last == [("a", order("ann", 2))]


def test_the_latest_version_is_used_where_that_is_asked_for(config: dict[str, Any]) -> None:
    register(config, "out-value", AvroSerde(TOTAL))
    settings = config | {"use.latest.version": "true", "auto.register.schemas": "false"}
    with TopologyTestDriver(copied(AvroSerde(), lambda value: {"orders": 1, "amount": 2}), settings) as driver:
        source = driver.create_input_topic("in", TEXT, AvroSerde(ORDER, auto_register=True, use_latest_version=False))
        source.pipe_input("a", order("ann", 1))
        assert driver.create_output_topic("out", TEXT, AvroSerde()).read_value() == {"orders": 1, "amount": 2}
