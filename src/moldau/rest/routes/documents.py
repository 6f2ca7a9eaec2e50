"""JSON schemas of requests and answers, for OpenAPI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = [
    "ALTER_CONFIGS",
    "BATCH",
    "COMMIT",
    "CREATE_ACL",
    "CREATE_ACLS",
    "CREATE_INSTANCE",
    "CREATE_TOPIC",
    "LIST",
    "NAMES",
    "OBJECT",
    "PARTITIONS",
    "POSITIONS",
    "PRODUCE",
    "RECORD",
    "SUBSCRIPTION",
    "UPDATE_CONFIG",
    "UPDATE_TOPIC",
]

Document = Mapping[str, Any]


def _object(required: tuple[str, ...] = (), **properties: Document) -> Document:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def _list(items: Document) -> Document:
    return {"type": "array", "items": items}


TEXT: Final = {"type": "string"}
NUMBER: Final = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
OFFSET: Final = {"type": "integer", "minimum": 0, "maximum": 2**63 - 2}
FLAG: Final = {"type": "boolean"}
ANY: Final[Document] = {}
OBJECT: Final = {"type": "object"}
LIST: Final = {"type": "array", "items": {}}
NAMES: Final = _list(TEXT)

# Versions 1 and 2
PLACE: Final = _object(("topic", "partition"), topic=TEXT, partition=NUMBER)
PRODUCE: Final = _object(
    ("records",),
    key_schema=TEXT,
    key_schema_id=NUMBER,
    value_schema=TEXT,
    value_schema_id=NUMBER,
    records={**_list(_object((), key=ANY, value=ANY, partition=NUMBER)), "minItems": 1},
)
CREATE_INSTANCE: Final = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "id": TEXT,
        "format": {"type": "string", "enum": ["binary", "json", "avro", "jsonschema", "protobuf"]},
        "auto.offset.reset": {"type": "string", "enum": ["earliest", "latest", "none", "smallest", "largest"]},
        "auto.commit.enable": {"type": "string", "enum": ["true", "false"]},
        "enable.auto.commit": {"type": "string", "enum": ["true", "false"]},
        "fetch.min.bytes": {"type": "integer", "minimum": -1, "maximum": 10_000_000},
        "consumer.request.timeout.ms": NUMBER,
    },
}
SUBSCRIPTION: Final = _object((), topics=NAMES, topic_pattern=TEXT)
PARTITIONS: Final = _object(("partitions",), partitions=_list(PLACE))
_OFFSETS = _list(_object(("topic", "partition", "offset"), topic=TEXT, partition=NUMBER, offset=OFFSET, metadata=TEXT))
COMMIT: Final = _object((), offsets=_OFFSETS)
POSITIONS: Final = _object(
    (),
    offsets=_OFFSETS,
    timestamps=_list(
        _object(
            ("topic", "partition", "timestamp"),
            topic=TEXT,
            partition=NUMBER,
            timestamp={"type": "string", "format": "date-time"},
        )
    ),
)

# Version 3
_CONFIG = _object(("name",), name=TEXT, value={"type": "string", "nullable": True})
CREATE_TOPIC: Final = _object(
    ("topic_name",),
    topic_name=TEXT,
    partitions_count={"type": "integer", "minimum": 1, "maximum": 100},
    replication_factor={"type": "integer", "minimum": 1, "maximum": 3},
    replicas_assignments={"type": "object", "additionalProperties": _list(NUMBER)},
    configs=_list(_CONFIG),
    validate_only=FLAG,
)
UPDATE_TOPIC: Final = _object(("partitions_count",), partitions_count={"type": "integer", "minimum": 1})
UPDATE_CONFIG: Final = _object((), value={"type": "string", "nullable": True})
ALTER_CONFIGS: Final = _object(
    ("data",),
    data=_list(
        _object(
            ("name",),
            name=TEXT,
            value={"type": "string", "nullable": True},
            operation={"type": "string", "enum": ["SET", "DELETE"]},
        )
    ),
    validate_only=FLAG,
)
_ACL = {
    "resource_type": TEXT,
    "resource_name": TEXT,
    "pattern_type": TEXT,
    "principal": TEXT,
    "host": TEXT,
    "operation": TEXT,
    "permission": TEXT,
}
CREATE_ACL: Final = _object(tuple(_ACL), **_ACL)
CREATE_ACLS: Final = _object(("data",), data=_list(CREATE_ACL))
_DATA = _object(
    (),
    type={"type": "string", "enum": ["BINARY", "JSON", "STRING", "AVRO", "JSONSCHEMA", "PROTOBUF"]},
    data=ANY,
    subject=TEXT,
    subject_name_strategy={"type": "string", "enum": ["TOPIC_NAME", "RECORD_NAME", "TOPIC_RECORD_NAME"]},
    schema_id=NUMBER,
    schema_version=NUMBER,
    schema=TEXT,
)
_RECORD: Mapping[str, Document] = {
    "partition_id": NUMBER,
    "timestamp": {"type": "string", "format": "date-time"},
    "headers": _list(_object(("name",), name=TEXT, value={"type": "string", "format": "byte", "nullable": True})),
    "key": _DATA,
    "value": _DATA,
}
RECORD: Final = _object((), **_RECORD)
BATCH: Final = _object(("entries",), entries=_list(_object(("id",), id=TEXT, **_RECORD)))
