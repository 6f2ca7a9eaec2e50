"""Several pieces of bytes in one, each with its length before it; how stores keep what belongs together.

Start at `joined`; `pieces` takes them apart again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

__all__ = ["joined", "pieces"]

LENGTH = struct.Struct(">I")


def joined(parts: Iterable[bytes]) -> bytes:
    """The pieces one after the other."""
    return b"".join([LENGTH.pack(len(part)) + part for part in parts])


def pieces(data: bytes, start: int = 0) -> Iterator[bytes]:
    """What `joined` has joined, from a position on."""
    while start < len(data):
        (length,) = LENGTH.unpack_from(data, start)
        start += LENGTH.size
        yield data[start : start + length]
        start += length
