"""Values of the control records in the metadata log and in its snapshots, by kio's schemas.

Each value starts with its own version. Keys and batches are `protocol.records`;
transaction markers are there too, since every log has them. Start at `encode_control` and `decode_control`.
"""

from __future__ import annotations

import io
from functools import cache
from typing import Final

from moldau.protocol.field_reader import DAMAGE, Cursor, Read, struct_reader
from moldau.protocol.kio_schemas import entity_writer, table_of
from moldau.protocol.messages import Message
from moldau.protocol.record_schemas import MalformedRecordError
from moldau.protocol.records import ControlType

__all__ = ["decode_control", "encode_control"]

_SCHEMAS: Final = {
    ControlType.LEADER_CHANGE: ("leader_change_message", 1),
    ControlType.SNAPSHOT_HEADER: ("snapshot_header_record", 0),
    ControlType.SNAPSHOT_FOOTER: ("snapshot_footer_record", 0),
    ControlType.KRAFT_VERSION: ("k_raft_version_record", 0),
    ControlType.KRAFT_VOTERS: ("voters_record", 0),
}
"""kio's name and the newest version."""


def encode_control(kind: ControlType, message: Message, version: int = 0) -> bytes:
    """Encode a control record's value. Leader changes are v1 once voters have directory ids (kraft.version 1)."""
    schema, _ = _SCHEMAS[kind]
    output = io.BytesIO()
    entity_writer(schema, version, "data")(output, Message(**{**vars(message), "version": version}))
    return output.getvalue()


def decode_control(kind: int, value: bytes | None) -> Message:
    """Decode a control record's value. Bytes after it belong to a later version and are ignored."""
    if value is None or len(value) < 2:
        raise MalformedRecordError(f"a control record of type {kind} without a version")
    schema, newest = _schema(kind)
    version = int.from_bytes(value[:2], "big", signed=True)
    if version < 0:
        raise MalformedRecordError(f"a control record of type {kind} with version {version}")
    try:
        message: Message = _reader(schema, min(version, newest))(Cursor(value))
    except DAMAGE as error:
        raise MalformedRecordError(f"a control record of type {kind}: {error}") from None
    return message


def _schema(kind: int) -> tuple[str, int]:
    try:
        return _SCHEMAS[ControlType(kind)]
    except (KeyError, ValueError):
        raise MalformedRecordError(f"no schema for control records of type {kind}") from None


@cache
def _reader(schema: str, version: int) -> Read:
    return struct_reader(table_of(schema, version, "data", lambda name, path: Message))
