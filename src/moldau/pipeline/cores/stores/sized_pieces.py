"""Length-prefixed byte strings concatenated into one, as stores write entries of several parts.

Start at `join_pieces`; `pieces` is the inverse.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

__all__ = ["join_pieces", "pieces"]

LENGTH = struct.Struct(">I")


def join_pieces(parts: Iterable[bytes]) -> bytes:
    """The length-prefixed concatenation of the parts."""
    return b"".join([LENGTH.pack(len(part)) + part for part in parts])


def pieces(data: bytes, start: int = 0) -> Iterator[bytes]:
    """The parts that `join_pieces` joined, from a position on."""
    while start < len(data):
        (length,) = LENGTH.unpack_from(data, start)
        start += LENGTH.size
        yield data[start : start + length]
        start += length
