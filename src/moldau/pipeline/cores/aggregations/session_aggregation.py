"""Folding records by key in sessions, which grow and merge as records come in.

A record merges all sessions it touches, by the gap, into one. Each merged session ends with a tombstone under its own
window, then the new one is told; a session's time is its end. Start at `SessionProcessor`.
"""

from __future__ import annotations

from typing import Any

from moldau.pipeline.cores.aggregations.closing_windows import WindowedProcessor
from moldau.pipeline.cores.aggregations.folding import Folding
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.failures import StateError
from moldau.pipeline.cores.records import Record, Window, Windowed
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.windows import SessionWindow

__all__ = ["SessionProcessor"]


class SessionProcessor(WindowedProcessor):
    """An aggregation in session windows."""

    def __init__(
        self,
        node: ir.Aggregate | ir.Cogroup,
        context: TaskContext,
        folding: Folding,
        shared: WindowedProcessor | None = None,
        index: int = 0,
    ) -> None:
        super().__init__(node, context, folding, shared, index)
        window = node.window
        assert isinstance(window, SessionWindow)
        if folding.merge is None:
            raise StateError(
                f"{node.name} ({node.origin}): an aggregation in sessions needs a function that merges two"
            )
        self._merge = folding.merge
        self._gap, self._grace = window.gap_ms, window.grace_ms
        retention = self._gap + self._grace if node.table.retention_ms is None else node.table.retention_ms
        # Unlike windows, sessions that are told at close are hidden no later than others.
        shown = None if self.emits_at_close else self.shown_ms(retention)
        self._store = context.session_store(node.table, retention_ms=retention, shown_ms=shown)
        context.views[node.name] = self._store

    def process(self, record: Record) -> None:
        key, _, timestamp, _ = record
        if key is None:
            self.context.drop(self.node, "null key")
            return
        self.observed.value = max(self.observed.value, timestamp)
        close_time = self.observed.value - self._grace - self._gap
        key_bytes = self._store.encode_key(key)
        found = self._store.overlapping(key_bytes, timestamp - self._gap, timestamp + self._gap)
        merged = Window(
            min([timestamp, *(window.start for window, _ in found)]),
            max([timestamp, *(window.end for window, _ in found)]),
        )
        if merged.end < close_time:
            self.drop_expired()
        else:
            self._merge_into(record, key_bytes, found, merged)
        if self.emits_at_close:
            self.tell_closed(record, close_time)

    def _merge_into(self, record: Record, key_bytes: bytes, found: list[tuple[Window, Any]], merged: Window) -> None:
        key, value, timestamp, _ = record
        give = self._store.holding.give
        aggregate = self.folding.begun()
        for _, held in found:
            aggregate = self._merge(key, aggregate, give(held))
        if merged != (timestamp, timestamp):
            for window, held in found:
                self._store.put_session(key_bytes, window, None)
                self._tell(record, key_bytes, window, None, give(held))
        aggregate = self.folding.folded(key, value, aggregate)
        # A session of this very moment is replaced without a word about what it was, except to a cache.
        replaced = give(found[0][1]) if self.is_caching and found and found[0][0] == merged else None
        held = None if aggregate is None else self._store.holding.hold(aggregate)
        self._store.put_session(key_bytes, merged, held)
        self._tell(record, key_bytes, merged, aggregate, replaced)

    def _tell(self, record: Record, key_bytes: bytes, window: Window, new: Any, old: Any) -> None:
        if not self.emits_at_close:
            # Only out of a cache does a session carry the headers of its record.
            headers = record.headers if self.is_caching else ()
            if self.is_caching and self._store.has_expired(window):
                old = None  # the cache asks its store for it, where it is no longer to be seen
            self.emit((key_bytes, window), Record(Windowed(record.key, window), new, window.end, headers), old)

    def closed(self, told_until: int, close_time: int) -> list[tuple[Any, Any, int]] | None:
        first, last = max(0, told_until), close_time - 1
        if last < 0 or last < first:
            return None
        store = self._store
        return [
            (Windowed(store.decode_key(key), window), store.holding.give(held), window.end)
            for key, window, held in store.ending_between(first, last)
        ]
