"""The transaction index of a segment: the transactions whose abort marker lies in it.

    entry, 34 bytes:  int16 version 0, int64 producer id, int64 first offset,
                      int64 last offset (of the marker), int64 last stable offset after the abort

Readers of committed data get the aborted ranges that overlap their fetch. In memory only, no file access. Start at
`TxnIndex.overlapping`.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from moldau.log.errors import CorruptIndexError

__all__ = ["AbortedTransaction", "TxnIndex"]

ENTRY: Final = struct.Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TxnIndex:
    __slots__ = ("entries",)

    def __init__(self, entries: bytearray | None = None) -> None:
        self.entries = bytearray() if entries is None else entries

    @classmethod
    def decode(cls, data: bytes) -> TxnIndex:
        """Read a file's bytes; raises `CorruptIndexError` if they are not a valid index."""
        if len(data) % ENTRY.size:
            raise CorruptIndexError(f"size {len(data)} is not a multiple of {ENTRY.size}")
        index = cls(bytearray(data))
        if any(version != 0 for version, *_ in ENTRY.iter_unpack(data)):
            raise CorruptIndexError("an entry of unknown version")
        return index

    def __len__(self) -> int:
        return len(self.entries) // ENTRY.size

    def __getitem__(self, index: int) -> AbortedTransaction:
        return AbortedTransaction._make(ENTRY.unpack_from(self.entries, index * ENTRY.size)[1:])

    def add(self, aborted: AbortedTransaction) -> None:
        self.entries += ENTRY.pack(0, *aborted)

    def overlapping(self, first_offset: int, upper_bound: int) -> tuple[list[AbortedTransaction], bool]:
        """Aborted transactions that overlap [first_offset, upper_bound), and whether later segments can be skipped."""
        found = []
        for index in range(len(self)):
            aborted = self[index]
            if aborted.last_offset >= first_offset and aborted.first_offset < upper_bound:
                found.append(aborted)
            if aborted.last_stable_offset >= upper_bound:
                return found, True
        return found, False

    def truncate(self, offset: int) -> None:
        """Drop the transactions whose marker lies at or above `offset`."""
        count = sum(1 for index in range(len(self)) if self[index].last_offset < offset)
        del self.entries[count * ENTRY.size :]
