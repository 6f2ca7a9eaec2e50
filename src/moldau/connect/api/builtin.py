"""The plug-ins that come with moldau: their public names and where their classes are.

Names are those of Kafka's and Confluent's classes, so that existing configurations work as they are. A class is
imported when it is first used. Start at `BUILTIN`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["BUILTIN", "BuiltinPlugin"]

HERE: Final = "moldau.connect"
KAFKA: Final = "org.apache.kafka.connect"


class BuiltinPlugin(NamedTuple):
    """A plug-in of moldau's own."""

    name: str
    """The name in plug-in lists."""

    kind: str
    """`source`, `sink`, `transformation`, `predicate`, `converter` or `header_converter`."""

    target: str
    """`module:class`, where the class is."""

    aliases: tuple[str, ...] = ()
    """More names, beside the ones that follow from `name`."""


_CONNECTORS: Final = (
    BuiltinPlugin(
        f"{KAFKA}.file.FileStreamSourceConnector",
        "source",
        f"{HERE}.connectors.file_stream.source:FileStreamSourceConnector",
    ),
    BuiltinPlugin(
        f"{KAFKA}.file.FileStreamSinkConnector", "sink", f"{HERE}.connectors.file_stream.sink:FileStreamSinkConnector"
    ),
    BuiltinPlugin(
        "io.confluent.kafka.connect.datagen.DatagenConnector",
        "source",
        f"{HERE}.connectors.datagen.source:DatagenConnector",
        ("DatagenSource",),
    ),
    BuiltinPlugin(
        "moldau.connect.connectors.files.FileSourceConnector",
        "source",
        f"{HERE}.connectors.files.source:FileSourceConnector",
        ("com.github.jcustenborder.kafka.connect.spooldir.SpoolDirCsvSourceConnector",),
    ),
    BuiltinPlugin(
        "io.confluent.connect.jdbc.JdbcSourceConnector",
        "source",
        f"{HERE}.connectors.jdbc.source:JdbcSourceConnector",
    ),
    BuiltinPlugin(
        "io.confluent.connect.jdbc.JdbcSinkConnector", "sink", f"{HERE}.connectors.jdbc.sink:JdbcSinkConnector"
    ),
    BuiltinPlugin(
        "io.confluent.connect.hdfs.HdfsSinkConnector",
        "sink",
        f"{HERE}.connectors.hdfs.sink:HdfsSinkConnector",
        ("io.confluent.connect.hdfs3.Hdfs3SinkConnector",),
    ),
)

_TRANSFORMS: Final[Mapping[str, tuple[str, bool]]] = {
    "InsertField": ("fields", True),
    "ReplaceField": ("fields", True),
    "MaskField": ("masking", True),
    "ValueToKey": ("keys", False),
    "HoistField": ("fields", True),
    "ExtractField": ("fields", True),
    "Cast": ("casting", True),
    "Flatten": ("flattening", True),
    "TimestampConverter": ("timestamps", True),
    "TimestampRouter": ("routing", False),
    "RegexRouter": ("routing", False),
    "SetSchemaMetadata": ("metadata", True),
    "HeaderFrom": ("headers", True),
    "InsertHeader": ("headers", False),
    "DropHeaders": ("headers", False),
    "Filter": ("routing", False),
}
"""Module of `connect.transforms`, and whether there are variants for key and value."""


def _transforms() -> list[BuiltinPlugin]:
    found = []
    for name, (module, has_parts) in _TRANSFORMS.items():
        for part in ("Key", "Value") if has_parts else ("",):
            public = f"{KAFKA}.transforms.{name}" + (f"${part}" if part else "")
            target = f"{HERE}.transforms.{module}:{name}{part}"
            found.append(BuiltinPlugin(public, "transformation", target))
    return found


_PREDICATES: Final = tuple(
    BuiltinPlugin(f"{KAFKA}.transforms.predicates.{name}", "predicate", f"{HERE}.transforms.predicates:{name}")
    for name in ("TopicNameMatches", "HasHeaderKey", "RecordIsTombstone")
)

_CONVERTERS: Final = (
    BuiltinPlugin(f"{KAFKA}.json.JsonConverter", "converter", f"{HERE}.converters.json:JsonConverter"),
    BuiltinPlugin(f"{KAFKA}.storage.StringConverter", "converter", f"{HERE}.converters.plain:StringConverter"),
    BuiltinPlugin(f"{KAFKA}.converters.ByteArrayConverter", "converter", f"{HERE}.converters.plain:ByteArrayConverter"),
    *(
        BuiltinPlugin(f"{KAFKA}.converters.{name}Converter", "converter", f"{HERE}.converters.plain:{name}Converter")
        for name in ("Short", "Integer", "Long", "Float", "Double", "Boolean")
    ),
    BuiltinPlugin("io.confluent.connect.avro.AvroConverter", "converter", f"{HERE}.converters.avro:AvroConverter"),
    BuiltinPlugin(
        "io.confluent.connect.json.JsonSchemaConverter",
        "converter",
        f"{HERE}.converters.json_schema:JsonSchemaConverter",
    ),
    BuiltinPlugin(
        "io.confluent.connect.protobuf.ProtobufConverter",
        "converter",
        f"{HERE}.converters.protobuf:ProtobufConverter",
    ),
    BuiltinPlugin(
        f"{KAFKA}.storage.SimpleHeaderConverter",
        "header_converter",
        f"{HERE}.converters.headers:SimpleHeaderConverter",
    ),
)

_HEADER_CONVERTERS: Final = tuple(
    BuiltinPlugin(one.name, "header_converter", f"{HERE}.converters.headers:{one.target.rpartition(':')[2]}Headers")
    for one in _CONVERTERS
    if one.kind == "converter" and one.name.startswith(KAFKA)
)
"""Kafka's converters serve for headers, too."""

BUILTIN: Final[tuple[BuiltinPlugin, ...]] = (
    *_CONNECTORS,
    *_transforms(),
    *_PREDICATES,
    *_CONVERTERS,
    *_HEADER_CONVERTERS,
)
