"""Serdes write what Java's serializers write, and say what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.client import BYTES, DOUBLE, INT, JSON, LONG, STRING, InvalidConfigError, JsonSerde, SerializationError
from moldau.client.given_properties import chosen_serde, rendered_properties, without_serdes
from moldau.client.serializers import Context, StringSerde, deserialized, serde_named, serialized

HERE = Context("t", "value")


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
    assert serialized(serde, data, HERE) == wire
    assert deserialized(serde, wire, HERE, 0, 0) == data


@pytest.mark.parametrize("serde", [STRING, BYTES, INT, LONG, DOUBLE, JSON])
def test_none_is_null_whatever_the_kind(serde: Any) -> None:
    assert serialized(serde, None, HERE) is None
    assert deserialized(serde, None, HERE, 0, 0) is None


@pytest.mark.parametrize(
    ("serde", "data", "complaint"),
    [
        (STRING, 5, "Topic t: the value cannot be serialized: str is wanted, not int"),
        (BYTES, "a", "Topic t: the value cannot be serialized: bytes is wanted, not str"),
        (INT, 2**31, "does not fit into a int of 4 bytes"),
        (LONG, True, "int is wanted, not bool"),
        (DOUBLE, "1", "float is wanted, not str"),
        (JSON, float("nan"), "Topic t: the value cannot be serialized"),
        (JSON, object(), "Topic t: the value cannot be serialized"),
    ],
)
def test_what_cannot_be_written_is_named(serde: Any, data: Any, complaint: str) -> None:
    with pytest.raises(SerializationError) as refused:
        serialized(serde, data, HERE)
    assert complaint in str(refused.value)
    assert refused.value.__cause__ is not None


@pytest.mark.parametrize(
    ("serde", "wire"), [(STRING, b"\xff"), (INT, b"\x00"), (LONG, b""), (DOUBLE, b"abc"), (JSON, b"{"), (JSON, b"\xff")]
)
def test_what_cannot_be_read_names_the_record(serde: Any, wire: bytes) -> None:
    with pytest.raises(SerializationError, match=r"Record 7 of t-3: the key cannot be deserialized: ") as refused:
        deserialized(serde, wire, Context("t", "key"), 3, 7)
    assert (refused.value.topic, refused.value.partition, refused.value.offset, refused.value.part) == (
        "t",
        3,
        7,
        "key",
    )


def test_json_can_be_taught_other_objects() -> None:
    assert serialized(JsonSerde(default=sorted), {"tags": {"b", "a"}}, HERE) == b'{"tags":["a","b"]}'


def test_an_unknown_encoding_is_refused_at_once() -> None:
    with pytest.raises(InvalidConfigError, match="klingon is not an encoding"):
        StringSerde("klingon")


@pytest.mark.parametrize(
    ("name", "serde"),
    [
        ("org.apache.kafka.common.serialization.StringSerializer", STRING),
        ("org.apache.kafka.common.serialization.ByteArrayDeserializer", BYTES),
        ("org.apache.kafka.common.serialization.IntegerSerializer", INT),
        ("LongDeserializer", LONG),
        ("DoubleSerializer", DOUBLE),
        ("org.apache.kafka.connect.json.JsonSerializer", JSON),
    ],
)
def test_java_names_choose_serdes(name: str, serde: Any) -> None:
    assert serde_named(name) is serde


def test_a_java_class_without_counterpart_is_refused() -> None:
    with pytest.raises(InvalidConfigError, match=r"com\.example\.Mine has no counterpart here"):
        serde_named("com.example.Mine")


def test_an_object_wins_over_properties_and_properties_over_text() -> None:
    properties = {"key.serializer": "LongSerializer", "serializer.encoding": "latin-1"}
    assert chosen_serde(DOUBLE, properties, "key", "serializer") is DOUBLE
    assert chosen_serde(None, properties, "key", "serializer") is LONG
    assert chosen_serde(None, {}, "key", "serializer") is STRING
    assert chosen_serde(None, properties, "value", "serializer").encoding == "latin-1"
    assert without_serdes({**properties, "acks": "1"}) == {"acks": "1"}


def test_properties_may_be_numbers_and_truth_values() -> None:
    given = rendered_properties("localhost:9092", {"linger.ms": 7, "enable.idempotence": False, "client.id": None})
    assert given == {"bootstrap.servers": "localhost:9092", "linger.ms": "7", "enable.idempotence": "false"}
    assert rendered_properties(None, {"bootstrap.servers": "a:1, b:2"})["bootstrap.servers"] == "a:1,b:2"


def test_servers_must_come_from_somewhere() -> None:
    with pytest.raises(InvalidConfigError, match="No bootstrap server was given"):
        rendered_properties(None, {})
    with pytest.raises(InvalidConfigError, match="acks must be text, a number or a truth value, not list"):
        rendered_properties("a:1", {"acks": []})
