"""The entries of a window store: values by window start and key, with retention.

Time here is the largest window start put so far. A window is no longer visible when it is older than that by the
retention; it can still be written while its *segment* is alive, at least half a retention longer, as in Kafka's
persistent stores. Windows that start after the last one in the backend are never read from it. Start at `WindowRows`.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable
from typing import Any

from moldau.pipeline.cores.stores.backends import StateBackend
from moldau.pipeline.cores.stores.cells import Cell

__all__ = ["WindowRows", "segment_interval"]

_START = struct.Struct(">q")
SHORTEST_SEGMENT_MS = 60_000
DELETIONS_PER_FLUSH = 2_000
"""Expired entries are deleted from the backend in small steps, so that no flush takes long."""


def segment_interval(retention_ms: int) -> int:
    """How much time one segment spans."""
    return max(retention_ms // 2, SHORTEST_SEGMENT_MS)


def _key_of(entry: tuple[bytes, Any]) -> bytes:
    return entry[0]


class WindowRows:
    """Held values by window start, then by key bytes."""

    def __init__(
        self,
        backend: StateBackend,
        *,
        write: Callable[[Any], bytes],
        read: Callable[[bytes], Any],
        observed: Cell,
        retention_ms: int,
        shown_ms: int | None = None,
    ) -> None:
        """`observed` stores the store's time; `shown_ms` is how far back windows are visible, if not the retention."""
        self._backend = backend
        self._write = write
        self._read = read
        self._observed = observed
        self._retention_ms = retention_ms
        self._shown_ms = retention_ms - 1 if shown_ms is None else shown_ms
        self._interval_ms = segment_interval(retention_ms)
        self._oldest_segment = self._first_live_segment()
        self._windows: dict[int, dict[bytes, Any]] = {}
        self._dirty: dict[int, set[bytes]] = {}
        self._expired: deque[bytes] = deque()
        self._order: list[int] | None = None
        """All window starts in order, created by the first range query."""
        self._starts: dict[bytes, list[int]] | None = None
        """The same for each key."""
        self._backend_end = observed.value
        self._is_complete = observed.value < 0

    # --- single windows

    def get(self, start: int, key: bytes) -> Any:
        """The held value of a key in the window with this start, or None."""
        if start < self._observed.value - self._shown_ms:
            return None
        window = self._windows.get(start)
        if window is not None:
            held = window.get(key)
            if held is not None or self._is_complete or key in window:
                return held
        return None if self._is_complete or start > self._backend_end else self._load(start, key)

    def has_expired(self, start: int) -> bool:
        """Whether the retention of a window is over, even if it is still visible."""
        expired: bool = start <= self._observed.value - self._retention_ms
        return expired

    def put(self, start: int, key: bytes, held: Any) -> bool:
        """Set a held value, or delete it with None; false where the window is too old to be written."""
        observed = self._observed
        if start > observed.value:
            observed.value = start
            self._expire()
        elif start // self._interval_ms < self._oldest_segment:
            return False
        window = self._windows.get(start)
        if window is None:
            window = self._windows[start] = {}
            if self._order is not None:
                insort(self._order, start)
        if self._starts is not None and key not in window:
            self._index(key, start)
        window[key] = held
        dirty = self._dirty.get(start)
        if dirty is None:
            dirty = self._dirty[start] = set()
        dirty.add(key)
        return True

    def at_hand(self, start: int) -> tuple[int | None, dict[bytes, Any], set[bytes], bool]:
        """The window with this start, for reads and writes until one with another start is written: its entries, the
        keys that changed, and whether keys without an entry have none in the backend. Without such a window, or if it
        is hidden or indexed by key, the start is None, and nothing may be used.
        """
        window, dirty = self._windows.get(start), self._dirty.get(start)
        is_hidden = start < self._observed.value - self._shown_ms
        if window is None or dirty is None or is_hidden or self._starts is not None:
            return None, {}, set(), False
        return start, window, dirty, self._is_complete or start > self._backend_end

    # --- several windows

    def of_key(self, key: bytes, first: int, last: int) -> list[tuple[int, Any]]:
        """Starts and held values of a key between two starts, both included, in order."""
        if self._starts is None:
            self._index_all()
        starts = self._starts.get(key) if self._starts is not None else None
        if not starts:
            return []
        low = max(first, self._observed.value - self._shown_ms)
        found = starts[bisect_left(starts, low) : bisect_right(starts, last)]
        return [(start, held) for start in found if (held := self._windows[start][key]) is not None]

    def between(self, first: int, last: int) -> list[tuple[int, bytes, Any]]:
        """Start, key and held value of all windows between two starts, both included; by start, then key."""
        if self._order is None:
            self.load_all()
            self._order = sorted(self._windows)
        order = self._order
        low = max(first, self._observed.value - self._shown_ms)
        return [
            (start, key, held)
            for start in order[bisect_left(order, low) : bisect_right(order, last)]
            for key, held in sorted(self._windows[start].items(), key=_key_of)
            if held is not None
        ]

    # --- backend

    def load_all(self) -> None:
        """Read the whole backend into memory."""
        if self._is_complete:
            return
        self._is_complete = True
        for entry, data in self._backend.items():
            (start,) = _START.unpack_from(entry)
            if start // self._interval_ms < self._oldest_segment:
                self._expired.append(entry)
            else:
                self._windows.setdefault(start, {}).setdefault(entry[_START.size :], self._read(data))

    def flush(self) -> list[tuple[int, bytes, bytes | None]]:
        """Write what changed to the backend, and return it as start, key and data."""
        written: list[tuple[int, bytes, bytes | None]] = []
        for start, keys in self._dirty.items():
            window, prefix = self._windows[start], _START.pack(start)
            for key in keys:
                held = window[key]
                if held is None:
                    del window[key]
                    if self._starts is not None:
                        self._forget(key, start)
                    self._backend.delete(prefix + key)
                    written.append((start, key, None))
                else:
                    data = self._write(held)
                    self._backend.put(prefix + key, data)
                    written.append((start, key, data))
            if not window:
                self._drop(start)
        self._dirty.clear()
        for _ in range(min(len(self._expired), DELETIONS_PER_FLUSH)):
            entry = self._expired.popleft()
            self._backend.delete(entry)
            written.append((_START.unpack_from(entry)[0], entry[_START.size :], None))
        self._backend_end = self._observed.value
        return written

    def _load(self, start: int, key: bytes) -> Any:
        data = self._backend.get(_START.pack(start) + key)
        held = None if data is None else self._read(data)
        self._windows.setdefault(start, {})[key] = held
        return held

    # --- time and order

    def _first_live_segment(self) -> int:
        observed: int = self._observed.value
        return max(0, observed - self._retention_ms) // self._interval_ms

    def _expire(self) -> None:
        segment = self._first_live_segment()
        if segment == self._oldest_segment:
            return
        self._oldest_segment = segment
        self.load_all()
        end = segment * self._interval_ms
        for start in [start for start in self._windows if start < end]:
            prefix = _START.pack(start)
            for key in self._drop(start):
                self._expired.append(prefix + key)
                if self._starts is not None:
                    self._forget(key, start)
            self._dirty.pop(start, None)

    def _drop(self, start: int) -> dict[bytes, Any]:
        if self._order is not None:
            del self._order[bisect_left(self._order, start)]
        return self._windows.pop(start)

    def _index_all(self) -> None:
        self.load_all()
        self._starts = {}
        for start in sorted(self._windows):
            for key in self._windows[start]:
                self._starts.setdefault(key, []).append(start)

    def _index(self, key: bytes, start: int) -> None:
        assert self._starts is not None
        starts = self._starts.get(key)
        if starts is None:
            self._starts[key] = [start]
        elif start > starts[-1]:
            starts.append(start)
        else:
            insort(starts, start)

    def _forget(self, key: bytes, start: int) -> None:
        assert self._starts is not None
        starts = self._starts[key]
        del starts[bisect_left(starts, start)]
        if not starts:
            del self._starts[key]
