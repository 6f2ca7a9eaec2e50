"""Tables read from topics or streams, and row-by-row operators on tables.

A table without a store is computed from its input table when it is read. `TABLE_BUILDERS` is their part of the table in
`builders`.
"""

from __future__ import annotations

from typing import Any

from moldau.pipeline.cores.calls import callable_of, no_pair
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.processor import Builder, Forward, Processor, TableView
from moldau.pipeline.cores.records import Change, OutdatedChange, Record, ValueAndTimestamp
from moldau.pipeline.cores.table_processor import TableProcessor
from moldau.pipeline.cores.versioned_tables import VersionedRowProcessor, VersionedSourceProcessor
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.foreign_key import ForeignKeyResolve

__all__ = ["TABLE_BUILDERS", "TableSourceProcessor", "table_source"]

_new = tuple.__new__


class TableSourceProcessor(TableProcessor):
    """A record replaces the row of its key, a null value deletes it."""

    def __init__(self, node: ir.TableSource | ir.ToTable | ForeignKeyResolve, context: TaskContext) -> None:
        is_stored = context.traits(node).is_materialized
        super().__init__(node, context, node.table if is_stored else None)
        if is_stored:
            self._store = context.timestamped_store(node.table)
            context.views[node.name] = self._store
        else:
            self.process = self._process_unstored  # type: ignore[method-assign]

    def process(self, record: Record) -> None:
        key, value, timestamp, _ = record
        if key is None:
            self.context.drop(self.node, "null key")
            return
        store = self._store
        key_bytes = store.encode_key(key)
        row = store.row(key_bytes)
        store.put_row(key_bytes, value, timestamp)
        self.emit(key_bytes, record, None if row is None else row[0])

    def _process_unstored(self, record: Record) -> None:
        if record.key is None:
            self.context.drop(self.node, "null key")
            return
        self.emit(None, record, None)


class GlobalTableProcessor(Processor):
    """Stores the rows of a global table; nothing is forwarded."""

    def __init__(self, node: ir.GlobalTableSource, context: TaskContext) -> None:
        super().__init__(node, context)
        self._store = context.timestamped_store(node.table)
        context.views[node.name] = self._store
        context.global_stores.add(node.table.store)

    def process(self, record: Record) -> None:
        key, value, timestamp, _ = record
        if key is None:
            self.context.drop(self.node, "null key")
            return
        self._store.put_row(self._store.encode_key(key), value, timestamp)


class _RowProcessor(TableProcessor):
    """A table whose rows are computed one by one from those of another."""

    def __init__(self, node: ir.TableFilter | ir.TableMapValues, context: TaskContext) -> None:
        table = node.table if context.traits(node).is_materialized else None
        super().__init__(node, context, table)
        self._is_simple = table is None and not self.sends_old_values
        if table is not None:
            self._store = context.timestamped_store(table)
            context.views[node.name] = self._store
            self.process = self._process_stored  # type: ignore[method-assign]
        elif node.input.name in context.views:
            context.views[node.name] = _ComputedView(context.view(node.input), self.compute)

    def compute(self, key: Any, value: Any) -> Any:
        """The result row for a row of the input, or None."""
        raise NotImplementedError

    def is_silent(self, new: Any, old: Any) -> bool:
        """Whether a change need not be forwarded."""
        return False

    def process(self, record: Record) -> None:
        key, change, timestamp, headers = record
        new, old = change[0], change[1]
        new = None if new is None else self.compute(key, new)
        old = None if old is None or not self.sends_old_values else self.compute(key, old)
        if not self.is_silent(new, old):
            self.emit(None, _new(Record, (key, new, timestamp, headers)), old)

    @property
    def take_value(self) -> Forward | None:
        # Without a store and without old values, all that is needed of a change is the new row.
        return self._take_new_row if self._is_simple else None

    def _take_new_row(self, record: Record) -> None:
        key, new, timestamp, headers = record
        new = None if new is None else self.compute(key, new)
        result = _new(Record, (key, new, timestamp, headers))
        if self.take_new_value is not None:
            self.take_new_value(result)
        else:
            self.emit(None, result, None)

    def _process_stored(self, record: Record) -> None:
        key, change, timestamp, headers = record
        new = change[0]
        new = None if new is None else self.compute(key, new)
        store = self._store
        key_bytes = store.encode_key(key)
        row = store.row(key_bytes) if self.sends_old_values or self.is_caching else None
        old = None if row is None else row[0]
        if not self.is_silent(new, old):
            store.put_row(key_bytes, new, timestamp)
            self.emit(key_bytes, _new(Record, (key, new, timestamp, headers)), old)


class TableFilterProcessor(_RowProcessor):
    """Rows that do not pass are absent; one that stops passing leaves a tombstone."""

    def __init__(self, node: ir.TableFilter, context: TaskContext) -> None:
        self._holds = callable_of(node.predicate, "key", "value", log=context.processing_log)
        self._wanted = not node.is_negated
        self._is_of_versions = context.traits(node.input).is_versioned
        super().__init__(node, context)

    def compute(self, key: Any, value: Any) -> Any:
        return value if bool(self._holds(key, value)) is self._wanted else None

    def is_silent(self, new: Any, old: Any) -> bool:
        # Without old values it is unknown whether the row existed before, so a tombstone is sent.
        return self.sends_old_values and new is None and old is None and not self._is_of_versions


class TableMapValuesProcessor(_RowProcessor):
    """Replaces the value of each row."""

    def __init__(self, node: ir.TableMapValues, context: TaskContext) -> None:
        self._mapper = callable_of(
            node.mapper, *(("key", "value") if node.has_key else ("value",)), log=context.processing_log
        )
        self._has_key = node.has_key
        super().__init__(node, context)

    def compute(self, key: Any, value: Any) -> Any:
        return self._mapper(key, value) if self._has_key else self._mapper(value)


class _ComputedView:
    """A table without a store, computed from its input table when it is read."""

    def __init__(self, source: TableView, computed: Any) -> None:
        self._source = source
        self._computed = computed

    def get(self, key: Any) -> ValueAndTimestamp | None:
        row = self._source.get(key)
        if row is None:
            return None
        value = self._computed(key, row.value)
        return None if value is None else ValueAndTimestamp(value, row.timestamp)


class ToStreamProcessor(Processor):
    """The new values of a table, tombstones included."""

    def __init__(self, node: ir.ToStream, context: TaskContext) -> None:
        super().__init__(node, context)
        self._selector = (
            None if node.selector is None else callable_of(node.selector, "key", "value", log=context.processing_log)
        )

    @property
    def take_value(self) -> Forward | None:
        return self.forward if self._selector is None else self._select

    def process(self, record: Record) -> None:
        key, change, timestamp, headers = record
        key = key if self._selector is None else self._selector(key, change[0])
        self.forward(_new(Record, (key, change[0], timestamp, headers)))

    def _select(self, record: Record) -> None:
        key, value, timestamp, headers = record
        if self._selector is not None:
            key = self._selector(key, value)
        self.forward(_new(Record, (key, value, timestamp, headers)))


class GroupTableProcessor(Processor):
    """Turns changes of rows into changes for a grouped aggregation: the old row subtracted, the new one added.

    Both are in one record where the group stays the same, else the old one is forwarded first.
    """

    def __init__(self, node: ir.GroupTable, context: TaskContext) -> None:
        super().__init__(node, context)
        self._selector = callable_of(node.selector, "key", "value", log=context.processing_log)

    def process(self, record: Record) -> None:
        key, change, timestamp, headers = record
        if type(change) is OutdatedChange:
            self.context.drop(self.node, "older than the row")
            return
        added, removed = self._pair(key, change[0]), self._pair(key, change[1])
        if added is not None and removed is not None and added[0] == removed[0]:
            self.forward(Record(removed[0], Change(added[1], removed[1]), timestamp, headers))
            return
        if removed is not None:
            self.forward(Record(removed[0], Change(None, removed[1]), timestamp, headers))
        if added is not None:
            self.forward(Record(added[0], Change(added[1], None), timestamp, headers))

    def _pair(self, key: Any, value: Any) -> tuple[Any, Any] | None:
        if value is None:
            return None
        made = self._selector(key, value)
        try:
            group, part = made
        except (TypeError, ValueError):
            raise no_pair(made) from None
        return None if group is None or part is None else (group, part)


def table_source(node: ir.TableSource | ir.ToTable | ForeignKeyResolve, context: TaskContext) -> Processor:
    """The processor of a table source, versioned or not."""
    if node.table.history_ms is not None:
        return VersionedSourceProcessor(node, context)
    return TableSourceProcessor(node, context)


def table_filter(node: ir.TableFilter, context: TaskContext) -> Processor:
    """The processor of a table filter, versioned or not."""
    return VersionedRowProcessor(node, context) if _has_past(node, context) else TableFilterProcessor(node, context)


def table_map_values(node: ir.TableMapValues, context: TaskContext) -> Processor:
    """The processor of a mapping of a table's values, versioned or not."""
    return VersionedRowProcessor(node, context) if _has_past(node, context) else TableMapValuesProcessor(node, context)


def _has_past(node: ir.TableFilter | ir.TableMapValues, context: TaskContext) -> bool:
    """Whether a table is versioned; one without a store inherits that from its input table."""
    if context.traits(node).is_materialized:
        return node.table is not None and node.table.history_ms is not None
    return context.traits(node.input).is_versioned


TABLE_BUILDERS: dict[type[ir.Node], Builder] = {
    ir.TableSource: table_source,
    ir.GlobalTableSource: GlobalTableProcessor,
    ir.ToTable: table_source,
    ir.TableFilter: table_filter,
    ir.TableMapValues: table_map_values,
    ir.ToStream: ToStreamProcessor,
    ir.GroupTable: GroupTableProcessor,
}
