"""The store of sessions: values by key, start and end of the session.

A session is found by overlap, and expires by its end. All sessions of a key are one entry of the backend, since there
are few and they are always read together. Retention works as in `window_rows`. Start at `SessionStore`.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any

from moldau.pipeline.cores.records import ValueAndTimestamp, Window, Windowed
from moldau.pipeline.cores.stores.backends import StateBackend
from moldau.pipeline.cores.stores.cells import Cell
from moldau.pipeline.cores.stores.store import Codec, Store, StoreChange
from moldau.pipeline.cores.stores.store_values import Holding
from moldau.pipeline.cores.stores.window_rows import segment_interval
from moldau.pipeline.cores.stores.write_back import WriteBack

__all__ = ["SessionStore"]

_SESSION = struct.Struct(">qqI")
LAST_TIME = 2**63 - 1

Session = tuple[int, int, Any]
"""End, start, held value: sessions of a key are in this order."""


class SessionStore(Store):
    """The session store of the Processor API; session tables are stored in it."""

    def __init__(
        self,
        name: str,
        backend: StateBackend,
        codec: Codec,
        *,
        observed: Cell,
        retention_ms: int,
        shown_ms: int | None = None,
    ) -> None:
        super().__init__(name)
        self.encode_key = codec.encode_key
        self.decode_key = codec.decode_key
        self.holding = Holding(codec)
        self._cache = WriteBack(backend, self._write, self._read, capacity=LAST_TIME)
        self._observed = observed
        self._retention_ms = retention_ms
        self._shown_ms = retention_ms - 1 if shown_ms is None else shown_ms
        self._interval_ms = segment_interval(retention_ms)
        self._oldest_segment = self._first_live_segment()
        self._ends: list[tuple[int, int, bytes]] | None = None
        """End, start and key of all sessions in order, created by the first query of sessions by their end."""
        self._changed: dict[tuple[bytes, Window], Any] = {}

    # --- by key bytes, for cores

    def overlapping(self, key_bytes: bytes, earliest_end: int, latest_start: int) -> list[tuple[Window, Any]]:
        """Sessions that end at or after one time and start at or before another, with held values, by end."""
        low = max(earliest_end, self._observed.value - self._shown_ms)
        return [
            (Window(start, end), held)
            for end, start, held in self._sessions(key_bytes)
            if end >= low and start <= latest_start
        ]

    def has_expired(self, window: Window) -> bool:
        """Whether the retention of a session is over, even if it is still visible."""
        expired: bool = window.end <= self._observed.value - self._retention_ms
        return expired

    def put_session(self, key_bytes: bytes, window: Window, held: Any) -> bool:
        """Set the held value of a session, None to remove it; false where the session is too old to be written."""
        start, end = window
        if end > self._observed.value:
            self._observed.value = end
            self._expire()
        elif held is not None and end // self._interval_ms < self._oldest_segment:
            return False
        sessions = list(self._sessions(key_bytes))
        position = bisect_left(sessions, (end, start), key=_order)
        is_known = position < len(sessions) and sessions[position][:2] == (end, start)
        if is_known:
            del sessions[position]
        if held is not None:
            sessions.insert(position, (end, start, held))
        if self._ends is not None and is_known != (held is not None):
            self._reorder((end, start, key_bytes), is_gone=is_known)
        self._cache.put(key_bytes, sessions or None)
        if self.is_queryable:
            self._changed[key_bytes, window] = held
        return True

    def ending_between(self, first_end: int, last_end: int) -> list[tuple[bytes, Window, Any]]:
        """Sessions of all keys that end between two times, both included; by end, then start, then key."""
        if self._ends is None:
            self._ends = sorted(
                (end, start, key) for key, sessions in self._cache.sorted_items() for end, start, _ in sessions
            )
        ends = self._ends
        found = ends[bisect_left(ends, (first_end,)) : bisect_left(ends, (last_end + 1,))]
        return [(key, Window(start, end), self._held_value(key, end, start)) for end, start, key in found]

    def _held_value(self, key_bytes: bytes, end: int, start: int) -> Any:
        sessions = self._sessions(key_bytes)
        return sessions[bisect_left(sessions, (end, start), key=_order)][2]

    def _reorder(self, session: tuple[int, int, bytes], *, is_gone: bool) -> None:
        assert self._ends is not None
        if is_gone:
            del self._ends[bisect_left(self._ends, session)]
        else:
            insort(self._ends, session)

    # --- by key, for processors

    def put(self, key: Windowed, value: Any) -> None:
        """Set the value of a session; None removes it."""
        self.put_session(self.encode_key(key.key), key.window, None if value is None else self.holding.hold(value))

    def remove(self, key: Windowed) -> None:
        """Remove a session."""
        self.put(key, None)

    def find_sessions(self, key: Any, earliest_end: int, latest_start: int) -> Iterator[tuple[Windowed, Any]]:
        """Sessions of a key that end at or after one time and start at or before another, by end."""
        found = self.overlapping(self.encode_key(key), earliest_end, latest_start)
        return ((Windowed(key, window), self.holding.give(held)) for window, held in found)

    def fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]:
        """All sessions of a key."""
        return self.find_sessions(key, 0, LAST_TIME)

    def fetch_session(self, key: Any, start: int, end: int) -> Any:
        """The value of one session, or None."""
        for window, held in self.overlapping(self.encode_key(key), end, start):
            if window == (start, end):
                return self.holding.give(held)
        return None

    def get(self, key: Windowed) -> ValueAndTimestamp | None:
        """The row of a session, for other nodes that read the table; its timestamp is the session's end."""
        value = self.fetch_session(key.key, key.window.start, key.window.end)
        return None if value is None else ValueAndTimestamp(value, key.window.end)

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        """Every visible session, by key."""
        low = self._observed.value - self._shown_ms
        return (
            (Windowed(self.decode_key(key), Window(start, end)), self.holding.give(held))
            for key, sessions in self._cache.sorted_items()
            for end, start, held in sessions
            if end >= low
        )

    # --- backend and time

    def flush(self) -> list[StoreChange]:
        """Write what changed to the backend."""
        self._cache.flush()
        changed, self._changed = self._changed, {}
        return [
            StoreChange(key, None if held is None else self.holding.write(held), None, window)
            for (key, window), held in changed.items()
        ]

    def _sessions(self, key_bytes: bytes) -> list[Session]:
        return self._cache.get(key_bytes) or []

    def _write(self, sessions: list[Session]) -> bytes:
        parts = []
        for end, start, held in sessions:
            data = self.holding.write(held)
            parts.append(_SESSION.pack(end, start, len(data)) + data)
        return b"".join(parts)

    def _read(self, data: bytes) -> list[Session]:
        sessions, position = [], 0
        while position < len(data):
            end, start, length = _SESSION.unpack_from(data, position)
            position += _SESSION.size
            sessions.append((end, start, self.holding.read(data[position : position + length])))
            position += length
        return sessions

    def _first_live_segment(self) -> int:
        observed: int = self._observed.value
        return max(0, observed - self._retention_ms) // self._interval_ms

    def _expire(self) -> None:
        segment = self._first_live_segment()
        if segment == self._oldest_segment:
            return
        self._oldest_segment = segment
        first_end = segment * self._interval_ms
        if self._ends is not None:
            del self._ends[: bisect_left(self._ends, (first_end,))]
        for key, sessions in self._cache.sorted_items():
            alive = [session for session in sessions if session[0] >= first_end]
            if len(alive) < len(sessions):
                self._cache.put(key, alive or None)
                if self.is_queryable:
                    for end, start, _ in sessions[: len(sessions) - len(alive)]:
                        self._changed[key, Window(start, end)] = None


def _order(session: Session) -> tuple[int, int]:
    return session[0], session[1]
