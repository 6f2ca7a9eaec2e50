"""Aggregation in sliding windows (KIP-450), one for every set of records that are at most the difference apart.

Every record ends a window (its *left* window), and a window begins right after it (its *right* window) if other records
fall into it. Earlier records are found through the existing windows, whose row timestamp is their largest record
timestamp. Start at `SlidingWindowProcessor`.
"""

from __future__ import annotations

from typing import Any

from moldau.pipeline.cores.aggregations.closing_windows import WindowedProcessor
from moldau.pipeline.cores.aggregations.folding import Folding
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.records import NO_TIMESTAMP, Record, ValueAndTimestamp, Windowed
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.windows import SlidingWindow

__all__ = ["SlidingWindowProcessor"]


class _Neighbours:
    """What the windows around a record say about the records around it."""

    __slots__ = ("has_left", "has_right", "left", "previous", "right", "starts")

    def __init__(self) -> None:
        self.starts: set[int] = set()
        self.left: ValueAndTimestamp | None = None
        """The nearest window that ends before the record."""
        self.right: ValueAndTimestamp | None = None
        """The latest window that contains the record; its records after this one belong to the right window."""
        self.has_left = False
        self.has_right = False
        self.previous: int | None = None
        """The timestamp of the previous record."""


class SlidingWindowProcessor(WindowedProcessor):
    """An aggregation in sliding windows. Rows are passed in their stored form, since several windows use them."""

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
        assert isinstance(window, SlidingWindow)
        self._difference, self._grace = window.difference_ms, window.grace_ms
        retention = self._grace + 2 * self._difference if node.table.retention_ms is None else node.table.retention_ms
        self._store = context.timestamped_window_store(
            node.table,
            retention_ms=retention,
            window_size_ms=self._difference,
            shown_ms=self.shown_ms(retention),
        )
        self._close_time = NO_TIMESTAMP
        context.views[node.name] = self._store

    def process(self, record: Record) -> None:
        key, value, timestamp, _ = record
        if key is None or value is None:
            self.context.drop(self.node, "null key or value")
            return
        self.observed.value = max(self.observed.value, timestamp)
        self._close_time = self.observed.value - self._grace
        if timestamp + self._difference < self._close_time:
            self.drop_expired()
            return
        key_bytes = self._store.encode_key(key)
        if timestamp < self._difference:
            self._process_early(record, key_bytes)
            return
        around = self._update_windows_around(record, key_bytes)
        if around is not None:
            self._create_windows(record, key_bytes, around)
        if self.emits_at_close:
            self.emit_closed(record, self._close_time)

    def _update_windows_around(self, record: Record, key_bytes: bytes) -> _Neighbours | None:
        """Add the record to the existing windows it falls into, latest first; None where no new window is needed."""
        timestamp = record.timestamp
        around = _Neighbours()
        found = self._store.rows.of_key(key_bytes, max(0, timestamp - 2 * self._difference), timestamp + 1)
        for start, held in reversed(found):
            around.starts.add(start)
            end = start + self._difference
            if start == timestamp + 1:
                around.has_right = True
            elif end > timestamp:
                around.right = around.right or held
                self._update(record, key_bytes, start, held)
            elif end == timestamp:
                around.has_left = True
                self._update(record, key_bytes, start, held)
                if held[1] >= timestamp:
                    return None
                around.previous = held[1]
            else:
                around.left = held
                around.previous = held[1]
                break
        return around

    def _create_windows(self, record: Record, key_bytes: bytes, around: _Neighbours) -> None:
        timestamp, previous = record.timestamp, around.previous
        if previous is not None and previous + 1 not in around.starts and previous + 1 + self._difference >= timestamp:
            self._update(record, key_bytes, previous + 1, None)
        if not around.has_left:
            is_alone = previous is None or timestamp - self._difference > previous
            self._update(record, key_bytes, timestamp - self._difference, None if is_alone else around.left)
        self._create_right_window(record, key_bytes, around)

    def _create_right_window(self, record: Record, key_bytes: bytes, around: _Neighbours) -> None:
        right = around.right
        if around.has_right or right is None or right[1] <= record.timestamp:
            return
        start = record.timestamp + 1
        self._store.rows.put(start, key_bytes, right)
        value, timestamp = self._store.holding.give(right)
        self._emit_window(record, key_bytes, start, ValueAndTimestamp(value, timestamp), None)

    def _process_early(self, record: Record, key_bytes: bytes) -> None:
        """Process a record earlier than the difference: no window starts before time 0, so these records share one."""
        timestamp = record.timestamp
        around = _Neighbours()
        first: ValueAndTimestamp | None = None
        for start, held in self._store.rows.of_key(key_bytes, 0, timestamp + 1):
            around.starts.add(start)
            if start == 0:
                first = held
                around.previous = held[1] if held[1] < timestamp else None
            elif start <= timestamp:
                around.right = held
                self._update(record, key_bytes, start, held)
            else:
                around.has_right = True
        if around.right is None and first is not None and first[1] > timestamp:
            around.right = first
        self._create_right_window(record, key_bytes, around)
        if around.previous is not None and around.previous + 1 not in around.starts:
            self._update(record, key_bytes, around.previous + 1, None)
        self._update(record, key_bytes, 0, first)

    def _update(self, record: Record, key_bytes: bytes, start: int, base: ValueAndTimestamp | None) -> None:
        """Add the record to a window, or to its initial aggregate `base`, unless the window has closed."""
        if start + self._difference < self._close_time:
            self.drop_expired()
            return
        key, value, timestamp, _ = record
        give = self._store.holding.give
        if base is None:
            new = self.folding.add_value(key, value, None)
        else:
            new = self.folding.add_value(key, value, give(base)[0])
            timestamp = max(timestamp, base[1])
        old = self._old(key_bytes, start, base) if self.sends_old_values or self.is_caching else None
        self._store.put_row(start, key_bytes, new, timestamp)
        if new is None and self.is_caching:
            timestamp = record.timestamp  # see TableProcessor.emit
        self._emit_window(record, key_bytes, start, ValueAndTimestamp(new, timestamp), old)

    def _old(self, key_bytes: bytes, start: int, base: ValueAndTimestamp | None) -> Any:
        if self.is_caching:
            row = None if self._store.rows.has_expired(start) else self._store.row(start, key_bytes)
            return None if row is None else row.value
        return self.folding.initial_aggregate() if base is None else self._store.holding.give(base)[0]

    def _emit_window(self, record: Record, key_bytes: bytes, start: int, row: ValueAndTimestamp, old: Any) -> None:
        if not self.emits_at_close:
            windowed = Windowed(record.key, self._store.window(start))
            self.emit((start, key_bytes), Record(windowed, row.value, row.timestamp, record.headers), old)

    def closed_results(self, emitted_until: int, close_time: int) -> list[tuple[Any, Any, int]] | None:
        last = close_time - self._difference - 1
        if last < 0:
            return None
        first = 0 if emitted_until == NO_TIMESTAMP else max(0, emitted_until - self._difference)
        store = self._store
        return [
            (Windowed(store.decode_key(key), store.window(start)), *store.holding.give(held))
            for start, key, held in store.rows.between(first, last)
        ]
