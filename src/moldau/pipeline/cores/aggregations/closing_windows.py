"""What all windowed aggregations share: how far time has come, and results that wait for their window to close.

Time is the largest timestamp this operator has seen, and it survives restarts. Start at `WindowedProcessor`.
"""

from __future__ import annotations

from typing import Any

from moldau.pipeline.cores.aggregations.folding import Folding
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.records import NO_TIMESTAMP, Change, Record
from moldau.pipeline.cores.table_processor import TableProcessor
from moldau.pipeline.ir import nodes as ir

__all__ = ["END_OF_TIME", "WindowedProcessor"]

END_OF_TIME = 2**63 - 1


class WindowedProcessor(TableProcessor):
    """Folds the records of a key within windows; each input of a cogroup has one, and its own time."""

    def __init__(
        self,
        node: ir.Aggregate | ir.Cogroup,
        context: TaskContext,
        folding: Folding,
        shared: WindowedProcessor | None = None,
        index: int = 0,
    ) -> None:
        self.emits_at_close = node.emit is ir.EmitStrategy.ON_WINDOW_CLOSE
        super().__init__(node, context, None if self.emits_at_close else node.table, shared)
        self.has_cache = self.is_caching
        """Whether a cache lies in front of the store, even if results do not wait in it."""
        self.folding = folding
        self.observed = context.cell(f"time of {node.name} {index}", NO_TIMESTAMP)
        self._told_until = context.cell(f"told by {node.name} {index}", NO_TIMESTAMP)

    def shown_ms(self, retention_ms: int) -> int | None:
        """How far back windows are in view: a cache shows what its store would hide."""
        if self.has_cache:
            return END_OF_TIME
        return retention_ms if self.emits_at_close else None

    def tell_closed(self, record: Record, close_time: int) -> None:
        """Forward the results of windows that have closed since the last time."""
        told_until: int = self._told_until.value
        if told_until not in (NO_TIMESTAMP,) and told_until >= close_time:
            return
        closed = self.closed(told_until, close_time)
        if closed is None:
            return
        for key, value, timestamp in closed:
            self.forward(Record(key, Change(value, None), timestamp, record.headers))
        self._told_until.value = close_time

    def closed(self, told_until: int, close_time: int) -> list[tuple[Any, Any, int]] | None:
        """Windowed key, value and time of results to tell; None where it is not worth looking."""
        raise NotImplementedError

    def drop_expired(self) -> None:
        """Count an update that came too late for its window."""
        self.context.drop(self.node, "expired window")
