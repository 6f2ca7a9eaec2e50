"""The bytes that consumers of the classic protocol exchange inside JoinGroup and SyncGroup.

The coordinator forwards these bytes unread while a group is classic; when consumers of both protocols share a group,
it has to decode subscriptions and encode assignments itself. Expiry and deletion of offsets depend on the subscribed
topics in either case (`subscribed_topics`).

    subscription: version int16 | topics [string] | user data bytes
                  | v1 owned [topic string, partitions [int32]] | v2 generation int32 | v3 rack string
    assignment:   version int16 | assigned [topic string, partitions [int32]] | user data bytes

Start at `decode_subscription` and `encode_assignment`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["Subscription", "decode_assignment", "decode_subscription", "encode_assignment", "subscribed_topics"]


_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")
NEWEST = 3

Owned = tuple[tuple[str, tuple[int, ...]], ...]


class Subscription(NamedTuple):
    version: int
    topics: tuple[str, ...]
    owned: Owned = ()
    generation_id: int = -1
    rack_id: str | None = None


def decode_subscription(data: bytes) -> Subscription | None:
    """The subscription, or `None` if the bytes are not one."""
    reader = _Reader(data)
    try:
        version = reader.int16()
        topics = tuple(reader.string() or "" for _ in range(reader.count()))
        reader.skip_bytes()
        owned = reader.partitions() if version >= 1 else ()
        generation_id = reader.int32() if version >= 2 else -1
        rack_id = reader.string() if version >= 3 else None
    except (struct.error, ValueError):
        return None
    return Subscription(version, topics, owned, generation_id, rack_id) if version >= 0 else None


def decode_assignment(data: bytes) -> Owned | None:
    """The assigned partitions; empty for no bytes, `None` if the bytes are not an assignment."""
    if not data:
        return ()
    reader = _Reader(data)
    try:
        reader.int16()
        return reader.partitions()
    except (struct.error, ValueError):
        return None


def encode_assignment(version: int, assigned: Iterable[tuple[str, Sequence[int]]]) -> bytes:
    topics = list(assigned)
    output = bytearray(_INT16.pack(min(version, NEWEST)) + _INT32.pack(len(topics)))
    for topic, partitions in topics:
        name = topic.encode()
        output += _INT16.pack(len(name)) + name + _INT32.pack(len(partitions))
        output += b"".join(map(_INT32.pack, partitions))
    return bytes(output + _INT32.pack(-1))


class _Reader:
    """Reads forward; checks every length against the bytes that are left."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def int16(self) -> int:
        (value,) = _INT16.unpack_from(self._data, self._position)
        self._position += _INT16.size
        return int(value)

    def int32(self) -> int:
        (value,) = _INT32.unpack_from(self._data, self._position)
        self._position += _INT32.size
        return int(value)

    def count(self) -> int:
        count = self.int32()
        if count > len(self._data):
            raise ValueError(count)
        return max(count, 0)

    def string(self) -> str | None:
        length = self.int16()
        return None if length < 0 else self._take(length).decode()

    def skip_bytes(self) -> None:
        self._take(max(self.int32(), 0))

    def partitions(self) -> Owned:
        return tuple(
            (self.string() or "", tuple(self.int32() for _ in range(self.count()))) for _ in range(self.count())
        )

    def _take(self, length: int) -> bytes:
        end = self._position + length
        if end > len(self._data):
            raise ValueError(length)
        taken = self._data[self._position : end]
        self._position = end
        return taken


_INT16 = struct.Struct(">h")
_VERSION_AND_COUNT = struct.Struct(">hi")


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The topics, or `None` if the bytes are not a consumer's subscription."""
    try:
        _, count = _VERSION_AND_COUNT.unpack_from(metadata)
        position = _VERSION_AND_COUNT.size
        if not 0 <= count <= len(metadata):
            return None
        topics = []
        for _ in range(count):
            (length,) = _INT16.unpack_from(metadata, position)
            position += _INT16.size
            if length < 0 or position + length > len(metadata):
                return None
            topics.append(metadata[position : position + length].decode())
            position += length
    except (struct.error, UnicodeDecodeError):
        return None
    return frozenset(topics)
