"""Encoding and decoding of the records of the `_schemas` topic, byte for byte as Confluent's registry writes them.

The fields of a key have a fixed order, since compaction compares bytes. Values from other writers may have unknown or
missing fields; an invalid record is decoded as `None`, which the caller logs. Pure functions.
Start at `encode_key`, `encode_value` and `decode`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from moldau.registry.entities import AVRO, SchemaReference, SchemaVersion
from moldau.registry.errors import RegistryError
from moldau.registry.metadata import checked_metadata, checked_rule_set

__all__ = [
    "CONFIG_FIELDS",
    "ClearSubjectKey",
    "ConfigKey",
    "ContextKey",
    "DeleteSubjectKey",
    "Key",
    "ModeKey",
    "NoopKey",
    "Record",
    "SchemaKey",
    "decode",
    "encode_key",
    "encode_value",
]

CONFIG_FIELDS = (
    "alias",
    "normalize",
    "validateFields",
    "validateNewSchemas",
    "validateRules",
    "compatibilityLevel",
    "compatibilityPolicy",
    "compatibilityGroup",
    "defaultMetadata",
    "overrideMetadata",
    "defaultRuleSet",
    "overrideRuleSet",
)
TENANT = "default"


class SchemaKey(NamedTuple):
    subject: str
    version: int


class ConfigKey(NamedTuple):
    subject: str | None


class ModeKey(NamedTuple):
    subject: str | None


class DeleteSubjectKey(NamedTuple):
    subject: str


class ClearSubjectKey(NamedTuple):
    subject: str | None


class ContextKey(NamedTuple):
    context: str


class NoopKey(NamedTuple):
    pass


Key: TypeAlias = SchemaKey | ConfigKey | ModeKey | DeleteSubjectKey | ClearSubjectKey | ContextKey | NoopKey
Value: TypeAlias = SchemaVersion | Mapping[str, Any] | str | int | None


class Record(NamedTuple):
    """A state change. The value is a schema, a config's fields, a mode, a highest deleted version, or `None`."""

    key: Key
    value: Value = None


_KEY_TYPES = {
    SchemaKey: "SCHEMA",
    ConfigKey: "CONFIG",
    ModeKey: "MODE",
    DeleteSubjectKey: "DELETE_SUBJECT",
    ClearSubjectKey: "CLEAR_SUBJECT",
    ContextKey: "CONTEXT",
    NoopKey: "NOOP",
}
_SCHEMA_MAGIC = 1


def encode_key(key: Key) -> bytes:
    document: dict[str, Any] = {"keytype": _KEY_TYPES[type(key)]}
    match key:
        case SchemaKey(subject, version):
            return _encode({**document, "subject": subject, "version": version, "magic": _SCHEMA_MAGIC})
        case ContextKey(context):
            return _encode({**document, "tenant": TENANT, "context": context, "magic": 0})
        case ConfigKey(scope) | ModeKey(scope) | ClearSubjectKey(scope) | DeleteSubjectKey(scope) if scope is not None:
            return _encode({**document, "subject": scope, "magic": 0})
    return _encode({**document, "magic": 0})


def encode_value(record: Record, *, names_avro: bool = True) -> bytes | None:
    """The value's bytes, or `None` for a tombstone. `names_avro=False` omits the type `AVRO`, as before 8.0."""
    key, value = record
    if isinstance(value, SchemaVersion):
        return _encode(_schema_document(value, names_avro=names_avro))
    if isinstance(key, ContextKey) and value is not None:
        return _encode({"tenant": TENANT, "context": key.context})
    if value is None:
        return None
    subject = getattr(key, "subject", None)
    document: dict[str, Any] = {} if subject is None else {"subject": subject}
    if isinstance(value, str):
        return _encode({**document, "mode": value} if isinstance(key, ModeKey) else document)
    if isinstance(value, int):
        return _encode({**document, "version": value})
    return _encode(document | {name: value[name] for name in CONFIG_FIELDS if value.get(name) is not None})


def decode(key: bytes | None, value: bytes | None, timestamp_ms: int | None = None) -> Record | None:
    """Decode a record; `None` if its key or value is invalid or unknown."""
    try:
        known = _decoded_key(json.loads((key or b"").decode()))
        if known is None or value is None:
            return None if known is None else Record(known)
        return Record(known, _decoded_value(known, json.loads(value.decode()), timestamp_ms))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, RegistryError):
        return None


def _schema_document(schema: SchemaVersion, *, names_avro: bool) -> dict[str, Any]:
    document: dict[str, Any] = {"subject": schema.subject, "version": schema.version, "id": schema.id}
    if names_avro or schema.schema_type != AVRO:
        document["schemaType"] = schema.schema_type
    if schema.references:
        document["references"] = [
            {"name": reference.name, "subject": reference.subject, "version": reference.version}
            for reference in schema.references
        ]
    if schema.metadata:
        document["metadata"] = schema.metadata
    if schema.rule_set:
        document["ruleSet"] = schema.rule_set
    return {**document, "schema": schema.schema, "deleted": schema.is_deleted}


def _decoded_key(document: Mapping[str, Any]) -> Key | None:
    kind, subject = document["keytype"], document.get("subject")
    if subject is not None and not isinstance(subject, str):
        return None
    match kind:
        case "SCHEMA" if subject is not None:
            return SchemaKey(subject, _whole(document["version"]))
        case "CONFIG":
            return ConfigKey(subject)
        case "MODE":
            return ModeKey(subject)
        case "DELETE_SUBJECT" if subject is not None:
            return DeleteSubjectKey(subject)
        case "CLEAR_SUBJECT":
            return ClearSubjectKey(subject)
        case "CONTEXT":
            return ContextKey(str(document["context"]))
        case "NOOP":
            return NoopKey()
    return None


def _decoded_value(key: Key, document: Mapping[str, Any], timestamp_ms: int | None) -> Value:
    match key:
        case SchemaKey():
            return _decoded_schema(key, document, timestamp_ms)
        case ConfigKey():
            return {name: document[name] for name in CONFIG_FIELDS if document.get(name) is not None}
        case ModeKey():
            return str(document["mode"])
        case DeleteSubjectKey():
            return _whole(document["version"])
        case ContextKey():
            return key.context
        case ClearSubjectKey():
            return key.subject or ""
    return None


def _decoded_schema(key: SchemaKey, document: Mapping[str, Any], timestamp_ms: int | None) -> SchemaVersion:
    text = document["schema"]
    if not isinstance(text, str):
        raise TypeError("the schema is not text")
    references = document.get("references")
    return SchemaVersion(
        subject=key.subject,
        version=key.version,
        id=_whole(document["id"]),
        schema_type=document.get("schemaType") or AVRO,
        schema=text,
        references=tuple(map(_decoded_reference, references)) if references else (),
        metadata=checked_metadata(document.get("metadata")) or None,
        rule_set=checked_rule_set(document.get("ruleSet")) or None,
        is_deleted=bool(document.get("deleted", False)),
        timestamp_ms=timestamp_ms,
    )


def _decoded_reference(entry: Mapping[str, Any]) -> SchemaReference:
    return SchemaReference(str(entry["name"]), str(entry["subject"]), _whole(entry["version"]))


def _whole(number: object) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{number!r} is not a whole number")
    return number


def _encode(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
