"""Stream-table joins: each record of the stream is joined with the current row of its key.

Only records of the stream give results, changes of the table do not. With a versioned table a record is joined with the
row as of its timestamp; with a grace period it waits for late rows of that time. `global_table_join` is the same with a
key that is selected from the record. Start at `StreamTableJoinProcessor`.
"""

from __future__ import annotations

from typing import Any

from moldau.pipeline.cores.calls import callable_of, joiner_of
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.processor import Forward, Processor
from moldau.pipeline.cores.records import NO_TIMESTAMP, Record, ValueAndTimestamp
from moldau.pipeline.cores.stores.waiting_records import WaitingRecords
from moldau.pipeline.cores.versioned_tables import is_versioned
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.nodes import JoinKind, StreamGlobalTableJoin, StreamTableJoin

__all__ = [
    "GlobalTableJoinProcessor",
    "StreamTableJoinProcessor",
    "TableChanges",
    "global_table_join",
    "stream_table_join",
]


_new = tuple.__new__


def stream_table_join(node: StreamTableJoin, context: TaskContext) -> tuple[Processor, ...]:
    """The stream side, and the table side, which does nothing."""
    is_past_known = is_versioned(context.view(node.right))
    if node.grace_ms is not None and not is_past_known:
        raise TopologyError(
            f"{node.name}: a grace period needs a versioned table; store the table with"
            " Stores.persistent_versioned_key_value_store, or omit the grace period",
            node.origin,
        )
    return _stream_side(node, context, is_past_known=is_past_known), TableChanges(node, context)


def _stream_side(node: StreamTableJoin, context: TaskContext, *, is_past_known: bool) -> Processor:
    if node.grace_ms is not None:
        return PatientTableJoinProcessor(node, context)
    return VersionedTableJoinProcessor(node, context) if is_past_known else StreamTableJoinProcessor(node, context)


class StreamTableJoinProcessor(Processor):
    """The stream's side of the join."""

    def __init__(self, node: StreamTableJoin | StreamGlobalTableJoin, context: TaskContext) -> None:
        super().__init__(node, context)
        self._joiner = joiner_of(node.joiner, has_key=node.has_key)
        self.is_left = node.kind is JoinKind.LEFT
        self._row = context.view(node.right).get

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        if value is None:
            self.context.drop(self.node, "null value")
            return
        row_key = self.row_key(key, value)
        if row_key is None and not self.is_left:
            self.context.drop(self.node, "null key")
            return
        row = None if row_key is None else self.row(row_key, timestamp)
        if row is not None:
            self.forward(_new(Record, (key, self._joiner(key, value, row[0]), timestamp, headers)))
        elif self.is_left:
            self.forward(_new(Record, (key, self._joiner(key, value, None), timestamp, headers)))

    def row_key(self, key: Any, value: Any) -> Any:
        """The key of the table's row that a record is joined with."""
        return key

    def row(self, key: Any, timestamp: int) -> ValueAndTimestamp | None:
        """The row that a record with this timestamp is joined with."""
        return self._row(key)


class VersionedTableJoinProcessor(StreamTableJoinProcessor):
    """The stream side of a join with a versioned table."""

    def __init__(self, node: StreamTableJoin, context: TaskContext) -> None:
        super().__init__(node, context)
        view: Any = context.view(node.right)
        self._row_as_of = view.get_as_of

    def row(self, key: Any, timestamp: int) -> ValueAndTimestamp | None:
        row: ValueAndTimestamp | None = self._row_as_of(key, timestamp)
        return row


class PatientTableJoinProcessor(VersionedTableJoinProcessor):
    """The stream side where records wait for a grace period before they are joined."""

    def __init__(self, node: StreamTableJoin, context: TaskContext) -> None:
        super().__init__(node, context)
        buffer, grace_ms = node.buffer, node.grace_ms
        assert buffer is not None
        assert grace_ms is not None
        self._waiting = context.open(
            buffer,
            WaitingRecords,
            lambda: WaitingRecords(
                buffer.store,
                context.backend(buffer.store),
                context.codec(buffer),
                observed=context.cell(f"store-time {buffer.store}", NO_TIMESTAMP),
                sequence=context.cell(f"store-sequence {buffer.store}", 0),
                grace_ms=grace_ms,
            ),
        )

    def process(self, record: Record) -> None:
        if record.key is None or record.value is None or not self._waiting.put(record, self.context.current):
            super().process(record)
            return
        at_hand = self.context.current
        for waited, row in self._waiting.take_due():
            self.context.current = row
            super().process(waited)
        self.context.current = at_hand


class TableChanges(Processor):
    """The table side: the table is already updated, and nothing is forwarded."""

    def process(self, record: Record) -> None:
        """Nothing."""

    @property
    def take_value(self) -> Forward | None:
        return self.process


def global_table_join(node: StreamGlobalTableJoin, context: TaskContext) -> tuple[Processor, ...]:
    """The stream side, and the table side, which does nothing."""
    return GlobalTableJoinProcessor(node, context), TableChanges(node, context)


class GlobalTableJoinProcessor(StreamTableJoinProcessor):
    """Records without a key can be joined here; a null selected key means that there is no row."""

    def __init__(self, node: StreamGlobalTableJoin, context: TaskContext) -> None:
        super().__init__(node, context)
        self._selector = callable_of(node.selector, "key", "value")

    def row_key(self, key: Any, value: Any) -> Any:
        return self._selector(key, value)
