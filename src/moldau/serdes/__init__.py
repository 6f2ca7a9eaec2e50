"""Serdes convert keys and values to bytes and back; clients, Streams and the command-line tools use the same ones.

`moldau.client` and `moldau.streams` export the same classes. Reading order: `serde` (what a serde is), `plain` (text,
numbers, JSON), `lists` and `windowed`, then `schema_serde` (Avro, JSON Schema, Protobuf) with `schema_source` (where
schemas come from) and `names` (serdes by Java class name). Names are imported on first use, so that tools start fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.serdes.lists import ListSerde
    from moldau.serdes.names import serde_named
    from moldau.serdes.plain import (
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
        BooleanSerde,
        BytesSerde,
        DoubleSerde,
        FloatSerde,
        FunctionSerde,
        IntegerSerde,
        JsonSerde,
        LongSerde,
        ShortSerde,
        StringSerde,
        UuidSerde,
        VoidSerde,
    )
    from moldau.serdes.schema_serde import AvroSerde, JsonSchemaSerde, ProtobufSerde
    from moldau.serdes.serde import Deserializer, Serde, SerdeError, Serializer
    from moldau.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde, Window, Windowed

__all__ = [
    "BOOLEAN",
    "BYTES",
    "DOUBLE",
    "FLOAT",
    "INT",
    "JSON",
    "LONG",
    "SHORT",
    "STRING",
    "UUID",
    "AvroSerde",
    "BooleanSerde",
    "BytesSerde",
    "Deserializer",
    "DoubleSerde",
    "FloatSerde",
    "FunctionSerde",
    "IntegerSerde",
    "JsonSchemaSerde",
    "JsonSerde",
    "ListSerde",
    "LongSerde",
    "ProtobufSerde",
    "Serde",
    "SerdeError",
    "Serializer",
    "SessionWindowedSerde",
    "ShortSerde",
    "StringSerde",
    "TimeWindowedSerde",
    "UuidSerde",
    "VoidSerde",
    "Window",
    "Windowed",
    "serde_named",
]

_MODULES = {
    "serde": ("Deserializer", "Serde", "SerdeError", "Serializer"),
    "lists": ("ListSerde",),
    "names": ("serde_named",),
    "schema_serde": ("AvroSerde", "JsonSchemaSerde", "ProtobufSerde"),
    "windowed": ("SessionWindowedSerde", "TimeWindowedSerde", "Window", "Windowed"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"moldau.serdes.{_HOME.get(name, 'plain')}"), name)
