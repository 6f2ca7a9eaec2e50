"""The base of windowed aggregations: the operator's stream time, and results emitted when their window closes.

Stream time is the largest timestamp this operator has seen; it survives restarts. Start at `WindowedProcessor`.
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
    """Aggregates the records of a key per window; each input of a cogroup has a processor with its own stream time."""

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
        """Whether the store has a cache, even if results are not held back in it."""
        self.folding = folding
        self.observed = context.cell(f"time of {node.name} {index}", NO_TIMESTAMP)
        # Names of cells are in checkpoints, so they must not change.
        self._emitted_until = context.cell(f"told by {node.name} {index}", NO_TIMESTAMP)

    def shown_ms(self, retention_ms: int) -> int | None:
        """How far back windows are visible: a cache shows entries that its store already hides."""
        if self.has_cache:
            return END_OF_TIME
        return retention_ms if self.emits_at_close else None

    def emit_closed(self, record: Record, close_time: int) -> None:
        """Forward the results of windows that have closed since the last call."""
        emitted_until: int = self._emitted_until.value
        if emitted_until not in (NO_TIMESTAMP,) and emitted_until >= close_time:
            return
        closed = self.closed_results(emitted_until, close_time)
        if closed is None:
            return
        for key, value, timestamp in closed:
            self.forward(Record(key, Change(value, None), timestamp, record.headers))
        self._emitted_until.value = close_time

    def closed_results(self, emitted_until: int, close_time: int) -> list[tuple[Any, Any, int]] | None:
        """Windowed key, value and timestamp of the results to emit; None where no window can have closed."""
        raise NotImplementedError

    def drop_expired(self) -> None:
        """Count a record that was dropped because its window has closed."""
        self.context.drop(self.node, "expired window")
