"""The serializers people use, unchanged: all three formats, all three subject name strategies, over a real broker."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import (
    SchemaRegistryClient,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.integration.registry.messages import message_class

from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry

AVRO = json.dumps(
    {
        "type": "record",
        "name": "Person",
        "namespace": "people.avro",
        "fields": [{"name": "name", "type": "string"}, {"name": "age", "type": ["null", "int"], "default": None}],
    }
)
JSON = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "people.json.Person",
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name"],
    }
)
PERSON = {"name": "Ada", "age": 36}
STRATEGIES = {
    "topic": topic_subject_name_strategy,
    "record": record_subject_name_strategy,
    "topic-record": topic_record_subject_name_strategy,
}


@pytest.fixture
def client(registry: SchemaRegistry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


@pytest.fixture
def topic() -> str:
    return f"people-{uuid.uuid4().hex[:8]}"


def subject_of(strategy: str, topic: str, field: str = "value", record: str = "people.Person") -> str:
    return {"topic": f"{topic}-{field}", "record": record, "topic-record": f"{topic}-{record}"}[strategy]


def settings(strategy: str, **more: Any) -> dict[str, Any]:
    return {"subject.name.strategy": STRATEGIES[strategy], **more}


def through_the_broker(broker: Broker, topic: str, key: bytes | None, value: bytes | None) -> tuple[Any, Any]:
    """Produce a record and read it back."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(topic, value, key)
    assert producer.flush(30) == 0
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        return message.key(), message.value()
    finally:
        consumer.close()


def round_trip(
    broker: Broker,
    topic: str,
    serialize: Callable[[Any, SerializationContext], bytes | None],
    deserialize: Callable[[Any, SerializationContext], Any],
    thing: Any,
) -> tuple[bytes, Any]:
    context = SerializationContext(topic, MessageField.VALUE)
    sent = serialize(thing, context)
    assert sent is not None
    _, received = through_the_broker(broker, topic, None, sent)
    assert received == sent
    return sent, deserialize(received, context)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_avro_goes_there_and_back(
    moldau_broker: Broker, client: SchemaRegistryClient, topic: str, strategy: str
) -> None:
    serializer = AvroSerializer(client, AVRO, conf=settings(strategy))
    sent, person = round_trip(moldau_broker, topic, serializer, AvroDeserializer(client), PERSON)
    assert person == PERSON
    found = client.get_latest_version(subject_of(strategy, topic, record="people.avro.Person"))
    assert sent[:5] == b"\x00" + found.schema_id.to_bytes(4, "big")
    assert json.loads(found.schema.schema_str) == json.loads(AVRO)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_json_goes_there_and_back(
    moldau_broker: Broker, client: SchemaRegistryClient, topic: str, strategy: str
) -> None:
    record = f"people.json.Person.{topic}"
    schema = JSON.replace("people.json.Person", record)
    serializer = JSONSerializer(schema, client, conf=settings(strategy))
    deserializer = JSONDeserializer(schema, schema_registry_client=client)
    sent, person = round_trip(moldau_broker, topic, serializer, deserializer, PERSON)
    assert person == PERSON
    found = client.get_latest_version(subject_of(strategy, topic, record=record))
    assert (found.schema.schema_type, sent[:5]) == ("JSON", b"\x00" + found.schema_id.to_bytes(4, "big"))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_protobuf_goes_there_and_back(
    moldau_broker: Broker, client: SchemaRegistryClient, topic: str, strategy: str
) -> None:
    kind = message_class("people.Person")
    thing = kind(name="Ada", address={"city": "London"}, pets=[{"name": "Turing"}])
    thing.born.FromSeconds(-4_891_104_000)
    serializer = ProtobufSerializer(kind, client, conf=settings(strategy))
    deserializer = ProtobufDeserializer(kind, schema_registry_client=client)
    sent, person = round_trip(moldau_broker, topic, serializer, deserializer, thing)
    assert person == thing
    found = client.get_latest_version(subject_of(strategy, topic))
    assert found.schema.schema_type == "PROTOBUF"
    assert sent[5:7] == b"\x02\x02", "the second message of its file: one index, and it is 1"
    assert [one.name for one in found.schema.references] == ["address.proto"], "well-known types need no reference"
    assert client.get_referenced_by("address.proto", 1) == [found.schema_id]


def test_a_nested_message_is_found_by_its_path(client: SchemaRegistryClient, topic: str) -> None:
    kind = message_class("people.Person.Pet")
    context = SerializationContext(topic, MessageField.VALUE)
    sent = ProtobufSerializer(kind, client)(kind(name="Turing"), context)
    assert sent is not None
    assert sent[5:8] == b"\x04\x02\x00"
    assert ProtobufDeserializer(kind, schema_registry_client=client)(sent, context).name == "Turing"


def test_keys_have_schemas_too(moldau_broker: Broker, client: SchemaRegistryClient, topic: str) -> None:
    key_context = SerializationContext(topic, MessageField.KEY)
    value_context = SerializationContext(topic, MessageField.VALUE)
    serialize_key, serialize_value = AvroSerializer(client, '"string"'), AvroSerializer(client, AVRO)
    key, value = through_the_broker(
        moldau_broker, topic, serialize_key("ada", key_context), serialize_value(PERSON, value_context)
    )
    deserialize = AvroDeserializer(client)
    assert (deserialize(key, key_context), deserialize(value, value_context)) == ("ada", PERSON)
    assert client.get_latest_version(f"{topic}-key").schema.schema_str == '"string"'


def test_a_serializer_that_may_not_register_uses_what_is_there(client: SchemaRegistryClient, topic: str) -> None:
    context = SerializationContext(topic, MessageField.VALUE)
    first = AvroSerializer(client, AVRO)(PERSON, context)
    looks_up = AvroSerializer(client, AVRO, conf={"auto.register.schemas": False})
    takes_latest = AvroSerializer(client, AVRO, conf={"auto.register.schemas": False, "use.latest.version": True})
    assert looks_up(PERSON, context) == takes_latest(PERSON, context) == first


def test_an_incompatible_schema_stops_the_producer(client: SchemaRegistryClient, topic: str) -> None:
    from confluent_kafka.schema_registry import SchemaRegistryError

    context = SerializationContext(topic, MessageField.VALUE)
    AvroSerializer(client, AVRO)(PERSON, context)
    narrower = AVRO.replace('{"name": "name", "type": "string"}', '{"name": "id", "type": "long"}')
    assert narrower != AVRO
    with pytest.raises(SchemaRegistryError) as caught:
        AvroSerializer(client, narrower)({"id": 1, "age": 2}, context)
    assert (caught.value.http_status_code, caught.value.error_code) == (409, 40901)


def test_the_client_reads_and_changes_everything_it_knows(client: SchemaRegistryClient, topic: str) -> None:
    from confluent_kafka.schema_registry import ConfigCompatibilityLevel, Schema, ServerConfig

    subject = f"{topic}-value"
    schema = Schema(AVRO, "AVRO")
    schema_id = client.register_schema(subject, schema)
    assert client.lookup_schema(subject, schema).schema_id == schema_id
    assert json.loads(str(client.get_schema(schema_id).schema_str)) == json.loads(AVRO)
    assert client.get_version(subject, 1).schema_id == schema_id
    assert subject in client.get_subjects()
    assert client.get_versions(subject) == [1]
    assert client.test_compatibility(subject, schema)
    client.set_compatibility(subject, "FULL")
    assert client.get_compatibility(subject) == "FULL"
    client.set_config(subject, ServerConfig(compatibility=ConfigCompatibilityLevel.NONE))
    assert client.get_config(subject).compatibility_level == ConfigCompatibilityLevel.NONE
    assert client.delete_version(subject, 1) == 1
    assert client.delete_subject(subject, permanent=True) == [1]
    assert subject not in client.get_subjects()


def test_serializers_work_with_answers_of_old_registries(moldau_broker: Broker, topic: str) -> None:
    settings = {"moldau.registry.dialect": "7.x", "kafkastore.topic": f"_schemas_{topic}"}
    kind = message_class("people.Person")
    context = SerializationContext(topic, MessageField.VALUE)
    with (
        SchemaRegistry(moldau_broker.bootstrap_servers, {**settings, "schema.registry.group.id": topic}) as registry,
        SchemaRegistryClient({"url": registry.url}) as writing,
        SchemaRegistryClient({"url": registry.url}) as reading,
    ):
        by_name = {"subject.name.strategy": record_subject_name_strategy}
        sent = AvroSerializer(writing, AVRO, conf=by_name)(PERSON, context)
        assert AvroDeserializer(reading)(sent, context) == PERSON
        sent = JSONSerializer(JSON, writing, conf=by_name)(PERSON, context)
        assert JSONDeserializer(JSON, schema_registry_client=reading)(sent, context) == PERSON
        sent = ProtobufSerializer(kind, writing)(kind(name="Ada"), context)
        assert ProtobufDeserializer(kind, schema_registry_client=reading)(sent, context).name == "Ada"
