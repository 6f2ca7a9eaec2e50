"""Versioned stores (KIP-889): rows with their old versions, for as long as the history retention.

The versions of a key are ordered by timestamp, whatever order they arrived in; a deletion is a version too. A record
older than the history is rejected. The newest version of a row never expires. Start at `VersionedStore`.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator
from enum import Enum
from typing import Any

from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.records import NO_TIMESTAMP, ValueAndTimestamp
from moldau.pipeline.cores.stores.backends import StateBackend
from moldau.pipeline.cores.stores.cells import Cell
from moldau.pipeline.cores.stores.store import Codec, Store, StoreChange
from moldau.pipeline.cores.stores.store_values import Holding
from moldau.pipeline.cores.stores.write_back import WriteBack
from moldau.pipeline.ir.nodes import Materialization

__all__ = ["Put", "VersionedStore", "versioned_store"]

VERSION = struct.Struct(">q?I")

Version = tuple[int, Any]
"""Valid-from timestamp and held value; None where the row was deleted."""
History = list[Version]


def since(version: Version) -> int:
    return version[0]


class Put(Enum):
    """The result of putting a version."""

    LATEST = "latest"
    """It is the current version."""
    OUTDATED = "outdated"
    """It is an old version."""
    REFUSED = "refused"
    """It is older than the history, and was rejected."""


class VersionedStore(Store):
    """Rows by key and timestamp."""

    def __init__(self, name: str, backend: StateBackend, codec: Codec, *, observed: Cell, history_ms: int) -> None:
        super().__init__(name)
        self.encode_key = codec.encode_key
        self.decode_key = codec.decode_key
        self._holding = Holding(codec)
        self._cache = WriteBack(backend, self._write, self._read)
        self._observed = observed
        self._history_ms = history_ms
        self._deleted: deque[tuple[int, bytes]] = deque()

    def get(self, key: Any) -> ValueAndTimestamp | None:
        """The current row."""
        history = self._history(self.encode_key(key))
        return self._row(history[-1]) if history else None

    def get_as_of(self, key: Any, timestamp: int) -> ValueAndTimestamp | None:
        """The row as of a timestamp; before the history, only the newest version is known."""
        history = self._history(self.encode_key(key))
        if history and since(history[-1]) <= timestamp:
            return self._row(history[-1])
        index = bisect_right(history, timestamp, key=since) - 1
        return None if index < 0 or timestamp < self._oldest() else self._row(history[index])

    def put(self, key: Any, value: Any, timestamp: int) -> Put:
        """Put a version that is valid from a timestamp on; None marks the row as deleted."""
        if timestamp < self._oldest():
            return Put.REFUSED
        self._observed.value = max(self._observed.value, timestamp)
        key_bytes = self.encode_key(key)
        history = self._history(key_bytes)
        index = bisect_left(history, timestamp, key=since)
        is_there = index < len(history) and since(history[index]) == timestamp
        if value is None and is_there and self._leaves_nothing(history, index):
            self._keep(key_bytes, history[:index])
            return Put.LATEST
        version = (timestamp, None if value is None else self._holding.hold(value))
        history = [*history[:index], version, *history[index + is_there :]]
        self._keep(key_bytes, history)
        self._forget_deleted()
        return Put.LATEST if index == len(history) - 1 else Put.OUTDATED

    def delete(self, key: Any, timestamp: int) -> ValueAndTimestamp | None:
        """Mark a row as deleted from a timestamp on, and return the row as of then."""
        row = self.get_as_of(key, timestamp)
        self.put(key, None, timestamp)
        return row

    def flush(self) -> list[StoreChange]:
        """Write what changed to the backend."""
        written = self._cache.flush()
        return [self._change(key, data) for key, data in written] if self.is_queryable else []

    def _oldest(self) -> int:
        oldest: int = self._observed.value - self._history_ms
        return oldest

    def _history(self, key_bytes: bytes) -> History:
        history: History = self._cache.get(key_bytes) or []
        return history

    def _row(self, version: Version) -> ValueAndTimestamp | None:
        timestamp, held = version
        return None if held is None else ValueAndTimestamp(self._holding.give(held), timestamp)

    def _leaves_nothing(self, history: History, index: int) -> bool:
        """Whether deleting the newest version at its own timestamp needs no tombstone, as no older row ends there."""
        is_newest = index == len(history) - 1
        return is_newest and (index == 0 or history[index - 1][1] is None)

    def _keep(self, key_bytes: bytes, history: History) -> None:
        """Hold the versions of a history that have not expired."""
        if not history:
            self._cache.put(key_bytes, None)
            return
        oldest = self._oldest()
        first = max(0, bisect_right(history, oldest, key=since) - 1)
        kept = history[first:]
        timestamp, held = kept[-1]
        if held is None and len(kept) == 1 and timestamp < oldest:
            self._cache.put(key_bytes, None)
            return
        self._cache.put(key_bytes, kept)
        if held is None:
            self._deleted.append((timestamp, key_bytes))

    def _forget_deleted(self) -> None:
        while self._deleted and self._deleted[0][0] < self._oldest():
            timestamp, key_bytes = self._deleted.popleft()
            history = self._history(key_bytes)
            if history and history[-1] == (timestamp, None):
                self._keep(key_bytes, history)

    def _write(self, history: History) -> bytes:
        parts = []
        for timestamp, held in history:
            data = b"" if held is None else self._holding.write(held)
            parts += [VERSION.pack(timestamp, held is not None, len(data)), data]
        return b"".join(parts)

    def _read(self, data: bytes) -> History:
        return [
            (timestamp, None if value is None else self._holding.read(value)) for timestamp, value in versions(data)
        ]

    def _change(self, key: bytes, data: bytes | None) -> StoreChange:
        timestamp, value = list(versions(data))[-1] if data else (None, None)
        return StoreChange(key, value, None if value is None else timestamp, None)


def versioned_store(table: Materialization, context: TaskContext) -> VersionedStore:
    """The store of a materialisation that keeps history."""
    history_ms = table.history_ms
    assert history_ms is not None
    return context.open(
        table,
        VersionedStore,
        lambda: VersionedStore(
            table.store,
            context.backend(table.store),
            context.codec(table),
            observed=context.cell(f"store-time {table.store}", NO_TIMESTAMP),
            history_ms=history_ms,
        ),
    )


def versions(data: bytes) -> Iterator[tuple[int, bytes | None]]:
    """The versions in a serialized entry of a store."""
    position = 0
    while position < len(data):
        timestamp, has_value, length = VERSION.unpack_from(data, position)
        position += VERSION.size
        yield timestamp, data[position : position + length] if has_value else None
        position += length
