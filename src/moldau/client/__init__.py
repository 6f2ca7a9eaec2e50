"""Kafka clients: librdkafka configured with Java's properties, and `wire` for requests that librdkafka lacks.

For applications, a toolkit: `Producer` and `Consumer` with typed records, `ListenerApp` for functions that are called
per record, `ExactlyOnce` for transactions, `SqliteOffsetStore` for offsets kept with the results. docs/clients.md shows
each in a few lines. Names are imported when first used, because the command-line tools import this package too and must
start fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import moldau.serdes

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.connection import load_properties
    from moldau.client.consumer import Consumer
    from moldau.client.errors import ClientError, FencedError, SchemaRegistryError, SerializationError, UnreachableError
    from moldau.client.exactly_once import ExactlyOnce
    from moldau.client.listeners.app import ListenerApp, ListenerError
    from moldau.client.listeners.retries import Failure, Origin, RetryPolicy
    from moldau.client.listeners.workers import Received
    from moldau.client.offset_store import AlreadyProcessedError, OffsetStore, SeekToStored, SqliteOffsetStore
    from moldau.client.partitioners import Partitioner, hashed_partition
    from moldau.client.producer import Producer
    from moldau.client.rebalancing import RebalanceListener
    from moldau.client.records import Delivery, ProducerRecord, Record
    from moldau.client.serialization import prepared_serde
    from moldau.core.errors import InvalidConfigError
    from moldau.core.ids import TopicPartition
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
        BooleanSerde,
        BytesSerde,
        Deserializer,
        DoubleSerde,
        FloatSerde,
        FunctionSerde,
        IntegerSerde,
        JsonSchemaSerde,
        JsonSerde,
        ListSerde,
        LongSerde,
        ProtobufSerde,
        Serde,
        SerdeError,
        Serializer,
        SessionWindowedSerde,
        ShortSerde,
        StringSerde,
        TimeWindowedSerde,
        UuidSerde,
        VoidSerde,
        Window,
        Windowed,
        serde_named,
    )

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
    "Admin",
    "AlreadyProcessedError",
    "AvroSerde",
    "BooleanSerde",
    "BytesSerde",
    "ClientError",
    "Consumer",
    "Delivery",
    "Deserializer",
    "DoubleSerde",
    "ExactlyOnce",
    "Failure",
    "FencedError",
    "FloatSerde",
    "FunctionSerde",
    "IntegerSerde",
    "InvalidConfigError",
    "JsonSchemaSerde",
    "JsonSerde",
    "ListSerde",
    "ListenerApp",
    "ListenerError",
    "LongSerde",
    "OffsetStore",
    "Origin",
    "Partitioner",
    "Producer",
    "ProducerRecord",
    "ProtobufSerde",
    "RebalanceListener",
    "Received",
    "Record",
    "RetryPolicy",
    "SchemaRegistryError",
    "SeekToStored",
    "Serde",
    "SerdeError",
    "SerializationError",
    "Serializer",
    "SessionWindowedSerde",
    "ShortSerde",
    "SqliteOffsetStore",
    "StringSerde",
    "TimeWindowedSerde",
    "TopicPartition",
    "UnreachableError",
    "UuidSerde",
    "VoidSerde",
    "Window",
    "Windowed",
    "hashed_partition",
    "load_properties",
    "prepared_serde",
    "serde_named",
]

_MODULES = {
    "moldau.client.admin": ("Admin",),
    "moldau.client.connection": ("load_properties",),
    "moldau.client.consumer": ("Consumer",),
    "moldau.client.errors": (
        *("ClientError", "FencedError", "SchemaRegistryError", "SerializationError", "UnreachableError"),
    ),
    "moldau.client.exactly_once": ("ExactlyOnce",),
    "moldau.client.listeners.workers": ("Received",),
    "moldau.client.listeners.app": ("ListenerApp", "ListenerError"),
    "moldau.client.offset_store": ("AlreadyProcessedError", "OffsetStore", "SeekToStored", "SqliteOffsetStore"),
    "moldau.client.partitioners": ("Partitioner", "hashed_partition"),
    "moldau.client.producer": ("Producer",),
    "moldau.client.rebalancing": ("RebalanceListener",),
    "moldau.client.records": ("Delivery", "ProducerRecord", "Record"),
    "moldau.client.listeners.retries": ("Failure", "Origin", "RetryPolicy"),
    "moldau.client.serialization": ("prepared_serde",),
    "moldau.core.errors": ("InvalidConfigError",),
    "moldau.core.ids": ("TopicPartition",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}
_HOME |= dict.fromkeys(moldau.serdes.__all__, "moldau.serdes")


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
