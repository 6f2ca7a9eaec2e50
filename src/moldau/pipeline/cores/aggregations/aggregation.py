"""Aggregation per key without windows: count, reduce, aggregate and cogroup.

A record without key or value is dropped. A row's timestamp is the largest of all records aggregated into it. A change
of a grouped table subtracts the old row from the aggregate, then adds the new one. Start at `AggregateProcessor`;
windowed aggregations are in the other modules of this folder.
"""

from __future__ import annotations

from typing import Any

from moldau.pipeline.cores.aggregations.folding import Folding, folding_of
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.failures import ProcessingError, StateError
from moldau.pipeline.cores.records import Record, ValueAndTimestamp
from moldau.pipeline.cores.stores.key_value_store import TimestampedStore
from moldau.pipeline.cores.table_processor import TableProcessor
from moldau.pipeline.ir import nodes as ir

__all__ = ["AggregateProcessor", "CountProcessor", "TableAggregateProcessor"]


_new = tuple.__new__


class AggregateProcessor(TableProcessor):
    """Any aggregation without windows."""

    def __init__(
        self,
        node: ir.Aggregate | ir.Cogroup,
        context: TaskContext,
        folding: Folding,
        shared: TableProcessor | None = None,
    ) -> None:
        super().__init__(node, context, node.table, shared)
        self._store: TimestampedStore = context.timestamped_store(node.table)
        self.folding = folding
        context.views[node.name] = self._store

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        if key is None or value is None:
            self.context.drop(self.node, "null key or value")
            return
        store = self._store
        key_bytes = store.encode_key(key)
        row = store.row(key_bytes)
        if row is None:
            new = self.folding.add_value(key, value, None)
        else:
            new = self.folding.add(key, value, row[0])
            timestamp = max(timestamp, row[1])
        old = self._old(key_bytes) if self.sends_old_values or self.is_caching else None
        store.put_row(key_bytes, new, timestamp)
        if new is None and self.is_caching:
            timestamp = record.timestamp  # see TableProcessor.emit
        self.emit(key_bytes, _new(Record, (key, new, timestamp, headers)), old)

    def _old(self, key_bytes: bytes) -> Any:
        # Read again: the user's function may have modified the aggregate it was given instead of returning a new one.
        row = self._store.row(key_bytes)
        if row is not None:
            return row.value
        # The old value of the first change is the initial aggregate, except where changes are cached.
        return None if self.is_caching else self.folding.initial_aggregate()


class CountProcessor(TableProcessor):
    """Optimized count, for stores that hold counts as plain objects."""

    def __init__(self, node: ir.Aggregate, context: TaskContext) -> None:
        super().__init__(node, context, node.table)
        store = context.timestamped_store(node.table)
        context.views[node.name] = store
        self._encode_key = store.encode_key
        self._row = store.cache.get
        self._rows = store.cache.entries
        self._dirty = store.cache.dirty

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        if key is None or value is None:
            self.context.drop(self.node, "null key or value")
            return
        key_bytes = self._encode_key(key)
        row = self._rows.get(key_bytes) or self._row(key_bytes)
        if row is None:
            count, old = 1, None if self.is_caching else 0
        else:
            old, latest = row
            count = old + 1
            if latest > timestamp:  # noqa: PLR1730, a call of max() costs too much here
                timestamp = latest
        self._rows[key_bytes] = _new(ValueAndTimestamp, (count, timestamp))
        self._dirty.add(key_bytes)
        counted = _new(Record, (key, count, timestamp, headers))
        if self.take_new_value is not None:
            self.take_new_value(counted)
        else:
            self.emit(key_bytes, counted, old)


class TableAggregateProcessor(TableProcessor):
    """Aggregation of a grouped table, with a subtractor."""

    def __init__(self, node: ir.AggregateTable, context: TaskContext) -> None:
        super().__init__(node, context, node.table)
        self._folding = folding_of(node.aggregator, context.processing_log)
        if self._folding.remove is None:
            raise StateError(f"{node.name} ({node.origin}): an aggregation of a table needs a subtractor")
        self._remove = self._folding.remove
        self._store = context.timestamped_store(node.table)
        context.views[node.name] = self._store

    def process(self, record: Record) -> None:
        key, change, timestamp, headers = record
        added, removed = change[0], change[1]
        if key is None:
            raise ProcessingError(
                f"{self.node.name} ({self.node.origin}): a grouped table has no null keys",
                self.context.place,
                self.node.name,
                self.node.origin,
            )
        store = self._store
        key_bytes = store.encode_key(key)
        row = store.row(key_bytes)
        aggregate = None
        if row is not None:
            aggregate = row.value
            if removed is not None:
                aggregate = self._remove(key, removed, aggregate)
            if removed is not None or added is not None:
                timestamp = max(timestamp, row.timestamp)
        if added is not None:
            aggregate = self._folding.add_value(key, added, aggregate)
        old = self._old(key_bytes) if self.sends_old_values or self.is_caching else None
        store.put_row(key_bytes, aggregate, timestamp)
        if aggregate is None and self.is_caching:
            timestamp = record.timestamp  # see TableProcessor.emit
        self.emit(key_bytes, Record(key, aggregate, timestamp, headers), old)

    def _old(self, key_bytes: bytes) -> Any:
        # Read again: the user's function may have modified the aggregate it was given instead of returning a new one.
        row = self._store.row(key_bytes)
        return None if row is None else row.value
