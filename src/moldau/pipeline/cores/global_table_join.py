"""Joins of a stream with a global table, by a key that is read from the record. Start at `GlobalTableJoinProcessor`."""

from __future__ import annotations

from typing import Any

from moldau.pipeline.cores.calls import callable_of
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.processor import Processor
from moldau.pipeline.cores.stream_table_join import StreamTableJoinProcessor, TableChanges
from moldau.pipeline.ir.nodes import StreamGlobalTableJoin

__all__ = ["GlobalTableJoinProcessor", "global_table_join"]


def global_table_join(node: StreamGlobalTableJoin, context: TaskContext) -> tuple[Processor, ...]:
    """The stream's side and the table's, which does nothing."""
    return GlobalTableJoinProcessor(node, context), TableChanges(node, context)


class GlobalTableJoinProcessor(StreamTableJoinProcessor):
    """A record without a key may join here; one whose selected key is null is as one without a row."""

    def __init__(self, node: StreamGlobalTableJoin, context: TaskContext) -> None:
        super().__init__(node, context)
        self._selector = callable_of(node.selector, "key", "value")

    def row_key(self, key: Any, value: Any) -> Any:
        return self._selector(key, value)
