"""Default serdes by Kafka's class names, by short words, as classes and as objects."""

from __future__ import annotations

import pytest

from moldau.core.errors import InvalidConfigError
from moldau.serdes.plain import JsonSerde, LongSerde, StringSerde
from moldau.serdes.schema_serde import AvroSerde, JsonSchemaSerde, ProtobufSerde
from moldau.streams.default_serdes import default_serde


@pytest.mark.parametrize(
    "given",
    [
        "org.apache.kafka.common.serialization.Serdes$StringSerde",
        "Serdes.StringSerde",
        "string",
        StringSerde,
        StringSerde(),
    ],
)
def test_there_are_many_ways_to_name_one(given: object) -> None:
    assert default_serde({"default.key.serde": given}, "key") == StringSerde()


def test_the_two_parts_have_their_own() -> None:
    config = {"default.key.serde": "Long", "default.value.serde": "JSON"}

    assert (default_serde(config, "key"), default_serde(config, "value")) == (LongSerde(), JsonSerde())
    assert default_serde({}, "key") is None


@pytest.mark.parametrize(
    ("given", "serde"),
    [
        ("avro", AvroSerde()),
        ("io.confluent.kafka.streams.serdes.avro.GenericAvroSerde", AvroSerde()),
        ("io.confluent.kafka.streams.serdes.avro.PrimitiveAvroSerde", AvroSerde()),
        ("io.confluent.kafka.streams.serdes.json.KafkaJsonSchemaSerde", JsonSchemaSerde()),
        ("io.confluent.kafka.streams.serdes.protobuf.KafkaProtobufSerde", ProtobufSerde()),
    ],
)
def test_serdes_with_schemas_go_by_confluents_names_too(given: str, serde: object) -> None:
    assert default_serde({"default.value.serde": given}, "value") == serde


@pytest.mark.parametrize("given", ["com.example.ThriftSerde", 5, object])
def test_what_is_no_serde_is_refused(given: object) -> None:
    with pytest.raises(InvalidConfigError, match=r"default\.value\.serde"):
        default_serde({"default.value.serde": given}, "value")
