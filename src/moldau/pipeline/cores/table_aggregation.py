"""Folding the rows of a grouped table: a change takes its old row out of the aggregate, then adds the new one.

Start at `TableAggregateProcessor`; `tables.GroupTableProcessor` makes what comes in.
"""

from __future__ import annotations

from typing import Any

from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.failures import ProcessingError, StateError
from moldau.pipeline.cores.folding import folding_of
from moldau.pipeline.cores.records import Record
from moldau.pipeline.cores.table_processor import TableProcessor
from moldau.pipeline.ir import nodes as ir

__all__ = ["TableAggregateProcessor"]


class TableAggregateProcessor(TableProcessor):
    """Aggregation with undo."""

    def __init__(self, node: ir.AggregateTable, context: TaskContext) -> None:
        super().__init__(node, context, node.table)
        self._folding = folding_of(node.aggregator)
        if self._folding.remove is None:
            raise StateError(f"{node.name} ({node.origin}): an aggregation of a table needs a function that takes away")
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
            aggregate = self._folding.folded(key, added, aggregate)
        old = self._old(key_bytes) if self.sends_old_values or self.is_caching else None
        store.put_row(key_bytes, aggregate, timestamp)
        if aggregate is None and self.is_caching:
            timestamp = record.timestamp  # see TableProcessor.emit
        self.emit(key_bytes, Record(key, aggregate, timestamp, headers), old)

    def _old(self, key_bytes: bytes) -> Any:
        # Read anew: the user's function may have changed the aggregate it was given instead of making another one.
        row = self._store.row(key_bytes)
        return None if row is None else row.value
