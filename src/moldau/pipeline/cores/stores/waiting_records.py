"""The store of a stream's records that wait for a grace period before they are joined, by timestamp.

Records with equal timestamps are in byte order of their keys, then in order of arrival. Start at `WaitingRecords`.
"""

from __future__ import annotations

import json
import struct
from base64 import b64decode, b64encode
from bisect import insort
from collections.abc import Iterator
from typing import Any, NamedTuple

from moldau.pipeline.cores.records import Headers, Record
from moldau.pipeline.cores.stores.backends import StateBackend
from moldau.pipeline.cores.stores.cells import Cell
from moldau.pipeline.cores.stores.store import Codec, Store, StoreChange

__all__ = ["WaitingRecord", "WaitingRecords"]

TIME = struct.Struct(">q")
SEQUENCE = struct.Struct(">I")
LENGTH = struct.Struct(">I")

LAST_SEQUENCE = 0x7FFFFFFF


class WaitingRecord(NamedTuple):
    """A record and the input row that it came from, in the order of `InputRecord`; None in a punctuation."""

    record: Record
    row: tuple[Any, ...] | None


class WaitingRecords(Store):
    """Records by timestamp; `observed` is the largest timestamp that was put, and `sequence` counts the records."""

    def __init__(
        self, name: str, backend: StateBackend, codec: Codec, *, observed: Cell, sequence: Cell, grace_ms: int
    ) -> None:
        super().__init__(name)
        self._backend = backend
        self._codec = codec
        self._observed = observed
        self._sequence = sequence
        self._grace_ms = grace_ms
        self._entries = dict(backend.items())
        self._order = sorted(self._entries)
        self._dirty: set[bytes] = set()

    def put(self, record: Record, row: tuple[Any, ...] | None) -> bool:
        """Add a record; false where it is so late that it need not wait."""
        if self._observed.value - self._grace_ms > record.timestamp:
            return False
        self._observed.value = max(self._observed.value, record.timestamp)
        self._sequence.value = (self._sequence.value + 1) & LAST_SEQUENCE
        place = TIME.pack(record.timestamp) + self._codec.encode_key(record.key) + SEQUENCE.pack(self._sequence.value)
        self._entries[place] = self._serialize(record, row)
        insort(self._order, place)
        self._dirty.add(place)
        return True

    def take_due(self) -> Iterator[WaitingRecord]:
        """Remove and yield the records whose grace period is over."""
        end = TIME.pack(max(0, self._observed.value - self._grace_ms + 1))
        while self._order and self._order[0] < end:
            place = self._order.pop(0)
            self._dirty.add(place)
            yield self._read(place, self._entries.pop(place))

    def flush(self) -> list[StoreChange]:
        """Write what changed; returns nothing, since the store cannot be queried."""
        for place in self._dirty:
            data = self._entries.get(place)
            if data is None:
                self._backend.delete(place)
            else:
                self._backend.put(place, data)
        self._dirty.clear()
        return []

    def _serialize(self, record: Record, row: tuple[Any, ...] | None) -> bytes:
        about = json.dumps([None if row is None else row[:4], _texts(record.headers)]).encode()
        return LENGTH.pack(len(about)) + about + self._codec.encode_value(record.value)

    def _read(self, place: bytes, data: bytes) -> WaitingRecord:
        key_bytes = place[TIME.size : -SEQUENCE.size]
        (timestamp,) = TIME.unpack_from(place)
        (length,) = LENGTH.unpack_from(data)
        split = LENGTH.size + length
        origin, texts = json.loads(data[LENGTH.size : split])
        headers = _headers(texts)
        value = self._codec.decode_value(data[split:])
        row = None if origin is None else (*origin, headers, key_bytes, data[split:])
        return WaitingRecord(Record(self._codec.decode_key(key_bytes), value, timestamp, headers), row)


def _texts(headers: Headers) -> list[tuple[str, str | None]]:
    return [(name, None if value is None else b64encode(value).decode()) for name, value in headers]


def _headers(texts: list[tuple[str, str | None]]) -> Headers:
    return tuple((name, None if text is None else b64decode(text)) for name, text in texts)
