"""A schema evolves while registry and broker are restarted: old and new records are read with the new schema."""

from __future__ import annotations

import json

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry

V1 = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
V2 = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string", "default": "none"}],
}
CONTEXT = SerializationContext("orders", MessageField.VALUE)


def produce(broker: Broker, registry: SchemaRegistry, schema: object, order: object) -> None:
    with SchemaRegistryClient({"url": registry.url}) as client:
        value = AvroSerializer(client, json.dumps(schema))(order, CONTEXT)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("orders", value)
    assert producer.flush(30) == 0


def consume(broker: Broker, registry: SchemaRegistry, count: int) -> list[object]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "readers"})
    consumer.assign([TopicPartition("orders", 0, 0)])
    with SchemaRegistryClient({"url": registry.url}) as client:
        deserialize = AvroDeserializer(client, json.dumps(V2))
        try:
            messages = [consumer.poll(30) for _ in range(count)]
            return [deserialize(message.value(), CONTEXT) for message in messages if message is not None]
        finally:
            consumer.close()


def test_old_and_new_records_are_read_after_everything_was_restarted() -> None:
    with Broker() as broker:
        with SchemaRegistry(broker.bootstrap_servers) as registry:
            produce(broker, registry, V1, {"id": 1})
        broker.restart()
        with SchemaRegistry(broker.bootstrap_servers) as registry:
            produce(broker, registry, V2, {"id": 2, "note": "gift"})
            broker.restart()
            registry.restart()
            assert consume(broker, registry, 2) == [{"id": 1, "note": "none"}, {"id": 2, "note": "gift"}]
            with SchemaRegistryClient({"url": registry.url}) as client:
                assert client.get_versions("orders-value") == [1, 2]
