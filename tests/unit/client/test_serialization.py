"""The toolkit's clients choose serdes by object or by name, and errors name topic, part, record and type."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka.serialization import MessageField, SerializationContext

import moldau.client
import moldau.streams
from moldau.client import (
    BYTES,
    DOUBLE,
    INT,
    JSON,
    LONG,
    STRING,
    AvroSerde,
    ClientError,
    InvalidConfigError,
    JsonSerde,
    SchemaRegistryError,
    SerializationError,
    StringSerde,
    prepared_serde,
)
from moldau.client.connection import rendered_properties
from moldau.client.serialization import PartReader, PartWriter, without_serde_settings
from moldau.core.errors import ServiceError


def written(serde: Any, value: Any, **properties: str) -> bytes | None:
    return PartWriter(serde, properties, "value").write("t", value, ())


def read(serde: Any, data: bytes | None, **properties: str) -> Any:
    return PartReader(serde, properties, "value").read(data, "t", (), 0, 0)


@pytest.mark.parametrize(
    ("serde", "data", "wire"),
    [
        (STRING, "žluťoučký", "žluťoučký".encode()),
        (StringSerde("utf-16-be"), "a", b"\x00a"),
        (BYTES, b"\x00\xff", b"\x00\xff"),
        (INT, -2, b"\xff\xff\xff\xfe"),
        (LONG, 1, b"\x00\x00\x00\x00\x00\x00\x00\x01"),
        (DOUBLE, 1.5, b"\x3f\xf8\x00\x00\x00\x00\x00\x00"),
        (JSON, {"a": ["č", None, 1.5]}, '{"a":["č",null,1.5]}'.encode()),
    ],
)
def test_what_is_written_can_be_read(serde: Any, data: Any, wire: bytes) -> None:
    assert written(serde, data) == wire
    assert read(serde, wire) == data


@pytest.mark.parametrize("serde", [STRING, BYTES, INT, LONG, DOUBLE, JSON])
def test_none_is_null_whatever_the_kind(serde: Any) -> None:
    assert written(serde, None) is None
    assert read(serde, None) is None


@pytest.mark.parametrize(
    ("serde", "data", "complaint"),
    [
        (STRING, 5, "Topic t: the value cannot be serialized: 5 (int) is not text (str)"),
        (BYTES, "a", "Topic t: the value cannot be serialized: 'a' (str) is not bytes"),
        (INT, 2**31, "does not fit into an integer of 4 bytes"),
        (LONG, True, "True (bool) is not a long (int)"),
        (DOUBLE, "1", "'1' (str) is not a double (float)"),
        (JSON, float("nan"), "Topic t: the value cannot be serialized"),
        (JSON, object(), "(object) cannot be written as JSON"),
    ],
)
def test_what_cannot_be_written_is_named(serde: Any, data: Any, complaint: str) -> None:
    with pytest.raises(SerializationError) as refused:
        written(serde, data)
    assert complaint in str(refused.value)
    assert refused.value.__cause__ is not None


@pytest.mark.parametrize(
    ("serde", "wire"), [(STRING, b"\xff"), (INT, b"\x00"), (LONG, b""), (DOUBLE, b"abc"), (JSON, b"{"), (JSON, b"\xff")]
)
def test_what_cannot_be_read_names_the_record(serde: Any, wire: bytes) -> None:
    with pytest.raises(SerializationError, match=r"Record 7 of t-3: the key cannot be deserialized: ") as refused:
        PartReader(serde, {}, "key").read(wire, "t", (), 3, 7)
    assert (refused.value.topic, refused.value.partition, refused.value.offset, refused.value.part) == (
        "t",
        3,
        7,
        "key",
    )


def test_json_can_be_taught_other_objects() -> None:
    assert written(JsonSerde(default=sorted), {"tags": {"b", "a"}}) == b'{"tags":["a","b"]}'


def test_an_object_wins_over_properties_and_properties_over_text() -> None:
    properties = {"value.serializer": "LongSerializer", "value.deserializer": "LongDeserializer"}
    assert len(written(DOUBLE, 1, **properties) or b"") == 8
    assert written(None, 1, **properties) == LONG.serialize("t", 1)
    assert read(None, LONG.serialize("t", 5), **properties) == 5
    assert written(None, "text") == b"text"
    assert written(None, "é", **{"serializer.encoding": "latin-1"}) == b"\xe9"
    with pytest.raises(InvalidConfigError, match=r"value\.serializer: com\.example\.Mine: no serde has this name"):
        written(None, "a", **{"value.serializer": "com.example.Mine"})


def test_a_schema_serde_is_named_as_in_java_and_finds_the_registry_in_the_properties() -> None:
    properties = {
        "schema.registry.url": "mock://toolkit-names",
        "value.serializer": "io.confluent.kafka.serializers.KafkaAvroSerializer",
        "value.deserializer": "io.confluent.kafka.serializers.KafkaAvroDeserializer",
    }
    assert read(None, written(None, "hello", **properties), **properties) == "hello"
    with pytest.raises(InvalidConfigError, match=r"schema\.registry\.url is missing"):
        written(AvroSerde(), "hello")


def test_librdkafka_sees_no_settings_of_serdes() -> None:
    serdes = {
        "key.serializer": "Long",
        "value.deserializer.encoding": "latin-1",
        "schema.registry.url": "http://localhost:8081",
        "auto.register.schemas": "false",
        "value.subject.name.strategy": "RecordNameStrategy",
        "windowed.inner.class.serde": "string",
    }
    assert without_serde_settings({**serdes, "acks": "1"}) == {"acks": "1"}


def test_a_registry_that_cannot_be_asked_is_no_fault_of_the_record() -> None:
    serde = AvroSerde('"string"', registry_url="http://127.0.0.1:1")
    with pytest.raises(SchemaRegistryError, match="Topic t: the value cannot be serialized: ") as refused:
        written(serde, "a")
    assert isinstance(refused.value, ServiceError)
    assert isinstance(refused.value, ClientError)
    with pytest.raises(SchemaRegistryError, match="Record 0 of t-0: the value cannot be deserialized: "):
        read(serde, b"\x00\x00\x00\x00\x01\x02a")


def test_a_value_that_does_not_fit_its_schema_names_topic_part_and_type() -> None:
    serde = AvroSerde('"long"', registry_url="mock://toolkit-unfit")
    with pytest.raises(SerializationError, match=r"Topic t: the value cannot be serialized: .*\(str\)"):
        written(serde, "text")


def test_headers_reach_serdes_that_take_them_and_no_others() -> None:
    class Tagged:
        def serialize(self, topic: str, value: str, headers: Any = None) -> bytes:
            return f"{topic}/{dict(headers)['tag'].decode()}/{value}".encode()

    class Plain:
        def serialize(self, topic: str, value: str) -> bytes:
            return f"{topic}/{value}".encode()

    assert PartWriter(Tagged(), {}, "value").write("t", "a", (("tag", b"x"),)) == b"t/x/a"
    assert PartWriter(Plain(), {}, "value").write("t", "a", (("tag", b"x"),)) == b"t/a"  # type: ignore[arg-type]


def test_serializers_of_confluent_kafka_are_called_their_way() -> None:
    def serializer(value: str, context: SerializationContext) -> bytes:
        return f"{context.topic} {context.field} {context.headers} {value}".encode()

    given: Any = serializer
    assert (
        PartWriter(given, {}, "key").write("t", "a", (("h", b"1"),))
        == f"t {MessageField.KEY} {[('h', b'1')]} a".encode()
    )


def test_serdes_of_the_old_calling_convention_are_refused_before_they_write_the_wrong_thing() -> None:
    class Old:
        def serialize(self, data: str, context: Any) -> bytes:
            return data.encode()

    with pytest.raises(InvalidConfigError, match=r"value_serializer: Old\.serialize takes \(data, context\)"):
        written(Old(), "a")
    with pytest.raises(InvalidConfigError, match=r"StringSerde is a class, .*write StringSerde\(\)"):
        written(StringSerde, "a")
    with pytest.raises(InvalidConfigError, match="has no method serialize"):
        written(5, "a")


def test_clients_and_streams_have_the_same_classes() -> None:
    names = [name for name in moldau.streams.__all__ if name.endswith("Serde")]
    assert len(names) >= 15
    for name in names:
        assert getattr(moldau.client, name) is getattr(moldau.streams, name), name


def test_a_serde_can_be_made_ready_by_hand() -> None:
    serde = prepared_serde(AvroSerde(), {"schema.registry.url": "mock://by-hand"}, "key")
    assert serde.deserialize("t", serde.serialize("t", 7)) == 7
    with pytest.raises(
        InvalidConfigError, match="AvroSerde is not connected to a schema source yet: give it to a producer"
    ):
        AvroSerde().serialize("t", 7)


def test_properties_may_be_numbers_and_truth_values() -> None:
    given = rendered_properties("localhost:9092", {"linger.ms": 7, "enable.idempotence": False, "client.id": None})
    assert given == {"bootstrap.servers": "localhost:9092", "linger.ms": "7", "enable.idempotence": "false"}
    assert rendered_properties(None, {"bootstrap.servers": "a:1, b:2"})["bootstrap.servers"] == "a:1,b:2"


def test_servers_must_come_from_somewhere() -> None:
    with pytest.raises(InvalidConfigError, match="No bootstrap server was given"):
        rendered_properties(None, {})
    with pytest.raises(InvalidConfigError, match="acks must be a string, a number, True or False, not list"):
        rendered_properties("a:1", {"acks": []})
