"""Versioned tables, and row-by-row operators on them.

A record that is older than its key's row changes only old versions. It is forwarded as an `OutdatedChange`: a stream of
the table contains it, while joins and aggregations, which use current rows, ignore it. Start at
`VersionedSourceProcessor`; ordinary tables are in `tables`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.pipeline.cores.calls import callable_of
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.processor import Processor
from moldau.pipeline.cores.records import Change, OutdatedChange, Record, ValueAndTimestamp
from moldau.pipeline.cores.stores.versioned_store import Put, versioned_store
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.foreign_key import ForeignKeyResolve

__all__ = ["VersionedRowProcessor", "VersionedSourceProcessor", "is_versioned"]


def is_versioned(view: object) -> bool:
    """Whether old versions of a table's rows can be read."""
    return hasattr(view, "get_as_of")


class _VersionedProcessor(Processor):
    """A table in a versioned store, or one without a store that is computed from such a table."""

    def __init__(self, node: Any, context: TaskContext, table: ir.Materialization | None) -> None:
        super().__init__(node, context)
        self._sends_old_values = context.traits(node).sends_old_values
        self._versions = None if table is None else versioned_store(table, context)
        if self._versions is not None:
            context.views[node.name] = self._versions

    def store_and_forward(self, record: Record) -> None:
        """Store a version and forward the change it makes, if it makes one."""
        store = self._versions
        assert store is not None
        row = store.get(record.key)
        put = store.put(record.key, record.value, record.timestamp)
        if put is Put.REFUSED:
            self.context.drop(self.node, "older than the history")
            return
        kind = Change if put is Put.LATEST else OutdatedChange
        old = row.value if row is not None and self._sends_old_values else None
        self.forward(record.with_value(kind(record.value, old)))


class VersionedSourceProcessor(_VersionedProcessor):
    """A record is the version of its key's row from the record's timestamp on."""

    def __init__(self, node: ir.TableSource | ir.ToTable | ForeignKeyResolve, context: TaskContext) -> None:
        super().__init__(node, context, node.table)

    def process(self, record: Record) -> None:
        if record.key is None:
            self.context.drop(self.node, "null key")
            return
        self.store_and_forward(record)


class VersionedRowProcessor(_VersionedProcessor):
    """A filter or mapping with a versioned store, or without a store over a versioned table.

    A filter sends a tombstone for every row that does not pass, since an older version might have passed.
    """

    def __init__(self, node: ir.TableFilter | ir.TableMapValues, context: TaskContext) -> None:
        super().__init__(node, context, node.table if context.traits(node).is_materialized else None)
        self._computed = computation(node)
        self._keeps_quiet = isinstance(node, ir.TableFilter) and not context.traits(node.input).is_versioned
        self._forgets_history = node.forgets_history
        if self._versions is None and node.input.name in context.views:
            context.views[node.name] = ComputedVersions(context.view(node.input), self._computed)

    def process(self, record: Record) -> None:
        change: Change = record.value
        key = record.key
        result = record.with_value(None if change.new is None else self._computed(key, change.new))
        if self._versions is not None:
            is_known = result.value is not None or not self._sends_old_values or self._versions.get(key) is not None
            if is_known or not self._keeps_quiet:
                self.store_and_forward(result)
            return
        old = None if change.old is None or not self._sends_old_values else self._computed(key, change.old)
        kind = Change if self._forgets_history else type(change)
        self.forward(result.with_value(kind(result.value, old)))


class ComputedVersions:
    """A table without a store, computed from a versioned one when it is read."""

    def __init__(self, source: Any, computed: Callable[[Any, Any], Any]) -> None:
        self._source = source
        self._computed = computed

    def get(self, key: Any) -> ValueAndTimestamp | None:
        return self._row(key, self._source.get(key))

    def get_as_of(self, key: Any, timestamp: int) -> ValueAndTimestamp | None:
        return self._row(key, self._source.get_as_of(key, timestamp))

    def _row(self, key: Any, row: ValueAndTimestamp | None) -> ValueAndTimestamp | None:
        value = None if row is None else self._computed(key, row.value)
        return None if value is None or row is None else ValueAndTimestamp(value, row.timestamp)


def computation(node: ir.TableFilter | ir.TableMapValues) -> Callable[[Any, Any], Any]:
    """The function (key, value) -> result row, or None."""
    if isinstance(node, ir.TableFilter):
        holds = callable_of(node.predicate, "key", "value")
        wanted = not node.is_negated
        return lambda key, value: value if bool(holds(key, value)) is wanted else None
    if node.has_key:
        return callable_of(node.mapper, "key", "value")
    mapper = callable_of(node.mapper, "value")
    return lambda key, value: mapper(value)
