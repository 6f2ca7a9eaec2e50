"""The embedded formats of versions 1 and 2: a produce request becomes bytes, bytes become what a consumer reads.

A request is converted as a whole before anything is sent: a record that cannot be converted fails the request, and
nothing of it is produced. Start at `converted_request` and `read_part`.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from moldau.http.calls import decode_json, encode_json
from moldau.http.errors import HttpError
from moldau.rest.errors import RestError
from moldau.rest.records.schemas import SCHEMA_TYPES, KnownSchema, Schemas
from moldau.schemas.errors import SchemaError
from moldau.schemas.framing import frame_value, parse_frame

__all__ = ["ConvertedRequest", "OutgoingRecord", "converted_request", "decode_base64", "needs_registry", "read_part"]

KEY_SCHEMA_MISSING, VALUE_SCHEMA_MISSING, CONVERSION_FAILED, UNREADABLE = 42201, 42202, 42203, 40801
MAX_PARTITION = 2**31 - 1


class OutgoingRecord(NamedTuple):
    key: bytes | None
    value: bytes | None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class ConvertedRequest(NamedTuple):
    records: list[OutgoingRecord]
    key_schema_id: int | None
    value_schema_id: int | None


def needs_registry(embedded: str) -> bool:
    return embedded in SCHEMA_TYPES


def converted_request(
    document: Any, embedded: str, topic: str, schemas: Schemas, *, has_partition: bool
) -> ConvertedRequest:
    """The records of a request as bytes; raises the contract's errors. May ask the registry.

    `has_partition` says that the path names the partition, so that records may not.
    """
    records = _checked_records(document, has_partition=has_partition)
    key_schema = value_schema = None
    if needs_registry(embedded):
        keyed = any(record.get("key") is not None for record in records)
        valued = any(record.get("value") is not None for record in records)
        key_schema = _schema_of(document, "key", embedded, topic, schemas, KEY_SCHEMA_MISSING if keyed else None)
        value_schema = _schema_of(document, "value", embedded, topic, schemas, VALUE_SCHEMA_MISSING if valued else None)
    converted = [
        OutgoingRecord(
            _encode(record.get("key"), embedded, key_schema, f"key of record {place}"),
            _encode(record.get("value"), embedded, value_schema, f"value of record {place}"),
            record.get("partition"),
        )
        for place, record in enumerate(records)
    ]
    return ConvertedRequest(
        converted,
        None if key_schema is None else key_schema.id,
        None if value_schema is None else value_schema.id,
    )


def _checked_records(document: Any, *, has_partition: bool) -> list[dict[str, Any]]:
    if not isinstance(document, dict):
        raise RestError(400, "The body must be a JSON object with a list of records")
    records = document.get("records")
    if records is None or records == []:
        raise RestError(422, "records must not be empty")
    if not isinstance(records, list):
        raise RestError(400, "records must be a list of objects")
    for place, record in enumerate(records):
        if not isinstance(record, dict):
            raise RestError(400, f"records[{place}] must be an object")
        unknown = record.keys() - ({"key", "value"} if has_partition else {"key", "value", "partition"})
        if unknown:
            raise RestError(422, f"Unrecognized field: {min(unknown)} in records[{place}]")
        partition = record.get("partition")
        if partition is not None and (isinstance(partition, bool) or not isinstance(partition, int)):
            raise RestError(400, f"records[{place}].partition must be a number")
        if partition is not None and not 0 <= partition <= MAX_PARTITION:
            raise RestError(422, f"records[{place}].partition must be 0 or more")
    return records


def _schema_of(  # noqa: PLR0917
    document: Mapping[str, Any], part: str, embedded: str, topic: str, schemas: Schemas, missing: int | None
) -> KnownSchema | None:
    number, text = document.get(f"{part}_schema_id"), document.get(f"{part}_schema")
    schema_type = SCHEMA_TYPES[embedded]
    if number is not None:
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**31:
            raise RestError(400, f"{part}_schema_id must be a number")
        known = schemas.of_id(number)
        if known.schema_type != schema_type:
            raise RestError(
                CONVERSION_FAILED, f"Schema {number} is of type {known.schema_type}, the request of type {schema_type}"
            )
        return known
    if text is not None:
        if not isinstance(text, str):
            raise RestError(400, f"{part}_schema must be a string: the schema as a JSON string")
        return schemas.of_text(f"{topic}-{part}", schema_type, text)
    if missing is not None:
        raise RestError(
            missing,
            f"{part.capitalize()}s require a schema: give {part}_schema, or {part}_schema_id of a registered one",
        )
    return None


def _encode(part: Any, embedded: str, schema: KnownSchema | None, about: str) -> bytes | None:
    if part is None:
        return None
    if embedded == "json":
        return encode_json(part)
    if embedded == "binary":
        return decode_base64(part, about)
    assert schema is not None
    try:
        return frame_value(schema.id, schema.codec.encode_text(json.dumps(part)))
    except SchemaError as error:
        raise RestError(CONVERSION_FAILED, f"Conversion of JSON to {embedded} failed, {about}: {error}") from None


def decode_base64(text: Any, about: str) -> bytes:
    """Strict base64 in the standard alphabet, with padding."""
    if not isinstance(text, str):
        raise RestError(422, f"The {about} must be a string in base64")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise RestError(422, f"The {about} is not valid base64") from None


def read_part(data: bytes | None, embedded: str, schemas: Schemas, about: str) -> Any:
    """A key or value as a consumer of a format reads it; raises 40801 for other data. May ask the registry."""
    if data is None:
        return None
    if embedded == "binary":
        return base64.b64encode(data).decode()
    try:
        if embedded == "json":
            return decode_json(data)
        frame = parse_frame(data)
        if frame.schema_id is None:
            raise RestError(UNREADABLE, f"The {about} names its schema by a guid, which this API cannot read")
        known = schemas.of_id(frame.schema_id)
        if known.schema_type != SCHEMA_TYPES[embedded]:
            raise RestError(UNREADABLE, f"The {about} is of type {known.schema_type}, not {SCHEMA_TYPES[embedded]}")
        return decode_json(known.codec.decode_text(frame.body).encode())
    except (SchemaError, ValueError, HttpError) as error:
        raise RestError(UNREADABLE, f"The {about} cannot be read as {embedded}: {error}") from None
    except RestError as error:
        raise RestError(UNREADABLE, str(error)) from None
