"""One serde object goes through a producer, a consumer, a topology and the consoles, and means the same everywhere."""

from __future__ import annotations

import json
import uuid
from functools import partial
from itertools import count
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from tests.integration.cli_commands import Terminal

from moldau.client import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    FLOAT,
    INT,
    JSON,
    LONG,
    SHORT,
    STRING,
    UUID,
    AvroSerde,
    Consumer,
    JsonSchemaSerde,
    ListSerde,
    Producer,
    ProtobufSerde,
    SchemaRegistryError,
    SerializationError,
    SessionWindowedSerde,
    TimeWindowedSerde,
    TopicPartition,
    Window,
    Windowed,
)
from moldau.streams import Consumed, Produced, StreamsBuilder, TopologyTestDriver
from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
ORDER_JSON = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}
ORDER_PROTO = 'syntax = "proto3"; message Order { int64 id = 1; }'
SOME_UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")
PATIENCE_S = 30.0
_numbers = count()

CONFLUENT = "io.confluent.kafka.serializers"
CASES: dict[str, tuple[Any, Any, str, str]] = {
    # What is sent, how a console's deserializer is named, and what it prints.
    "string": (STRING, "čaj", "String", "čaj"),
    "bytes": (BYTES, b"raw", "ByteArray", "raw"),
    "short": (SHORT, -2, "Short", "-2"),
    "int": (INT, 258, "org.apache.kafka.common.serialization.IntegerDeserializer", "258"),
    "long": (LONG, -5, "Long", "-5"),
    "float": (FLOAT, 0.5, "Float", "0.5"),
    "double": (DOUBLE, 1e10, "Double", "1.0E10"),
    "boolean": (BOOLEAN, True, "Boolean", "true"),
    "uuid": (UUID, SOME_UUID, "UUID", str(SOME_UUID)),
    "json": (JSON, {"a": [1, None]}, "json", '{"a":[1,null]}'),
    "list": (ListSerde(LONG), [1, None], "List --property default.list.value.serde.inner=long", "[1, null]"),
    "time-windowed": (
        TimeWindowedSerde(STRING, 10),
        Windowed("k", Window(20, 30)),
        "TimeWindowed --property value.deserializer.window.size.ms=10",
        "[k@20/30]",
    ),
    "session-windowed": (
        SessionWindowedSerde(LONG),
        Windowed(7, Window(20, 30)),
        "SessionWindowed --property value.deserializer.windowed.inner.class.serde=Long",
        "[7@20/30]",
    ),
    "avro": (AvroSerde(ORDER), {"id": 7}, f"{CONFLUENT}.KafkaAvroDeserializer", '{"id":7}'),
    "json-schema": (
        JsonSchemaSerde(ORDER_JSON),
        {"id": 7},
        f"{CONFLUENT}.json.KafkaJsonSchemaDeserializer",
        '{"id":7}',
    ),
    "protobuf": (ProtobufSerde(ORDER_PROTO), {"id": 7}, "protobuf", '{"id":7}'),
}
TYPED = {
    # What a line says, and what the console's serializer makes of it.
    "long": (LONG, "Long", "42", 42),
    "double": (DOUBLE, "Double", "1.5", 1.5),
    "uuid": (UUID, "UUID", str(SOME_UUID), SOME_UUID),
    "json": (JSON, "json", '{"a": 1}', {"a": 1}),
    "avro": (AvroSerde(ORDER), f"{CONFLUENT}.KafkaAvroSerializer", '{"id": 9}', {"id": 9}),
}


@pytest.fixture
def topic() -> str:
    return f"one-serde-{next(_numbers)}"


@pytest.fixture
def settings(registry: SchemaRegistry) -> dict[str, object]:
    return {"schema.registry.url": registry.url}


def first(servers: str, topic: str, serde: Any, settings: dict[str, object]) -> Any:
    consumer = Consumer[Any, Any](servers, settings, key_deserializer=serde, value_deserializer=serde)
    with consumer:
        consumer.assign({TopicPartition(topic, 0): 0})
        record = next(iter(consumer))
        return record.key, record.value


@pytest.mark.parametrize("name", CASES)
def test_client_topology_and_console_agree(
    moldau_broker: Broker, topic: str, settings: dict[str, object], name: str
) -> None:
    serde, value, deserializer, shown = CASES[name]
    servers = moldau_broker.bootstrap_servers
    with Producer(servers, settings, key_serializer=serde, value_serializer=serde) as producer:
        producer.send(topic, value, key=value)
    assert first(servers, topic, serde, settings) == (value, value)

    builder = StreamsBuilder()
    builder.stream(topic, Consumed.with_(serde, serde)).to(f"{topic}-copy", Produced.with_(serde, serde))
    with TopologyTestDriver(builder.build(), {"application.id": topic, **settings}) as driver:
        driver.create_input_topic(topic, serde, serde).pipe_input(value, value)
        assert driver.create_output_topic(f"{topic}-copy", serde, serde).read_key_value() == (value, value)

    printed = Terminal(moldau_broker).output(
        f"kafka-console-consumer --bootstrap-server localhost:9092 --topic {topic} --from-beginning --max-messages 1 "
        f"--property schema.registry.url={settings['schema.registry.url']} --value-deserializer {deserializer}"
    )
    assert printed.splitlines()[0] == shown


@pytest.mark.parametrize("name", TYPED)
def test_a_console_writes_what_a_client_reads(
    moldau_broker: Broker, topic: str, settings: dict[str, object], name: str
) -> None:
    serde, serializer, line, value = TYPED[name]
    servers, url = moldau_broker.bootstrap_servers, settings["schema.registry.url"]
    if name == "avro":
        # A console's serializer has no schema of its own: it writes with the latest one.
        with Producer(servers, settings, key_serializer=serde, value_serializer=serde) as producer:
            producer.send(topic, {"id": 1}, key={"id": 1}, partition=0)
    Terminal(moldau_broker).output(
        f"kafka-console-producer --bootstrap-server localhost:9092 --topic {topic} --property parse.key=true "
        f"--property key.separator=| --property key.serializer={serializer} --property value.serializer={serializer} "
        f"--property schema.registry.url={url}",
        stdin=f"{line}|{line}\n",
    )
    with Consumer[Any, Any](servers, settings, key_deserializer=serde, value_deserializer=serde) as consumer:
        consumer.assign({TopicPartition(topic, 0): 1 if name == "avro" else 0})
        record = next(iter(consumer))
    assert (record.key, record.value) == (value, value)


def test_text_that_is_no_number_stops_the_console_with_its_line(moldau_broker: Broker, topic: str) -> None:
    done = Terminal(moldau_broker).run(
        f"kafka-console-producer --bootstrap-server localhost:9092 --topic {topic} --property value.serializer=Long",
        stdin="1\nmany\n",
    )
    assert done.returncode != 0
    assert f"Line 2: topic {topic}: the value cannot be serialized: 'many' is not a long" in done.stderr


def test_bytes_of_another_type_are_told_with_record_and_part(moldau_broker: Broker, topic: str) -> None:
    with Producer(moldau_broker.bootstrap_servers) as producer:
        producer.send(topic, "text", partition=0)
    done = Terminal(moldau_broker).run(
        f"kafka-console-consumer --bootstrap-server localhost:9092 --topic {topic} --from-beginning --max-messages 1 "
        "--value-deserializer Long"
    )
    assert f"record 0 of {topic}-0: the value cannot be deserialized: Size of data received by Long" in done.stderr


def test_names_in_properties_choose_schema_serdes(
    moldau_broker: Broker, topic: str, settings: dict[str, object]
) -> None:
    servers = moldau_broker.bootstrap_servers
    names = {"key.serializer": "LongSerializer", "value.serializer": f"{CONFLUENT}.KafkaAvroSerializer"}
    with Producer[Any, Any](servers, {**settings, **names}) as producer:
        producer.send(topic, "hello", key=5, partition=0)
        with pytest.raises(SerializationError, match=rf"Topic {topic}: the key cannot be serialized: 'x' \(str\)"):
            producer.send(topic, "hello", key="x")
    names = {"key.deserializer": "LongDeserializer", "value.deserializer": f"{CONFLUENT}.KafkaAvroDeserializer"}
    with Consumer[Any, Any](servers, {**settings, **names}) as consumer:
        consumer.assign({TopicPartition(topic, 0): 0})
        record = next(iter(consumer))
    assert (record.key, record.value) == (5, "hello")


@pytest.mark.parametrize("by_batch", [False, True])
def test_a_consumer_keeps_its_place_while_the_registry_is_away(
    moldau_broker: Broker, topic: str, settings: dict[str, object], by_batch: bool
) -> None:
    servers = moldau_broker.bootstrap_servers
    with Producer[Any, Any](servers, settings, value_serializer=AvroSerde()) as producer:
        producer.send_and_wait(topic, "first", partition=0)
    away: Any = AvroSerde(registry_url="http://127.0.0.1:1")
    with Consumer[Any, Any](servers, {"auto.offset.reset": "earliest"}, value_deserializer=away) as consumer:
        consumer.assign({TopicPartition(topic, 0): 0})
        poll = partial(consumer.poll_batch, 5) if by_batch else consumer.poll
        for _ in range(2):
            with pytest.raises(SchemaRegistryError, match=rf"Record 0 of {topic}-0: the value cannot be deserialized"):
                poll(timeout_s=PATIENCE_S)


def test_serializers_of_confluent_kafka_work_beside_ours(
    moldau_broker: Broker, topic: str, settings: dict[str, object]
) -> None:
    servers = moldau_broker.bootstrap_servers
    with SchemaRegistryClient({"url": settings["schema.registry.url"]}) as client:
        theirs: Any = AvroSerializer(client, json.dumps(ORDER))
        with Producer[Any, Any](servers, value_serializer=theirs) as producer:
            producer.send(topic, {"id": 7}, key="k", partition=0)
        assert read(servers, topic, AvroSerde(), settings) == {"id": 7}
        theirs = AvroDeserializer(client)
        assert read(servers, topic, theirs, {}) == {"id": 7}


def read(servers: str, topic: str, deserializer: Any, settings: dict[str, object]) -> Any:
    with Consumer[Any, Any](servers, settings, value_deserializer=deserializer) as consumer:
        consumer.assign({TopicPartition(topic, 0): 0})
        return next(iter(consumer)).value
