"""Aggregation in tumbling, hopping and unlimited windows.

A record belongs to every window that starts at or before it and ends after it; windows whose grace period is over take
no more records. A record without a key is dropped, one without a value is aggregated like any other, as in Kafka
Streams. Start at `TimeWindowProcessor`.
"""

from __future__ import annotations

from typing import Any

from moldau.pipeline.cores.aggregations.closing_windows import END_OF_TIME, WindowedProcessor
from moldau.pipeline.cores.aggregations.folding import Folding
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.records import NO_TIMESTAMP, Record, Window, Windowed
from moldau.pipeline.cores.stores.window_store import TimestampedWindowStore
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.windows import TimeWindow, UnlimitedWindow

__all__ = ["TimeWindowProcessor"]

_new = tuple.__new__

WINDOWS_KEPT = 256


class TimeWindowProcessor(WindowedProcessor):
    """An aggregation in windows of fixed size."""

    def __init__(
        self,
        node: ir.Aggregate | ir.Cogroup,
        context: TaskContext,
        folding: Folding,
        shared: WindowedProcessor | None = None,
        index: int = 0,
    ) -> None:
        super().__init__(node, context, folding, shared, index)
        self.has_cache = node.table.is_caching and context.settings.is_caching
        window = node.window
        if isinstance(window, UnlimitedWindow):
            self._size, self._advance, self._grace = END_OF_TIME, END_OF_TIME, 0
            self._origin = window.start_ms
        else:
            assert isinstance(window, TimeWindow)
            self._size, self._advance, self._grace = window.size_ms, window.advance_ms, window.grace_ms
            self._origin = 0
        retention = self._size + self._grace if node.table.retention_ms is None else node.table.retention_ms
        self._store = context.timestamped_window_store(
            node.table,
            retention_ms=retention,
            window_size_ms=self._size,
            shown_ms=self.shown_ms(retention),
        )
        self._windows: dict[int, Window] = {}
        """Recently used windows by start, so that they are not created for each record."""
        self._encode_key = self._store.encode_key
        self._held_row = self._store.rows.get
        self._is_plain = self._store.holding.is_plain
        self._is_tumbling = self._size == self._advance and not self._origin
        # A cache still shows the windows that a jump in stream time expires in the store.
        self._tells_before_update = self.emits_at_close and self.has_cache
        context.views[node.name] = self._store

    @property
    def can_be_fused(self) -> bool:
        """Whether windows are tumbling, and each change is emitted at once."""
        return self._is_tumbling and self._is_plain and not self.emits_at_close

    @property
    def store(self) -> TimestampedWindowStore:
        return self._store

    @property
    def size_ms(self) -> int:
        return self._size

    @property
    def grace_ms(self) -> int:
        return self._grace

    def process(self, record: Record) -> None:
        key, _, timestamp, _ = record
        if key is None:
            self.context.drop(self.node, "null key")
            return
        observed = self.observed
        if timestamp > observed.value:  # noqa: PLR1730, a call of max() costs too much here
            observed.value = timestamp
        close_time = observed.value - self._grace
        if self._tells_before_update:
            self.emit_closed(record, close_time)
        size = self._size
        key_bytes = self._encode_key(key)
        starts = (timestamp - timestamp % size,) if self._is_tumbling else self._starts(timestamp)
        for start in starts:
            if start + size > close_time:
                self._update(record, key_bytes, start)
            else:
                self.drop_expired()
        if self.emits_at_close and not self._tells_before_update:
            self.emit_closed(record, close_time)

    def _starts(self, timestamp: int) -> range:
        """Starts of the windows that contain a timestamp, earliest first."""
        if self._origin:
            timestamp -= self._origin
            return range(self._origin, self._origin + (timestamp >= 0))
        advance = self._advance
        first = timestamp - self._size + advance
        return range(first - first % advance if first > 0 else 0, timestamp + 1, advance)

    def _update(self, record: Record, key_bytes: bytes, start: int) -> None:
        key, value, timestamp, headers = record
        store = self._store
        row = self._held_row(start, key_bytes)
        if row is not None and not self._is_plain:
            row = store.holding.give(row)
        if row is None:
            new = self.folding.add_value(key, value, None)
        else:
            new = self.folding.add(key, value, row[0])
            if row[1] > timestamp:  # noqa: PLR1730, as above
                timestamp = row[1]
        if self.emits_at_close:
            store.put_row(start, key_bytes, new, timestamp)
            return
        old = self._old(start, key_bytes) if self.sends_old_values or self.is_caching else None
        store.put_row(start, key_bytes, new, timestamp)
        if new is None and self.is_caching:
            timestamp = record.timestamp  # see TableProcessor.emit
        windowed = _new(Windowed, (key, self._windows.get(start) or self._window(start)))
        result = _new(Record, (windowed, new, timestamp, headers))
        if self.take_new_value is not None:
            self.take_new_value(result)
        else:
            self.emit((start, key_bytes), result, old)

    def window_at(self, start: int) -> Window:
        """The window with this start."""
        return self._windows.get(start) or self._window(start)

    def _window(self, start: int) -> Window:
        if len(self._windows) > WINDOWS_KEPT:
            self._windows.clear()
        window = self._windows[start] = self._store.window(start)
        return window

    def _old(self, start: int, key_bytes: bytes) -> Any:
        # Read anew: the user's function may have changed the aggregate it was given instead of making another one.
        row = self._store.row(start, key_bytes)
        if row is not None:
            return row.value
        return None if self.is_caching else self.folding.initial_aggregate()

    def closed_results(self, emitted_until: int, close_time: int) -> list[tuple[Any, Any, int]] | None:
        last = close_time - self._size
        if last < 0:
            return None
        first = 0
        if emitted_until != NO_TIMESTAMP:
            first = max(0, emitted_until - self._size) + 1
            if self._starts(last) == self._starts(first - 1):
                return None
        store = self._store
        return [
            (Windowed(store.decode_key(key), store.window(start)), *store.holding.give(held))
            for start, key, held in store.rows.between(first, last)
        ]
