"""The buffer of a suppression: the last change of each key, ordered by the time when the key was first held.

Sizes are counted as Kafka Streams counts them, so that limits in bytes have the same effect. Start at
`SuppressionBuffer`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from moldau.pipeline.cores.records import Headers
from moldau.pipeline.cores.stores.backends import StateBackend

__all__ = ["HeldChange", "SuppressionBuffer"]

_TIMES = struct.Struct(">qqiqH")
_LENGTH = struct.Struct(">i")
_NUMBERS_SIZE = 8 + 8 + 8 + 4
"""Time held, timestamp, offset and partition, at the sizes that Kafka Streams counts."""


class HeldChange(NamedTuple):
    """One change and its record context; values are bytes."""

    time: int
    """When the key was first held, which determines the order."""
    prior: bytes | None
    """The value that was last emitted downstream."""
    old: bytes | None
    new: bytes | None
    timestamp: int
    headers: Headers
    topic: str
    partition: int
    offset: int

    def size(self, key: bytes) -> int:
        """How many bytes of the buffer this uses."""
        values = len(self.prior or b"") + len(self.new or b"")
        if self.old is not None and self.old != self.prior:
            values += len(self.old)
        headers = sum(len(name) + len(value or b"") for name, value in self.headers)
        return _NUMBERS_SIZE + len(key) + values + len(self.topic) + headers


class SuppressionBuffer:
    """Held changes by key bytes."""

    def __init__(self, backend: StateBackend) -> None:
        self._backend = backend
        self._changes = {key: read_change(data) for key, data in backend.items()}
        self._order = [(change.time, key) for key, change in self._changes.items()]
        heapify(self._order)
        self._dirty: set[bytes] = set()
        self.bytes_held = sum(change.size(key) for key, change in self._changes.items())

    def __len__(self) -> int:
        return len(self._changes)

    def get(self, key: bytes) -> HeldChange | None:
        """The held change of a key."""
        return self._changes.get(key)

    def put(self, key: bytes, change: HeldChange) -> None:
        """Hold a change; it replaces that of the same key, whose time and prior value it keeps."""
        before = self._changes.get(key)
        if before is None:
            heappush(self._order, (change.time, key))
        else:
            change = change._replace(time=before.time, prior=before.prior)
            self.bytes_held -= before.size(key)
        self._changes[key] = change
        self.bytes_held += change.size(key)
        self._dirty.add(key)

    @property
    def earliest_time(self) -> int | None:
        """The time of the change that is released next."""
        return self._order[0][0] if self._order else None

    def first(self) -> tuple[bytes, HeldChange]:
        """The change that is released next, and its key."""
        key = self._order[0][1]
        return key, self._changes[key]

    def remove_first(self) -> None:
        """Remove the change that `first` returns."""
        _, key = heappop(self._order)
        self.bytes_held -= self._changes.pop(key).size(key)
        self._dirty.add(key)

    def flush(self) -> None:
        """Write what changed to the backend."""
        for key in self._dirty:
            change = self._changes.get(key)
            if change is None:
                self._backend.delete(key)
            else:
                self._backend.put(key, write_change(change))
        self._dirty.clear()


def write_change(change: HeldChange) -> bytes:
    """A held change, serialized for the backend."""
    parts = [change.prior, change.old, change.new, change.topic.encode()]
    for name, value in change.headers:
        parts += [name.encode(), value]
    times = _TIMES.pack(change.time, change.timestamp, change.partition, change.offset, len(change.headers))
    return times + b"".join(_with_sizes(parts))


def _with_sizes(parts: Iterable[bytes | None]) -> Iterable[bytes]:
    for part in parts:
        yield _LENGTH.pack(-1) if part is None else _LENGTH.pack(len(part)) + part


def read_change(data: bytes) -> HeldChange:
    """What `write_change` wrote."""
    time, timestamp, partition, offset, header_count = _TIMES.unpack_from(data)
    parts: list[bytes | None] = []
    position = _TIMES.size
    while len(parts) < 4 + 2 * header_count:
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        parts.append(None if length < 0 else data[position : position + length])
        position += max(length, 0)
    prior, old, new, topic, *rest = parts
    headers = tuple(((name or b"").decode(), value) for name, value in zip(rest[::2], rest[1::2], strict=True))
    return HeldChange(time, prior, old, new, timestamp, headers, (topic or b"").decode(), partition, offset)
