"""`KTable.transform_values`: a user's object, perhaps with state, replaces values.

Start at `TransformValuesProcessor`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from moldau.core.errors import MoldauError
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.processors import ProcessorContext, create_object, start_errors
from moldau.pipeline.cores.records import NO_TIMESTAMP, OutdatedChange, Record, ValueAndTimestamp
from moldau.pipeline.cores.table_processor import TableProcessor
from moldau.pipeline.cores.versioned_tables import is_versioned
from moldau.pipeline.ir.nodes import TableTransformValues

__all__ = ["ForwardingError", "TransformValuesProcessor"]


class ForwardingError(MoldauError):
    """A transformer of values tried to forward a record."""


class TransformContext(ProcessorContext):
    """A processor's context without forwarding: a transformer returns its result."""

    def forward(self, record: Record, child: str | None = None) -> None:
        raise ForwardingError(
            f"{self._owner.node.name}: a transformer of a table's values returns its result and cannot forward records"
        )


class TransformValuesProcessor(TableProcessor):
    """Calls the user's object for the new row, and for the old one where that is not stored; also for null rows."""

    def __init__(self, node: TableTransformValues, context: TaskContext) -> None:
        table = node.table if context.traits(node).is_materialized else None
        super().__init__(node, context, table)
        self._user_context = TransformContext(self, node.stores, node.connected)
        self._users = [create_object(node)]
        self._transform: Callable[[Any, Any], Any] = self._users[0].transform
        self._forgets_history = node.forgets_history
        self._store = None if table is None else context.timestamped_store(table)
        if self._store is not None:
            context.views[node.name] = self._store
        elif node.input.name in context.views:
            # Reads of the table must not change the state of the processing object, so they have their own.
            self._users.append(create_object(node))
            source = context.view(node.input)
            view = _TransformedVersions if is_versioned(source) else _TransformedView
            context.views[node.name] = view(source, self._users[1].transform)

    def process(self, record: Record) -> None:
        key, change, timestamp, headers = record
        result = Record(key, self._transform(key, change.new), timestamp, headers)
        store = self._store
        if store is None:
            old = self._transform(key, change.old) if self.sends_old_values else None
            if type(change) is OutdatedChange and not self._forgets_history:
                self.forward(result.with_value(OutdatedChange(result.value, old)))
            else:
                self.emit(None, result, old)
            return
        key_bytes = store.encode_key(key)
        row = store.row(key_bytes) if self.sends_old_values or self.is_caching else None
        store.put_row(key_bytes, result.value, timestamp)
        self.emit(key_bytes, result, None if row is None else row.value)

    def start(self) -> None:
        for user in self._users:
            if hasattr(user, "init"):
                with start_errors(self.node, "init"):
                    user.init(self._user_context)

    def close(self) -> None:
        with ExitStack() as ends:
            for user in reversed(self._users):
                if hasattr(user, "close"):
                    ends.callback(user.close)


class _TransformedView:
    """A table without a store, transformed when it is read."""

    def __init__(self, source: Any, transform: Callable[[Any, Any], Any]) -> None:
        self._source = source
        self._transform = transform

    def get(self, key: Any) -> ValueAndTimestamp | None:
        return self._row(key, self._source.get(key))

    def _row(self, key: Any, row: ValueAndTimestamp | None) -> ValueAndTimestamp | None:
        value, timestamp = row or (None, NO_TIMESTAMP)
        transformed = self._transform(key, value)
        return None if transformed is None else ValueAndTimestamp(transformed, timestamp)


class _TransformedVersions(_TransformedView):
    """The same for a versioned table."""

    def get_as_of(self, key: Any, timestamp: int) -> ValueAndTimestamp | None:
        return self._row(key, self._source.get_as_of(key, timestamp))
