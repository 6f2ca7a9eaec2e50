"""Records of `__consumer_offsets` and `__transaction_state` as JSON, spelled as Kafka's own tools spell them.

For kafka-dump-log, and for the console consumer's formatters. Start at `offsets_text` and `decode_record`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from moldau.core.errors import MoldauError
from moldau.log.dump.dump_metadata import json_text, record_json
from moldau.protocol.consumer_protocol import decode_assignment, decode_subscription
from moldau.protocol.coordinator_records import (
    GROUP_KEYS,
    TRANSACTION_KEYS,
    GroupMetadataValue,
    RecordKey,
    RecordValue,
    TransactionLogValue,
    decode_key,
    decode_value,
)
from moldau.protocol.record_schemas import MalformedRecordError
from moldau.protocol.records import Record

__all__ = ["Decoded", "decode_record", "offsets_text", "transactions_text"]

DELETED: Final = "<DELETE>"
_INT16: Final = struct.Struct(">h")
_LONG_NAMES: Final = {
    "lastUpdateTimestampMs": "transactionLastUpdateTimestampMs",
    "startTimestampMs": "transactionStartTimestampMs",
}
"""Fields of a transaction that our records call by a shorter name."""


class Decoded(NamedTuple):
    """One record; `version` and `value` are `None` for a tombstone."""

    type: int
    key: dict[str, Any]
    version: int | None
    content: RecordValue | None

    @property
    def value(self) -> dict[str, Any] | None:
        """The value's fields; the members' protocol metadata stays in base64."""
        return None if self.content is None or self.version is None else _value_json(self.content, self.version)


def decode_record(key: bytes, value: bytes | None, known: Mapping[int, type[RecordKey]]) -> Decoded | None:
    """Decode a record; `None` for a key of an unknown type. Raises `MalformedRecordError`."""
    found = decode_key(key, known)
    if found is None:
        return None
    kind: int = _INT16.unpack_from(key)[0]
    if value is None:
        return Decoded(kind, record_json(found, 0), None, None)
    content = decode_value(found, value)
    return Decoded(kind, record_json(found, 0), _INT16.unpack_from(value)[0], content)


def offsets_text(offset: int, record: Record) -> tuple[str | None, str | None]:
    return _text(offset, record, GROUP_KEYS)


def transactions_text(offset: int, record: Record) -> tuple[str | None, str | None]:
    return _text(offset, record, TRANSACTION_KEYS)


def _text(offset: int, record: Record, known: Mapping[int, type[RecordKey]]) -> tuple[str | None, str | None]:
    if record.key is None:
        return None, f"Error at {offset}, skipping. The record has no key"
    try:
        found = decode_record(record.key, record.value, known)
    except MoldauError as error:
        return None, f"Error at {offset}, skipping. {error}"
    if found is None:
        kind = _INT16.unpack_from(record.key)[0]
        return None, f"Error at {offset}, skipping. Unknown record type {kind}"
    key = json_text({"type": str(found.type), "data": found.key})
    if found.content is None:
        return key, DELETED
    value = _with_decoded_members(found.content, found.value or {})
    return key, json_text({"version": str(found.version), "data": value})


def _value_json(content: RecordValue, version: int) -> dict[str, Any]:
    shown = record_json(content, version)
    if isinstance(content, TransactionLogValue):
        return {_LONG_NAMES.get(name, name): value for name, value in shown.items()}
    return shown


def _with_decoded_members(content: RecordValue, shown: dict[str, Any]) -> dict[str, Any]:
    """Decode the consumers' subscriptions and assignments, which the broker itself never reads."""
    if isinstance(content, GroupMetadataValue) and content.protocol_type == "consumer":
        for member, raw in zip(shown["members"], content.members, strict=True):
            member["subscription"] = _decode_or_default(decode_subscription, raw.subscription, member["subscription"])
            member["assignment"] = _decode_or_default(decode_assignment, raw.assignment, member["assignment"])
    return shown


def _decode_or_default(decode: Callable[[bytes], tuple[int, Any]], data: bytes, otherwise: Any) -> Any:
    try:
        version, content = decode(data)
    except MalformedRecordError:
        return otherwise
    return record_json(content, version)
