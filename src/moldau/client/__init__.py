"""The way to a cluster, as any stranger has it: librdkafka with Java's properties, and `wire` for the rest.

For applications, a toolkit: `Producer` and `Consumer` with typed records, `ListenerApp` for functions that are called
per record, `ExactlyOnce` for transactions, `SqliteOffsetStore` for offsets kept with the results. docs/clients.md shows
each in a few lines. Names are imported when first used, because the command-line tools live here too and start often.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.connection import load_properties
    from moldau.client.consumer import Consumer
    from moldau.client.errors import ClientError, FencedError, SerializationError, UnreachableError
    from moldau.client.exactly_once import ExactlyOnce
    from moldau.client.listener_workers import Received
    from moldau.client.listeners import ListenerApp, ListenerError
    from moldau.client.offset_store import AlreadyProcessedError, OffsetStore, SeekToStored, SqliteOffsetStore
    from moldau.client.partitioners import Partitioner, hashed_partition
    from moldau.client.producer import Producer
    from moldau.client.rebalancing import RebalanceListener
    from moldau.client.records import Delivery, ProducerRecord, Record
    from moldau.client.retries import Failure, Origin, RetryPolicy
    from moldau.client.serializers import (
        BYTES,
        DOUBLE,
        INT,
        JSON,
        LONG,
        STRING,
        Context,
        Deserializer,
        JsonSerde,
        Serde,
        Serializer,
        StringSerde,
    )
    from moldau.core.errors import InvalidConfigError
    from moldau.core.ids import TopicPartition

__all__ = [
    "BYTES",
    "DOUBLE",
    "INT",
    "JSON",
    "LONG",
    "STRING",
    "Admin",
    "AlreadyProcessedError",
    "ClientError",
    "Consumer",
    "Context",
    "Delivery",
    "Deserializer",
    "ExactlyOnce",
    "Failure",
    "FencedError",
    "InvalidConfigError",
    "JsonSerde",
    "ListenerApp",
    "ListenerError",
    "OffsetStore",
    "Origin",
    "Partitioner",
    "Producer",
    "ProducerRecord",
    "RebalanceListener",
    "Received",
    "Record",
    "RetryPolicy",
    "SeekToStored",
    "Serde",
    "SerializationError",
    "Serializer",
    "SqliteOffsetStore",
    "StringSerde",
    "TopicPartition",
    "UnreachableError",
    "hashed_partition",
    "load_properties",
]

_MODULES = {
    "moldau.client.admin": ("Admin",),
    "moldau.client.connection": ("load_properties",),
    "moldau.client.consumer": ("Consumer",),
    "moldau.client.errors": ("ClientError", "FencedError", "SerializationError", "UnreachableError"),
    "moldau.client.exactly_once": ("ExactlyOnce",),
    "moldau.client.listener_workers": ("Received",),
    "moldau.client.listeners": ("ListenerApp", "ListenerError"),
    "moldau.client.offset_store": ("AlreadyProcessedError", "OffsetStore", "SeekToStored", "SqliteOffsetStore"),
    "moldau.client.partitioners": ("Partitioner", "hashed_partition"),
    "moldau.client.producer": ("Producer",),
    "moldau.client.rebalancing": ("RebalanceListener",),
    "moldau.client.records": ("Delivery", "ProducerRecord", "Record"),
    "moldau.client.retries": ("Failure", "Origin", "RetryPolicy"),
    "moldau.client.serializers": (
        *("BYTES", "DOUBLE", "INT", "JSON", "LONG", "STRING"),
        *("Context", "Deserializer", "JsonSerde", "Serde", "Serializer", "StringSerde"),
    ),
    "moldau.core.errors": ("InvalidConfigError",),
    "moldau.core.ids": ("TopicPartition",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
