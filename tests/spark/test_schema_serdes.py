"""Avro, JSON Schema and Protobuf on real Spark, over the embedded broker and registry.

Confluent's own serializers write the orders and its deserializers read the totals.
"""

from __future__ import annotations

import json
import socket
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass

from moldau.client import prepared_serde
from moldau.core.errors import MoldauError
from moldau.pipeline.runtime.engine import Engine
from moldau.serdes.schema_serde import SchemaSerde
from moldau.streams import (
    AvroSerde,
    Consumed,
    Grouped,
    JsonSchemaSerde,
    KafkaStreams,
    LongSerde,
    Materialized,
    Produced,
    ProtobufSerde,
    State,
    StreamsBuilder,
    Topology,
    TopologyTestDriver,
    value,
)
from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 120.0
ORDER_FIELDS, TOTAL_FIELDS = {"customer": "string", "amount": "long"}, {"orders": "long", "amount": "long"}


def avro(name: str, fields: dict[str, str]) -> str:
    return json.dumps(
        {"type": "record", "name": name, "fields": [{"name": one, "type": kind} for one, kind in fields.items()]}
    )


def json_schema(name: str, fields: dict[str, str]) -> str:
    kinds = {"string": "string", "long": "integer"}
    properties = {one: {"type": kinds[kind]} for one, kind in fields.items()}
    return json.dumps({"title": name, "type": "object", "properties": properties, "required": list(fields)})


def proto(name: str, fields: dict[str, str]) -> str:
    kinds = {"string": "string", "long": "int64"}
    lines = [f"{kinds[kind]} {one} = {number};" for number, (one, kind) in enumerate(fields.items(), 1)]
    return f'syntax = "proto3"; message {name} {{ {" ".join(lines)} }}'


def message_class(name: str, fields: dict[str, str]) -> Any:
    """The class that a Protobuf compiler would make of `proto`."""
    kinds = {"string": FieldDescriptorProto.TYPE_STRING, "long": FieldDescriptorProto.TYPE_INT64}
    file = FileDescriptorProto(name=f"{name}.proto", syntax="proto3")
    message = file.message_type.add(name=name)
    for number, (one, kind) in enumerate(fields.items(), 1):
        message.field.add(name=one, number=number, type=kinds[kind], label=FieldDescriptorProto.LABEL_OPTIONAL)
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(name))


@dataclass(frozen=True)
class Format:
    """One of the three, with our serdes and Confluent's."""

    name: str
    serde: Callable[..., SchemaSerde]
    schema: Callable[[str, dict[str, str]], str]

    def outsiders_bytes(self, client: SchemaRegistryClient, topic: str, order: dict[str, Any]) -> bytes:
        text, context = self.schema("Order", ORDER_FIELDS), SerializationContext(topic, MessageField.VALUE)
        written: bytes
        match self.name:
            case "avro":
                written = AvroSerializer(client, text)(order, context)
            case "json":
                written = JSONSerializer(text, client)(order, context)
            case _:
                kind = message_class("Order", ORDER_FIELDS)
                written = ProtobufSerializer(kind, client)(ParseDict(order, kind()), context)
        return written

    def outsiders_value(self, client: SchemaRegistryClient, topic: str, data: bytes) -> Any:
        context = SerializationContext(topic, MessageField.VALUE)
        match self.name:
            case "avro":
                return AvroDeserializer(client)(data, context)
            case "json":
                text = self.schema("Total", TOTAL_FIELDS)
                return JSONDeserializer(text, schema_registry_client=client)(data, context)
        read = ProtobufDeserializer(message_class("Total", TOTAL_FIELDS), schema_registry_client=client)
        return {one: int(value) for one, value in MessageToDict(read(data, context)).items()}


FORMATS = [
    Format("avro", AvroSerde, avro),
    Format("json", JsonSchemaSerde, json_schema),
    Format("protobuf", ProtobufSerde, proto),
]


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_outsiders_write_what_a_pipeline_reads_and_read_what_it_writes(
    format: Format,
    broker: Broker,
    registry: SchemaRegistry,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    with SchemaRegistryClient({"url": registry.url}) as client:
        orders, totals = f"{format.name}-orders", f"{format.name}-totals"
        make_topics(broker, orders, totals)
        for customer, amount in (("ann", 20), ("bob", 5), ("ann", 30), ("cid", 2**40)):
            value = format.outsiders_bytes(client, orders, {"customer": customer, "amount": amount})
            produce(broker, orders, value)
        config = settings(broker, registry.url, tmp_path, format.name)

        with KafkaStreams(added_up(format, orders, totals), config, engine=Engine(spark=spark)) as streams:
            streams.start()
            records = read(broker, totals, 3)
            found = [(key, format.outsiders_value(client, totals, value)) for key, value in records]
            in_process = streams.store("totals").get("ann")
            over_http = fetched(f"http://127.0.0.1:{streams.server_port}/stores/totals/ann")

        assert sorted(found, key=lambda entry: (str(entry[0]), entry[1]["orders"])) == [
            ("ann", {"orders": 1, "amount": 20}),
            ("ann", {"orders": 2, "amount": 50}),
            ("cid", {"orders": 1, "amount": 2**40}),
        ]
        assert in_process == over_http["value"] == {"orders": 2, "amount": 50}
        assert over_http["key"] == "ann"
        subjects = set(client.get_subjects())
        assert {f"shop-{format.name}-totals-changelog-value", f"{totals}-value", f"{totals}-key"} <= subjects


def test_a_version_that_is_registered_while_spark_runs_flows_through(
    broker: Broker, registry: SchemaRegistry, spark: SparkSession, tmp_path: Path
) -> None:
    make_topics(broker, "changing", "changed")
    builder = StreamsBuilder()
    kept = builder.table("changing", Consumed.with_(AvroSerde(), AvroSerde()), Materialized.as_("kept"))
    kept.to_stream().to("changed", Produced.with_(AvroSerde(), AvroSerde()))
    config = settings(broker, registry.url, tmp_path, "changing")
    key = prepared_serde(AvroSerde(), config, "key").serialize("changing", "k")
    old = json.loads(avro("Order", ORDER_FIELDS))
    new = {**old, "fields": [*old["fields"], {"name": "note", "type": "string", "default": "-"}]}
    found = []

    with KafkaStreams(builder.build(), config, engine=Engine(spark=spark)) as streams:
        streams.start()
        for count, (schema, value) in enumerate(
            [(old, {"customer": "ann", "amount": 1}), (new, {"customer": "ann", "amount": 2, "note": "gift"})], 1
        ):
            writer = prepared_serde(AvroSerde(schema), config, "value")
            produce(broker, "changing", writer.serialize("changing", value), key)
            found.append(
                prepared_serde(AvroSerde(), config, "value").deserialize("", read(broker, "changed", count)[-1][1])
            )

    assert found == [{"customer": "ann", "amount": 1}, {"customer": "ann", "amount": 2, "note": "gift"}]


def test_expressions_and_cached_counts_run_over_records_with_a_schema(
    registry: SchemaRegistry, spark: SparkSession
) -> None:
    # Both would run natively over plain records; what they give must not depend on that.
    key, order = AvroSerde(), AvroSerde(avro("Order", ORDER_FIELDS))
    builder = StreamsBuilder()
    (
        builder.stream("expressed-in", Consumed.with_(key, AvroSerde()))
        .filter(value["amount"] > 10)
        .group_by_key(Grouped.with_(key, AvroSerde()))
        .count(Materialized.as_("counts").with_key_serde(key))
        .to_stream()
        .to("expressed-out", Produced.with_(key, LongSerde()))
    )
    config = {"application.id": "expressed", "schema.registry.url": registry.url}
    with TopologyTestDriver(builder.build(), config, engine="spark", partitions=2) as driver:
        source = driver.create_input_topic("expressed-in", key, order)
        for customer, amount in (("ann", 20), ("bob", 5), ("ann", 30), ("cid", 40)):
            source.pipe_input(customer, {"customer": customer, "amount": amount})
        results = driver.create_output_topic("expressed-out", key, LongSerde())
        assert results.read_key_values_to_map() == {"ann": 2, "cid": 1}


def test_a_registry_that_is_not_there_stops_the_application(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    make_topics(broker, "lost-orders", "lost-totals")
    produce(broker, "lost-orders", b"\x00\x00\x00\x00\x01body")
    config = settings(broker, url, tmp_path, "lost") | {"default.deserialization.exception.handler": "continue"}

    with KafkaStreams(
        added_up(FORMATS[0], "lost-orders", "lost-totals"), config, engine=Engine(spark=spark)
    ) as streams:
        streams.start()
        with pytest.raises(
            MoldauError, match=r"lost-orders, partition 0, offset 0.*registry cannot be reached at http"
        ):
            streams.wait(PATIENCE_S)
        assert streams.state is State.ERROR


def added_up(format: Format, orders: str, totals: str) -> Topology:
    """The orders of each customer beyond 10; keys are Avro, which is at home in all three tests."""
    key, total = AvroSerde(), format.serde(format.schema("Total", TOTAL_FIELDS))
    builder = StreamsBuilder()
    (
        builder.stream(orders, Consumed.with_(key, format.serde()))
        .filter(lambda _, order: order["amount"] > 10)
        .group_by(lambda _, order: order["customer"], Grouped.with_(key, format.serde()))
        .aggregate(
            lambda: {"orders": 0, "amount": 0},
            lambda _, order, sum: {"orders": sum["orders"] + 1, "amount": sum["amount"] + order["amount"]},
            Materialized.as_("totals").with_key_serde(key).with_value_serde(total),
        )
        .to_stream()
        .to(totals, Produced.with_(key, total))
    )
    return builder.build()


def settings(broker: Broker, registry_url: str, folder: Path, name: str) -> dict[str, str]:
    return {
        "application.id": f"shop-{name}",
        "application.server": "127.0.0.1:0",
        "bootstrap.servers": broker.bootstrap_servers,
        "schema.registry.url": registry_url,
        "processing.guarantee": "exactly_once_v2",
        "statestore.cache.max.bytes": "0",
        "state.dir": str(folder),
    }


def make_topics(broker: Broker, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for created in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        created.result(10)


def produce(broker: Broker, topic: str, value: bytes, key: bytes | None = None) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(topic, value=value, key=key)
    assert producer.flush(10) == 0


def read(broker: Broker, topic: str, count: int) -> list[tuple[str, bytes]]:
    """Records with the text of their keys, which is behind the schema's id and its own length."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "test", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[str, bytes]] = []
    while len(found) < count:
        record = consumer.poll(PATIENCE_S)
        assert record is not None, f"after {PATIENCE_S:.0f} s only {found}"
        assert record.error() is None
        found.append((record.key()[6:].decode(), record.value()))
    consumer.close()
    return found


def fetched(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)
