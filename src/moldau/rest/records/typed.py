"""The records of version 3: JSON objects with typed data become bytes, and bytes of unknown type become typed data.

Start at `converted_record`; `described` guesses the type of data that was read.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from moldau.http.calls import decode_json, encode_json
from moldau.http.errors import HttpError
from moldau.rest.errors import RestError, titled
from moldau.rest.records.embedded import OutgoingRecord
from moldau.rest.records.moments import parse_timestamp_ms
from moldau.rest.records.schemas import KnownSchema, Schemas
from moldau.schemas.errors import SchemaError
from moldau.schemas.framing import frame_value, parse_frame

__all__ = ["ConvertedData", "ConvertedRecord", "converted_record", "described", "needs_registry"]

PLAIN_TYPES: Final = ("BINARY", "JSON", "STRING")
SCHEMA_TYPES: Final = {"AVRO": "AVRO", "JSONSCHEMA": "JSON", "PROTOBUF": "PROTOBUF"}
TYPE_NAMES: Final = {"AVRO": "AVRO", "JSON": "JSONSCHEMA", "PROTOBUF": "PROTOBUF"}
STRATEGIES: Final = ("TOPIC_NAME", "RECORD_NAME", "TOPIC_RECORD_NAME")
RECORD_FIELDS: Final = frozenset({"partition_id", "timestamp", "headers", "key", "value"})
SERIALIZATION = 42207
MAX_INT32 = 2**31 - 1


class ConvertedData(NamedTuple):
    """A key or a value as bytes, and what a delivery report says of it."""

    content: bytes | None
    type: str
    schema: KnownSchema | None = None

    @property
    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = {"type": self.type, "size": len(self.content or b"")}
        if self.schema is not None:
            report |= {
                "subject": self.schema.subject,
                "schema_id": self.schema.id,
                "schema_version": self.schema.version,
            }
        return report


class ConvertedRecord(NamedTuple):
    record: OutgoingRecord
    key: ConvertedData | None
    value: ConvertedData | None


def needs_registry(document: Any) -> bool:
    """Whether converting a record asks the registry, so that it has to be done in a thread."""
    if not isinstance(document, dict):
        return False
    parts = (document.get("key"), document.get("value"))
    return any(isinstance(part, dict) and part.get("type") not in PLAIN_TYPES for part in parts)


def converted_record(document: Any, topic: str, schemas: Schemas) -> ConvertedRecord:
    """A record as bytes; raises the contract's errors. May ask the registry."""
    if not isinstance(document, dict):
        raise titled(400, "A record is a JSON object.")
    unknown = document.keys() - RECORD_FIELDS
    if unknown:
        raise titled(400, f"Unrecognized field: {min(unknown)}.")
    partition = document.get("partition_id")
    if partition is not None:
        if isinstance(partition, bool) or not isinstance(partition, int) or abs(partition) > MAX_INT32:
            raise titled(400, "partition_id must be a number.")
        if partition < 0:
            raise RestError(40402, "Partition not found.")
    timestamp = document.get("timestamp")
    key = _converted(document.get("key"), topic, schemas, is_key=True)
    value = _converted(document.get("value"), topic, schemas, is_key=False)
    record = OutgoingRecord(
        key.content if key else None,
        value.content if value else None,
        partition,
        None if timestamp is None else parse_timestamp_ms(timestamp),
        _headers(document.get("headers")),
    )
    return ConvertedRecord(record, key, value)


def _headers(given: Any) -> tuple[tuple[str, bytes | None], ...]:
    if given is None:
        return ()
    if not isinstance(given, list):
        raise titled(400, "headers must be a list of objects with name and value.")
    found = []
    for one in given:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            raise titled(400, "headers must be a list of objects with name and value.")
        value = one.get("value")
        found.append((one["name"], None if value is None else _base64(value)))
    return tuple(found)


def _base64(text: Any) -> bytes:
    try:
        if isinstance(text, str):
            return base64.b64decode(text, validate=True)
    except ValueError:
        pass
    raise titled(400, f"data={_short(text)} is not a base64 string.")


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


# Data


def _converted(part: Any, topic: str, schemas: Schemas, *, is_key: bool) -> ConvertedData | None:
    if part is None:
        return None
    name = "key" if is_key else "value"
    if not isinstance(part, dict):
        raise titled(400, f"{name} must be an object with type and data.")
    kind, data = part.get("type"), part.get("data")
    if kind is not None and kind not in (*PLAIN_TYPES, *SCHEMA_TYPES):
        raise titled(400, f"type={_short(kind)} is not one of {', '.join((*PLAIN_TYPES, *SCHEMA_TYPES))}.")
    if kind in PLAIN_TYPES:
        _refuse_schema_fields(part, kind)
        return ConvertedData(_plain(kind, data), kind)
    schema = _schema(part, kind, topic, schemas, is_key=is_key)
    type_name = TYPE_NAMES[schema.schema_type]
    if data is None:
        return ConvertedData(None, type_name, schema)
    try:
        return ConvertedData(frame_value(schema.id, schema.codec.encode_text(json.dumps(data))), type_name, schema)
    except SchemaError as error:
        raise titled(400, f"The {name} does not fit schema {schema.id}: {error}") from None


def _plain(kind: str, data: Any) -> bytes | None:
    if data is None:
        return None
    if kind == "BINARY":
        return _base64(data)
    if kind == "JSON":
        return encode_json(data)
    if not isinstance(data, str):
        raise titled(400, f"data={_short(data)} is not a string.")
    return data.encode()


def _refuse_schema_fields(part: Mapping[str, Any], kind: str) -> None:
    for name in ("subject", "subject_name_strategy", "schema_id", "schema_version", "schema"):
        if part.get(name) is not None:
            raise titled(400, f"{name} cannot be used with type={kind}.")


def _schema(part: Mapping[str, Any], kind: str | None, topic: str, schemas: Schemas, *, is_key: bool) -> KnownSchema:
    subject, strategy = _text(part, "subject"), _text(part, "subject_name_strategy")
    number, version = _number(part, "schema_id"), _number(part, "schema_version")
    text = _text(part, "schema")
    if subject is not None and strategy is not None:
        raise titled(400, "Only one of subject and subject_name_strategy can be used.")
    if sum(one is not None for one in (number, version, text)) > 1:
        raise titled(400, "Only one of schema_id, schema_version and schema can be used.")
    if strategy is not None and strategy not in STRATEGIES:
        raise titled(400, f"subject_name_strategy={strategy} is not one of {', '.join(STRATEGIES)}.")
    if kind is not None and text is None:
        raise titled(400, f"type={kind} needs schema; leave type out to use schema_id, schema_version or the latest.")
    if kind is None and text is not None:
        raise titled(400, "schema needs type: AVRO, JSONSCHEMA or PROTOBUF.")
    by_record = strategy in ("RECORD_NAME", "TOPIC_RECORD_NAME")
    if by_record and number is None and text is None:
        raise titled(400, f"subject_name_strategy={strategy} needs schema_id or schema.")
    if text is not None and kind is not None:
        schema_type = SCHEMA_TYPES[kind]
        name = schemas.record_name(schema_type, text) if by_record else None
        return schemas.of_text(subject or _subject(strategy, topic, name, is_key=is_key), schema_type, text)
    if number is not None:
        name = schemas.record_name_of_id(number) if by_record else None
        return schemas.of_subject_and_id(subject or _subject(strategy, topic, name, is_key=is_key), number)
    return schemas.of_version(subject or _subject(None, topic, None, is_key=is_key), version)


def _subject(strategy: str | None, topic: str, record_name: str | None, *, is_key: bool) -> str:
    if strategy in (None, "TOPIC_NAME"):
        return f"{topic}-{'key' if is_key else 'value'}"
    if not record_name:
        raise titled(400, f"subject_name_strategy={strategy} needs a schema with a name.")
    return record_name if strategy == "RECORD_NAME" else f"{topic}-{record_name}"


def _text(part: Mapping[str, Any], name: str) -> str | None:
    given = part.get(name)
    if given is not None and (not isinstance(given, str) or not given):
        raise titled(400, f"{name} must be a string.")
    return given


def _number(part: Mapping[str, Any], name: str) -> int | None:
    given = part.get(name)
    if given is not None and (isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= MAX_INT32):
        raise titled(400, f"{name} must be a number from 0.")
    return given


# Reading


def described(content: bytes | None, schemas: Schemas | None) -> dict[str, Any] | None:
    """Data of unknown type, with the type that it seems to have; `None` stays. May ask the registry."""
    if content is None:
        return None
    if schemas is not None and content[:1] == b"\x00" and len(content) >= 5:
        try:
            frame = parse_frame(content)
            known = schemas.of_id(frame.schema_id or 0)
            data = decode_json(known.codec.decode_text(frame.body).encode())
            return {"type": TYPE_NAMES[known.schema_type], "schema_id": known.id, "data": data}
        except (SchemaError, RestError, HttpError, UnicodeError):
            pass  # bytes that only look like it
    try:
        return {"type": "JSON", "data": decode_json(content)}
    except HttpError:
        pass
    try:
        text = content.decode()
        if "\0" not in text:
            return {"type": "STRING", "data": text}
    except UnicodeDecodeError:
        pass
    return {"type": "BINARY", "data": base64.b64encode(content).decode()}
