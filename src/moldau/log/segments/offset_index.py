"""The offset index of a segment: every few kilobytes, the offset and file position of a batch.

    entry, 8 bytes:  int32 last offset of a batch, relative to the segment's base
                     int32 position of that batch in the log file

Stored as the file's own bytes, so that saving is a write and loading is a read; lookups bisect in place. In memory
only: `log.segments.segment` reads and writes the file. Start at `OffsetIndex.add`.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import Final, NamedTuple

from moldau.log.errors import CorruptIndexError

__all__ = ["OffsetIndex", "OffsetPosition"]

ENTRY: Final = struct.Struct(">ii")
_INT32: Final = struct.Struct(">i")


class OffsetPosition(NamedTuple):
    """A batch: its last offset, and where in the log file it begins."""

    offset: int
    position: int


class OffsetIndex:
    __slots__ = ("base_offset", "entries")

    def __init__(self, base_offset: int, entries: bytearray | None = None) -> None:
        self.base_offset = base_offset
        self.entries = bytearray() if entries is None else entries

    @classmethod
    def decode(cls, base_offset: int, data: bytes) -> OffsetIndex:
        """Read a file's bytes; raises `CorruptIndexError` if they are not a valid index.

        The file of a broker that was still writing it has zeros after its last entry; no real entry is zero, because
        the batch at position 0 never gets one.
        """
        used = data.rstrip(b"\0")
        count = -(-len(used) // ENTRY.size)
        if len(data) % ENTRY.size:
            raise CorruptIndexError(f"size {len(data)} is not a multiple of {ENTRY.size}")
        index = cls(base_offset, bytearray(data[: count * ENTRY.size]))
        if count:
            first, last = index[0], index[count - 1]
            if last.offset < first.offset or last.position < first.position or first.offset < base_offset:
                raise CorruptIndexError(f"entries run backwards: {first} to {last}")
        return index

    def __len__(self) -> int:
        return len(self.entries) >> 3

    def __getitem__(self, index: int) -> OffsetPosition:
        offset, position = ENTRY.unpack_from(self.entries, index << 3)
        return OffsetPosition(self.base_offset + offset, position)

    @property
    def last(self) -> OffsetPosition:
        """The last entry, or the segment's beginning while there is none."""
        return self[len(self) - 1] if self.entries else OffsetPosition(self.base_offset, 0)

    def add(self, offset: int, position: int) -> None:
        """Add the batch that ends with `offset` and begins at `position`; both must exceed all earlier entries."""
        self.entries += ENTRY.pack(offset - self.base_offset, position)

    def before(self, offset: int) -> int:
        """The number of entries with an offset below `offset`."""
        entries = self.entries
        relative = offset - self.base_offset - 1
        return bisect_right(
            range(len(entries) >> 3), relative, key=lambda index: _INT32.unpack_from(entries, index << 3)[0]
        )

    def lookup(self, offset: int) -> OffsetPosition:
        """The largest entry whose offset is at most `offset`, or the segment's beginning."""
        index = self.before(offset + 1) - 1
        return self[index] if index >= 0 else OffsetPosition(self.base_offset, 0)

    def position_up_to(self, limit: int) -> int:
        """The largest indexed position that is at most `limit`, or 0."""
        entries = self.entries
        count = bisect_right(
            range(len(entries) >> 3), limit, key=lambda index: _INT32.unpack_from(entries, (index << 3) + 4)[0]
        )
        return self[count - 1].position if count else 0

    def truncate(self, offset: int) -> None:
        """Drop the entries of batches that reach `offset`."""
        del self.entries[self.before(offset) << 3 :]
