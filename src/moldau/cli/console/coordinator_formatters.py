"""Formatters for the coordinators' internal topics: one line of JSON for each record of the requested kind.

    kafka-console-consumer --bootstrap-server localhost:9092 --topic __consumer_offsets --from-beginning \\
        --formatter org.apache.kafka.tools.consumer.OffsetsMessageFormatter

Other kinds of records in the same topic print nothing. Start at `coordinator_formatter`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from moldau.cli.console.formatter import Formatter, Message
from moldau.log.dump.dump_coordinators import Decoded, decode_record
from moldau.log.dump.dump_metadata import json_text
from moldau.protocol.coordinator_records import GROUP_KEYS, TRANSACTION_KEYS, RecordKey
from moldau.protocol.record_schemas import MalformedRecordError

__all__ = ["coordinator_formatter"]


class _Kind(NamedTuple):
    known: Mapping[int, type[RecordKey]]
    types: frozenset[int]


_KINDS = {
    "OffsetsMessageFormatter": _Kind(GROUP_KEYS, frozenset({0, 1})),
    "GroupMetadataMessageFormatter": _Kind(GROUP_KEYS, frozenset({2})),
    "TransactionLogMessageFormatter": _Kind(TRANSACTION_KEYS, frozenset({0})),
}


def coordinator_formatter(name: str) -> Formatter:
    kind = _KINDS[name]

    def render(message: Message) -> bytes:
        key, value = message.key(), message.value()
        if not isinstance(key, bytes) or int.from_bytes(key[:2], "big", signed=True) not in kind.types:
            return b""
        try:
            return json_text(_line(key, value, kind.known)).encode() + b"\n"
        except MalformedRecordError as error:
            raise ValueError(str(error)) from None

    return render


def _line(key: bytes, value: bytes | None, known: Mapping[int, type[RecordKey]]) -> dict[str, Any]:
    try:
        found = decode_record(key, value, known)
    except MalformedRecordError:
        # The value is from a newer release, but its key can still be decoded.
        found = decode_record(key, None, known)
        version = int.from_bytes((value or b"")[:2], "big", signed=True)
        return {"key": _key(found), "value": {"version": version, "data": "unknown"}}
    shown = None if found is None or found.value is None else {"version": found.version, "data": found.value}
    return {"key": _key(found), "value": shown}


def _key(found: Decoded | None) -> dict[str, Any] | None:
    return None if found is None else {"type": found.type, "data": found.key}
