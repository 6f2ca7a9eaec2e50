"""The time index of a segment: the newest timestamp so far, and the batch that contains it.

    entry, 12 bytes:  int64 timestamp
                      int32 last offset of that batch, relative to the segment's base

Timestamps only increase from entry to entry, so a lookup may skip everything before. In memory only, like
`log.segments.offset_index`. Start at `TimeIndex.add`.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import Final, NamedTuple

from moldau.log.errors import CorruptIndexError

__all__ = ["TimeIndex", "TimestampOffset"]

ENTRY: Final = struct.Struct(">qi")
_INT64: Final = struct.Struct(">q")
_INT32: Final = struct.Struct(">i")


class TimestampOffset(NamedTuple):
    """The newest timestamp up to here, and the last offset of the batch that contains it."""

    timestamp: int
    offset: int


class TimeIndex:
    __slots__ = ("base_offset", "entries")

    def __init__(self, base_offset: int, entries: bytearray | None = None) -> None:
        self.base_offset = base_offset
        self.entries = bytearray() if entries is None else entries

    @classmethod
    def decode(cls, base_offset: int, data: bytes) -> TimeIndex:
        """Read a file's bytes, zero tail or not; raises `CorruptIndexError` if they are not a valid index."""
        count = -(-len(data.rstrip(b"\0")) // ENTRY.size)
        if len(data) % ENTRY.size:
            raise CorruptIndexError(f"size {len(data)} is not a multiple of {ENTRY.size}")
        index = cls(base_offset, bytearray(data[: count * ENTRY.size]))
        if count:
            first, last = index[0], index[count - 1]
            if last.timestamp < first.timestamp or last.offset < first.offset or first.offset < base_offset:
                raise CorruptIndexError(f"entries run backwards: {first} to {last}")
        return index

    def __len__(self) -> int:
        return len(self.entries) // ENTRY.size

    def __getitem__(self, index: int) -> TimestampOffset:
        timestamp, offset = ENTRY.unpack_from(self.entries, index * ENTRY.size)
        return TimestampOffset(timestamp, self.base_offset + offset)

    @property
    def last(self) -> TimestampOffset:
        """The last entry, or timestamp -1 while there is none."""
        return self[len(self) - 1] if self.entries else TimestampOffset(-1, self.base_offset)

    def add(self, timestamp: int, offset: int) -> None:
        """Add the newest timestamp so far; one that is not newer than the last entry adds nothing."""
        if timestamp > self.last.timestamp:
            self.entries += ENTRY.pack(timestamp, offset - self.base_offset)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """The largest entry whose timestamp is at most `timestamp`, or the segment's beginning."""
        entries = self.entries
        count = bisect_right(
            range(len(self)), timestamp, key=lambda index: _INT64.unpack_from(entries, index * ENTRY.size)[0]
        )
        return self[count - 1] if count else TimestampOffset(-1, self.base_offset)

    def truncate(self, offset: int) -> None:
        """Drop the entries of batches that reach `offset`."""
        entries = self.entries
        count = bisect_right(
            range(len(self)),
            offset - self.base_offset - 1,
            key=lambda index: _INT32.unpack_from(entries, index * ENTRY.size + 8)[0],
        )
        del entries[count * ENTRY.size :]
