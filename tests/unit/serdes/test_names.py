"""Serdes by Java class names and short words, the same for settings, property files and consoles."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.core.errors import InvalidConfigError
from moldau.serdes import (
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
    JsonSchemaSerde,
    ListSerde,
    ProtobufSerde,
    SessionWindowedSerde,
    StringSerde,
    TimeWindowedSerde,
    VoidSerde,
)
from moldau.serdes.names import KNOWN_NAMES, MissingSettingError, serde_from_setting, serde_named

KAFKA = "org.apache.kafka.common.serialization"
CONFLUENT = "io.confluent.kafka"


@pytest.mark.parametrize(
    ("name", "serde"),
    [
        (f"{KAFKA}.StringSerializer", STRING),
        (f"{KAFKA}.StringDeserializer", STRING),
        (f"{KAFKA}.Serdes$StringSerde", STRING),
        ("Serdes.StringSerde", STRING),
        (" string ", STRING),
        (f"{KAFKA}.ByteArrayDeserializer", BYTES),
        (f"{KAFKA}.ByteBufferSerializer", BYTES),
        (f"{KAFKA}.BytesSerializer", BYTES),
        (f"{KAFKA}.ShortSerializer", SHORT),
        (f"{KAFKA}.IntegerSerializer", INT),
        ("int", INT),
        ("LongDeserializer", LONG),
        (f"{KAFKA}.FloatSerializer", FLOAT),
        ("DoubleSerializer", DOUBLE),
        (f"{KAFKA}.BooleanSerializer", BOOLEAN),
        (f"{KAFKA}.UUIDSerializer", UUID),
        (f"{KAFKA}.VoidSerializer", VoidSerde()),
        ("org.apache.kafka.connect.json.JsonSerializer", JSON),
        (f"{CONFLUENT}.serializers.KafkaJsonDeserializer", JSON),
        (f"{CONFLUENT}.serializers.KafkaAvroSerializer", AvroSerde()),
        (f"{CONFLUENT}.serializers.KafkaAvroDeserializer", AvroSerde()),
        (f"{CONFLUENT}.streams.serdes.avro.GenericAvroSerde", AvroSerde()),
        (f"{CONFLUENT}.streams.serdes.avro.SpecificAvroSerde", AvroSerde()),
        (f"{CONFLUENT}.streams.serdes.avro.PrimitiveAvroSerde", AvroSerde()),
        (f"{CONFLUENT}.serializers.json.KafkaJsonSchemaSerializer", JsonSchemaSerde()),
        (f"{CONFLUENT}.streams.serdes.json.KafkaJsonSchemaSerde", JsonSchemaSerde()),
        (f"{CONFLUENT}.serializers.protobuf.KafkaProtobufDeserializer", ProtobufSerde()),
        ("protobuf", ProtobufSerde()),
    ],
)
def test_a_name_is_a_java_class_or_a_word(name: str, serde: Any) -> None:
    assert serde_named(name) == serde


@pytest.mark.parametrize(
    ("name", "settings", "serde"),
    [
        ("TimeWindowedDeserializer", {"window.size.ms": "1000"}, TimeWindowedSerde(STRING, 1000)),
        (
            "org.apache.kafka.streams.kstream.TimeWindowedSerializer",
            {"window.size.ms": 7, "windowed.inner.class.serde": f"{KAFKA}.Serdes$LongSerde"},
            TimeWindowedSerde(LONG, 7),
        ),
        (
            "SessionWindowedDeserializer",
            {"windowed.inner.deserializer.class": f"{KAFKA}.IntegerDeserializer"},
            SessionWindowedSerde(INT),
        ),
        (f"{KAFKA}.ListSerializer", {"default.list.key.serde.inner": f"{KAFKA}.Serdes$UUIDSerde"}, ListSerde(UUID)),
        ("StringSerializer", {"key.serializer.encoding": "UTF-16BE"}, StringSerde("utf-16-be")),
        ("StringDeserializer", {"deserializer.encoding": "ISO-8859-1"}, StringSerde("latin-1")),
    ],
)
def test_settings_complete_a_name(name: str, settings: dict[str, Any], serde: Any) -> None:
    assert serde_named(name, settings, "key") == serde


def test_every_short_name_has_a_serde() -> None:
    settings = {"window.size.ms": "1", "default.list.value.serde.inner": "long"}
    for name in KNOWN_NAMES:
        assert hasattr(serde_named(name, settings), "serialize"), name


def test_a_setting_that_a_serde_needs_is_named() -> None:
    with pytest.raises(MissingSettingError, match=r"size of the windows in ms, and got none: set window\.size\.ms="):
        serde_named("TimeWindowedSerde")
    with pytest.raises(MissingSettingError, match=r"and got ten: set window\.size\.ms="):
        serde_named("TimeWindowedSerde", {"window.size.ms": "ten"})
    with pytest.raises(MissingSettingError, match=r"ListSerde needs .*: set default\.list\.value\.serde\.inner="):
        serde_named("ListSerde")
    with pytest.raises(InvalidConfigError, match="klingon is not an encoding"):
        serde_named("string", {"serializer.encoding": "klingon"})


def test_a_java_class_without_counterpart_is_refused() -> None:
    with pytest.raises(InvalidConfigError, match=r"com\.example\.Mine: no serde has this name.*known are string, "):
        serde_named("com.example.Mine")


@pytest.mark.parametrize("given", ["long", LONG, type(LONG)])
def test_a_setting_is_a_name_a_class_or_an_object(given: object) -> None:
    assert serde_from_setting(given, "default.key.serde", {}, "key") == LONG


@pytest.mark.parametrize("given", ["com.example.ThriftSerde", 5, object])
def test_what_is_no_serde_is_refused_with_the_setting(given: object) -> None:
    with pytest.raises(InvalidConfigError, match=r"^default\.key\.serde: "):
        serde_from_setting(given, "default.key.serde", {}, "key")
