"""The buffer of one side of a stream-stream join: its records by key and timestamp, duplicates included.

A record expires, and is no longer visible, when it is older than the newest one by the retention. In the backend the
records of one key and one time range (a *segment*) are one entry, so that a batch writes little and old segments are
deleted as a whole; the keys of a segment are listed in separate entries, so that a lookup of an absent key needs no
read. Unmatched records are in `held_records`. Start at `JoinBuffer`.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right, insort, insort_right
from collections.abc import Iterator
from typing import Any

from moldau.pipeline.cores.records import NO_TIMESTAMP
from moldau.pipeline.cores.stores.backends import StateBackend
from moldau.pipeline.cores.stores.sized_pieces import join_pieces, pieces
from moldau.pipeline.cores.stores.store import Codec, Store, StoreChange

__all__ = ["JoinBuffer"]

SHORTEST_SEGMENT_MS = 1000
KEYS_PER_CHUNK = 1000
CHUNKS_REMOVED_PER_FLUSH = 4

HEADER = b"h"
"""The newest timestamp, then each segment and how many chunks its list of keys has."""
CHUNK = struct.Struct(">cqI")
RECORDS = struct.Struct(">cq")
RECORD = struct.Struct(">qI")
NEWEST = struct.Struct(">q")
SEGMENT = struct.Struct(">qI")


def timestamp_of(entry: tuple[int, Any]) -> int:
    return entry[0]


class Slot:
    """The records of one key in one segment: as bytes in order of arrival, and by timestamp."""

    __slots__ = ("entries", "written")

    def __init__(self) -> None:
        self.written = bytearray()
        self.entries: list[tuple[int, Any]] = []


class Segment:
    """A time range: its keys, those of them not yet listed in the backend, and the slots that were read."""

    __slots__ = ("chunks", "dirty", "keys", "slots", "unlisted")

    def __init__(self) -> None:
        self.dirty: set[bytes] = set()
        self.keys: set[bytes] = set()
        self.unlisted: list[bytes] = []
        self.slots: dict[bytes, Slot] = {}
        self.chunks = 0


class JoinBuffer(Store):
    """Records by key bytes and timestamp. Values that are not plain are kept as bytes."""

    def __init__(self, name: str, backend: StateBackend, codec: Codec, *, retention_ms: int) -> None:
        super().__init__(name)
        self._backend = backend
        self._retention_ms = retention_ms
        self._segment_ms = max(retention_ms // 2, SHORTEST_SEGMENT_MS)
        self._encode = codec.encode_value
        self._decode = codec.decode_value
        self._is_plain = codec.is_plain
        self._newest = NO_TIMESTAMP
        self._segments: dict[int, Segment] = {}
        self._expired: dict[int, int] = {}
        self._order: list[int] = []
        """The segments by time."""
        self._is_header_dirty = False
        self._load()

    def put(self, key: bytes, value: Any, timestamp: int) -> None:
        """Add a record, unless it has expired; a record that cannot be serialized changes nothing."""
        data = self._encode(value)
        if timestamp > self._newest:
            self._newest = timestamp
            self._is_header_dirty = True
            self._expire()
        elif timestamp < self._oldest():
            return
        index = timestamp // self._segment_ms
        segment = self._segments.get(index)
        if segment is None:
            segment = self._segment(index)
        slot = segment.slots.get(key)
        if slot is None:
            slot = self._slot(index, segment, key)
        slot.written += RECORD.pack(timestamp, len(data)) + data
        entries, entry = slot.entries, (timestamp, value if self._is_plain else data)
        if not entries or entries[-1][0] <= timestamp:
            entries.append(entry)
        else:
            insort_right(entries, entry, key=timestamp_of)
        segment.dirty.add(key)

    def fetch(self, key: bytes, earliest: int, latest: int) -> list[tuple[int, Any]]:
        """The records of a key between two timestamps, both included: by timestamp, then in order of arrival."""
        earliest = max(earliest, self._newest - self._retention_ms + 1)
        if latest < earliest:
            return []
        found: list[tuple[int, Any]] = []
        first, last = earliest // self._segment_ms, latest // self._segment_ms
        for index in self._order:
            if first <= index <= last:
                segment = self._segments[index]
                if key in segment.keys:
                    slot = segment.slots.get(key) or self._slot(index, segment, key)
                    found += between(slot.entries, earliest, latest)
        return found if self._is_plain else [(timestamp, self._decode(data)) for timestamp, data in found]

    def flush(self) -> list[StoreChange]:
        """Write what changed, and delete a part of what has expired; returns nothing, since it cannot be queried."""
        for index, segment in self._segments.items():
            for key in segment.dirty:
                self._backend.put(RECORDS.pack(b"r", index) + key, bytes(segment.slots[key].written))
            segment.dirty.clear()
        listed = sum([self._list_keys(index, segment) for index, segment in self._segments.items()])
        removed = self._remove_expired(CHUNKS_REMOVED_PER_FLUSH + listed)
        if self._is_header_dirty or listed or removed:
            self._backend.put(HEADER, self._header())
            self._is_header_dirty = False
        return []

    def _oldest(self) -> int:
        return self._newest - self._retention_ms + 1

    def _segment(self, index: int) -> Segment:
        """A new segment."""
        segment = self._segments[index] = Segment()
        insort(self._order, index)
        self._is_header_dirty = True
        return segment

    def _slot(self, index: int, segment: Segment, key: bytes) -> Slot:
        """The records of a key that are not in memory yet: read from the backend, empty where the key is new."""
        slot = segment.slots[key] = Slot()
        if key in segment.keys:
            slot.written += self._backend.get(RECORDS.pack(b"r", index) + key) or b""
            slot.entries.extend(self._read_records(slot.written))
            slot.entries.sort(key=timestamp_of)
        else:
            segment.keys.add(key)
            segment.unlisted.append(key)
        return slot

    def _read_records(self, written: bytes | bytearray) -> Iterator[tuple[int, Any]]:
        position = 0
        while position < len(written):
            timestamp, length = RECORD.unpack_from(written, position)
            position += RECORD.size
            data = bytes(written[position : position + length])
            yield timestamp, self._decode(data) if self._is_plain else data
            position += length

    def _expire(self) -> None:
        oldest_index = self._oldest() // self._segment_ms
        while self._order and self._order[0] < oldest_index:
            index = self._order.pop(0)
            segment = self._segments.pop(index)
            if segment.chunks:
                self._expired[index] = segment.chunks

    def _list_keys(self, index: int, segment: Segment) -> int:
        """Write the list of keys that are new in a segment; returns how many chunks that took."""
        before = segment.chunks
        for start in range(0, len(segment.unlisted), KEYS_PER_CHUNK):
            keys = segment.unlisted[start : start + KEYS_PER_CHUNK]
            self._backend.put(CHUNK.pack(b"c", index, segment.chunks), join_pieces(keys))
            segment.chunks += 1
        segment.unlisted.clear()
        return segment.chunks - before

    def _remove_expired(self, chunks: int) -> int:
        """Delete up to this many chunks of expired segments, with the records of the keys they list."""
        removed = 0
        while self._expired and removed < chunks:
            index, count = next(iter(self._expired.items()))
            chunk = CHUNK.pack(b"c", index, count - 1)
            for key in pieces(self._backend.get(chunk) or b""):
                self._backend.delete(RECORDS.pack(b"r", index) + key)
            self._backend.delete(chunk)
            removed += 1
            if count > 1:
                self._expired[index] = count - 1
            else:
                del self._expired[index]
        return removed

    def _header(self) -> bytes:
        chunks = {index: segment.chunks for index, segment in self._segments.items()} | self._expired
        return NEWEST.pack(self._newest) + b"".join([SEGMENT.pack(index, count) for index, count in chunks.items()])

    def _load(self) -> None:
        header = self._backend.get(HEADER)
        if header is None:
            return
        (self._newest,) = NEWEST.unpack_from(header)
        oldest_index = self._oldest() // self._segment_ms
        for index, chunks in SEGMENT.iter_unpack(header[NEWEST.size :]):
            if index < oldest_index:
                self._expired[index] = chunks
                continue
            segment = self._segment(index)
            segment.chunks = chunks
            for number in range(chunks):
                segment.keys.update(pieces(self._backend.get(CHUNK.pack(b"c", index, number)) or b""))
        self._is_header_dirty = False


def between(entries: list[tuple[int, Any]], earliest: int, latest: int) -> list[tuple[int, Any]]:
    """The entries between two timestamps, both included."""
    if earliest <= entries[0][0] and entries[-1][0] <= latest:
        return entries
    first = bisect_left(entries, earliest, key=timestamp_of)
    return entries[first : bisect_right(entries, latest, key=timestamp_of)]
