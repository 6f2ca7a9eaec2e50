"""Metadata records as JSON, spelled as Kafka's own tools spell them.

camelCase names in the order of the schema, ids in their 22-character form, bytes in base64, tagged fields only
where they differ from their default. Start at `metadata_text` and `control_record_json`.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from typing import Any, Final
from uuid import UUID

from moldau.core.errors import MoldauError
from moldau.core.ids import render_uuid
from moldau.protocol.control_records import decode_control
from moldau.protocol.field_reader import Cursor, read_uvarint
from moldau.protocol.metadata_records import MetadataRecord, decode_metadata_record
from moldau.protocol.records import ControlType, Record

__all__ = ["control_record_json", "json_text", "metadata_text", "record_json"]

NO_ID: Final = render_uuid(UUID(int=0))
LEADER_CHANGE_WITH_DIRECTORIES: Final = 1


def metadata_text(offset: int, record: Record) -> tuple[str | None, str | None]:
    """The payload of a metadata record; it has no key."""
    value = record.value or b""
    try:
        decoded = decode_metadata_record(value)
        version = _version_of(value)
        shown = {"type": _type_name(decoded), "version": version, "data": record_json(decoded, version)}
        return None, json_text(shown)
    except MoldauError as error:
        return None, f"Error at {offset}, skipping. {error}"


def control_record_json(kind: ControlType, value: bytes) -> str:
    """The value of a control record of the metadata log or of a snapshot."""
    try:
        shown = _message_json(decode_control(kind, value))
    except MoldauError as error:
        return f"unreadable: {error}"
    if kind is ControlType.LEADER_CHANGE and shown["version"] < LEADER_CHANGE_WITH_DIRECTORIES:
        for voter in (*shown["voters"], *shown["grantingVoters"]):
            voter.pop("voterDirectoryId", None)
    return json_text(shown)


def record_json(record: Any, version: int) -> dict[str, Any]:
    """The fields of a record that exist in its version."""
    shown = {}
    for field in dataclasses.fields(record):
        wire, value = field.metadata["wire"], getattr(record, field.name)
        if wire.since > version or (wire.tag is not None and value == wire.default):
            continue
        shown[_camel(field.name)] = _value_json(value, version, is_id=wire.type == "uuid")
    return shown


def json_text(shown: Any) -> str:
    return json.dumps(shown, separators=(",", ":"), ensure_ascii=False)


def _value_json(value: Any, version: int, *, is_id: bool) -> Any:
    if isinstance(value, tuple):
        return [_value_json(element, version, is_id=is_id) for element in value]
    if dataclasses.is_dataclass(value):
        return record_json(value, version)
    if value is None and is_id:
        return NO_ID
    return _json_value(value)


def _message_json(message: Any) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for name, value in vars(message).items():
        if isinstance(value, list):
            shown[_camel(name)] = [_message_json(element) for element in value]
        elif hasattr(value, "__dict__"):
            shown[_camel(name)] = _message_json(value)
        elif value is None and name.endswith("directory_id"):
            shown[_camel(name)] = NO_ID
        else:
            shown[_camel(name)] = _json_value(value)
    return shown


def _json_value(value: Any) -> Any:
    if isinstance(value, UUID):
        return render_uuid(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


def _version_of(value: bytes) -> int:
    cursor = Cursor(value)
    _frame, _kind, version = read_uvarint(cursor), read_uvarint(cursor), read_uvarint(cursor)
    return version


def _type_name(record: MetadataRecord) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(record).__name__).upper()


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
