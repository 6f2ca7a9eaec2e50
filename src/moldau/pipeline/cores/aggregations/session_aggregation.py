"""Aggregation in session windows, which grow and merge as records arrive.

A record merges all sessions within the inactivity gap into one. For each merged session a tombstone is emitted under
its window, then the new session; a session's timestamp is its end. Start at `SessionProcessor`.
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
            raise StateError(f"{node.name} ({node.origin}): an aggregation in sessions needs a session merger")
        self._merge = folding.merge
        self._gap, self._grace = window.gap_ms, window.grace_ms
        retention = self._gap + self._grace if node.table.retention_ms is None else node.table.retention_ms
        # Unlike time windows, sessions emitted on close are not visible any longer than others.
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
            self.emit_closed(record, close_time)

    def _merge_into(self, record: Record, key_bytes: bytes, found: list[tuple[Window, Any]], merged: Window) -> None:
        key, value, timestamp, _ = record
        give = self._store.holding.give
        aggregate = self.folding.initial_aggregate()
        for _, held in found:
            aggregate = self._merge(key, aggregate, give(held))
        if merged != (timestamp, timestamp):
            for window, held in found:
                self._store.put_session(key_bytes, window, None)
                self._emit_session(record, key_bytes, window, None, give(held))
        aggregate = self.folding.add_value(key, value, aggregate)
        # A session with the same window is replaced without a tombstone, except with a cache.
        replaced = give(found[0][1]) if self.is_caching and found and found[0][0] == merged else None
        held = None if aggregate is None else self._store.holding.hold(aggregate)
        self._store.put_session(key_bytes, merged, held)
        self._emit_session(record, key_bytes, merged, aggregate, replaced)

    def _emit_session(self, record: Record, key_bytes: bytes, window: Window, new: Any, old: Any) -> None:
        if not self.emits_at_close:
            # As in Kafka Streams, only cached sessions carry the headers of their record.
            headers = record.headers if self.is_caching else ()
            if self.is_caching and self._store.has_expired(window):
                old = None  # the cache reads it from its store, where it is no longer visible
            self.emit((key_bytes, window), Record(Windowed(record.key, window), new, window.end, headers), old)

    def closed_results(self, emitted_until: int, close_time: int) -> list[tuple[Any, Any, int]] | None:
        first, last = max(0, emitted_until), close_time - 1
        if last < 0 or last < first:
            return None
        store = self._store
        return [
            (Windowed(store.decode_key(key), window), store.holding.give(held), window.end)
            for key, window, held in store.ending_between(first, last)
        ]
