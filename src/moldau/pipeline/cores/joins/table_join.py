"""Table-table joins by key: each change of a side is joined with the current row of the other side.

The result is a table too: a change carries the old result where something downstream needs it, and a result that no
longer exists becomes a tombstone. Start at `TableJoinProcessor` for the left side; the right one is `_RightSide`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moldau.pipeline.cores.calls import Joiner, joiner_of
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.processor import Link, Processor, TableView
from moldau.pipeline.cores.records import NO_TIMESTAMP, OutdatedChange, Record, ValueAndTimestamp
from moldau.pipeline.cores.table_processor import TableProcessor
from moldau.pipeline.ir.nodes import JoinKind, TableTableJoin

__all__ = ["JoinedView", "TableJoinProcessor", "table_join"]


def table_join(node: TableTableJoin, context: TaskContext) -> tuple[Processor, ...]:
    """The left and the right side of a join."""
    left = TableJoinProcessor(node, context)
    return left, _RightSide(left)


class TableJoinProcessor(TableProcessor):
    """The left side, and the output of both."""

    def __init__(self, node: TableTableJoin, context: TaskContext) -> None:
        super().__init__(node, context, node.table)
        self.joiner = joiner_of(node.joiner, has_key=node.has_key)
        self.kind = node.kind
        self._left, self._right = context.view(node.left), context.view(node.right)
        self._store = None if node.table is None else context.timestamped_store(node.table)
        view: TableView = JoinedView(self._left, self._right, self.joiner, node.kind)
        context.views[node.name] = view if self._store is None else self._store

    def process(self, record: Record) -> None:
        key, change, timestamp, headers = record
        if key is None or type(change) is OutdatedChange:
            self.context.drop(self.node, "null key" if key is None else "older than the row")
            return
        new, old = change
        row = self._right.get(key)
        if row is None:
            if self.kind is JoinKind.INNER or (new is None and old is None):
                return
            right = None
        else:
            right = row.value
            timestamp = max(timestamp, row.timestamp)
        joined_new = self._join(key, new, right)
        joined_old = self._join(key, old, right) if self.sends_old_values else None
        self._forward_result(Record(key, joined_new, timestamp, headers), joined_old)

    def process_right(self, record: Record) -> None:
        """Process a change of the right table."""
        key, change, timestamp, headers = record
        if key is None or type(change) is OutdatedChange:
            self.context.drop(self.node, "null key" if key is None else "older than the row")
            return
        new, old = change
        row = self._left.get(key)
        if row is None:
            if self.kind is not JoinKind.OUTER or (new is None and old is None):
                return
            left = None
        else:
            left = row.value
            timestamp = max(timestamp, row.timestamp)
        joined_new = self._join(key, left, new)
        joined_old = self._join(key, left, old) if self.sends_old_values else None
        self._forward_result(Record(key, joined_new, timestamp, headers), joined_old)

    def _forward_result(self, result: Record, old: Any) -> None:
        """Forward a change of the result, through the store where there is one."""
        store = self._store
        if store is None:
            self.emit(None, result, old)
            return
        key_bytes = store.encode_key(result.key)
        if self.is_caching:
            row = store.row(key_bytes)
            old = None if row is None else row.value
        store.put_row(key_bytes, result.value, result.timestamp)
        self.emit(key_bytes, result, old)

    def _join(self, key: Any, left: Any, right: Any) -> Any:
        return self.joiner(key, left, right) if is_result(self.kind, left, right) else None


class _RightSide(Processor):
    """Changes of the right table."""

    def __init__(self, join: TableJoinProcessor) -> None:
        super().__init__(join.node, join.context)
        self._join = join

    def process(self, record: Record) -> None:
        self._join.process_right(record)

    def link(self, children: Sequence[Link]) -> None:
        """Nothing: the left side forwards for both."""


class JoinedView:
    """The result of a join that is not stored, computed when it is read."""

    def __init__(self, left: TableView, right: TableView, joiner: Joiner, kind: JoinKind) -> None:
        self._left = left
        self._right = right
        self._joiner = joiner
        self._kind = kind

    def get(self, key: Any) -> ValueAndTimestamp | None:
        left_value, left_time = self._left.get(key) or (None, NO_TIMESTAMP)
        right_value, right_time = self._right.get(key) or (None, NO_TIMESTAMP)
        if not is_result(self._kind, left_value, right_value):
            return None
        joined = self._joiner(key, left_value, right_value)
        return None if joined is None else ValueAndTimestamp(joined, max(left_time, right_time))


def is_result(kind: JoinKind, left: Any, right: Any) -> bool:
    """Whether two rows, either of which may be absent, have a result."""
    match kind:
        case JoinKind.INNER:
            return left is not None and right is not None
        case JoinKind.LEFT:
            return left is not None
        case JoinKind.OUTER:
            return left is not None or right is not None
