"""Joins of a stream with a table: each record meets the row of its key as it is at that moment.

Only records of the stream give results; a change of the table alone gives none. `global_table_join` is the same with a
key that is read from the record. Start at `StreamTableJoinProcessor`.
"""

from __future__ import annotations

from typing import Any

from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.joiners import joiner_of
from moldau.pipeline.cores.processor import Forward, Processor
from moldau.pipeline.cores.records import Record
from moldau.pipeline.ir.nodes import JoinKind, StreamGlobalTableJoin, StreamTableJoin

__all__ = ["StreamTableJoinProcessor", "TableChanges", "stream_table_join"]

_new = tuple.__new__


def stream_table_join(node: StreamTableJoin, context: TaskContext) -> tuple[Processor, ...]:
    """The stream's side and the table's, which does nothing."""
    return StreamTableJoinProcessor(node, context), TableChanges(node, context)


class StreamTableJoinProcessor(Processor):
    """The stream's side of the join."""

    def __init__(self, node: StreamTableJoin | StreamGlobalTableJoin, context: TaskContext) -> None:
        super().__init__(node, context)
        self._joiner = joiner_of(node.joiner, has_key=node.has_key)
        self._is_left = node.kind is JoinKind.LEFT
        self._row = context.view(node.right).get

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        if value is None:
            self.context.drop(self.node, "null value")
            return
        row_key = self.row_key(key, value)
        if row_key is None and not self._is_left:
            self.context.drop(self.node, "null key")
            return
        row = None if row_key is None else self._row(row_key)
        if row is not None:
            self.forward(_new(Record, (key, self._joiner(key, value, row[0]), timestamp, headers)))
        elif self._is_left:
            self.forward(_new(Record, (key, self._joiner(key, value, None), timestamp, headers)))

    def row_key(self, key: Any, value: Any) -> Any:
        """Which row of the table a record meets."""
        return key


class TableChanges(Processor):
    """The table's side: the table itself is already up to date, and nothing follows."""

    def process(self, record: Record) -> None:
        """Nothing."""

    @property
    def take_value(self) -> Forward | None:
        return self.process
