"""Serdes that a configuration names: objects, classes, Kafka's class names or short words. Start at `default_serde`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from moldau.core.errors import InvalidConfigError
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.missing_serdes import missing_serde
from moldau.pipeline.ir.origin import callers_origin
from moldau.pipeline.ir.serdes import (
    BooleanSerde,
    BytesSerde,
    DoubleSerde,
    FloatSerde,
    IntegerSerde,
    JsonSerde,
    LongSerde,
    Serde,
    ShortSerde,
    StringSerde,
    UuidSerde,
    VoidSerde,
)
from moldau.pipeline.ir.topology import Topology

__all__ = ["default_serde", "with_serdes_of"]


def _with_schema(name: str) -> Serde:
    # The three formats bring three libraries, which most pipelines do not need.
    from moldau.client import schema_serdes

    serde: Serde = getattr(schema_serdes, name)()
    return serde


_BY_WORD: Mapping[str, Callable[[], Serde]] = {
    "string": StringSerde,
    "bytearray": BytesSerde,
    "bytebuffer": BytesSerde,
    "bytes": BytesSerde,
    "short": ShortSerde,
    "integer": IntegerSerde,
    "int": IntegerSerde,
    "long": LongSerde,
    "float": FloatSerde,
    "double": DoubleSerde,
    "boolean": BooleanSerde,
    "uuid": UuidSerde,
    "void": VoidSerde,
    "json": JsonSerde,
    "avro": partial(_with_schema, "AvroSerde"),
    "genericavro": partial(_with_schema, "AvroSerde"),
    "specificavro": partial(_with_schema, "AvroSerde"),
    "primitiveavro": partial(_with_schema, "AvroSerde"),
    "jsonschema": partial(_with_schema, "JsonSchemaSerde"),
    "kafkajsonschema": partial(_with_schema, "JsonSchemaSerde"),
    "protobuf": partial(_with_schema, "ProtobufSerde"),
    "kafkaprotobuf": partial(_with_schema, "ProtobufSerde"),
}


def with_serdes_of(topology: Topology, config: Mapping[str, Any]) -> Topology:
    """A topology whose serdes are those of the settings where it names none, and know the settings where they ask.

    Raises `MissingSerdeError` where neither names one.
    """
    if not isinstance(topology, Topology):
        hint = "; call its build()" if hasattr(topology, "build") else ", which StreamsBuilder.build() makes"
        raise TopologyError(f"a topology is wanted here, not {type(topology).__name__}{hint}", callers_origin())
    key, value = default_serde(config, "key"), default_serde(config, "value")
    if (refusal := missing_serde(topology.nodes, config)) is not None:
        raise refusal
    return topology.with_default_serdes(key=key, value=value).with_configured_serdes(config)


def default_serde(config: Mapping[str, Any], part: str) -> Serde | None:
    """What `default.key.serde` or `default.value.serde` means; None where it is not set."""
    key = f"default.{part}.serde"
    given = config.get(key)
    if given is None:
        return None
    if isinstance(given, str):
        # Kafka writes org.apache.kafka.common.serialization.Serdes$StringSerde.
        word = given.replace("$", ".").rpartition(".")[2].lower().removesuffix("serde")
        if word not in _BY_WORD:
            known = ", ".join(_BY_WORD)
            raise InvalidConfigError(f"{key}: no serde is called {given!r}; known are {known}, or give an object")
        return _BY_WORD[word]()
    made: Any = given() if isinstance(given, type) else given
    if not callable(getattr(made, "serialize", None)) or not callable(getattr(made, "deserialize", None)):
        raise InvalidConfigError(f"{key}: {given!r} has no serialize and deserialize")
    serde: Serde = made
    return serde
