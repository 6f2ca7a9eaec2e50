"""The part of aggregations and suppression in the table in `builders`. Start at `STATEFUL_BUILDERS`."""

from __future__ import annotations

from moldau.pipeline.cores.aggregation import AggregateProcessor, CountProcessor
from moldau.pipeline.cores.calls import callable_of
from moldau.pipeline.cores.closing_windows import WindowedProcessor
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.folding import Folding, folding_of
from moldau.pipeline.cores.processor import Builder, Processor
from moldau.pipeline.cores.session_aggregation import SessionProcessor
from moldau.pipeline.cores.sliding_aggregation import SlidingWindowProcessor
from moldau.pipeline.cores.suppression import SuppressProcessor
from moldau.pipeline.cores.table_aggregation import TableAggregateProcessor
from moldau.pipeline.cores.windowed_aggregation import TimeWindowProcessor
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.windows import SessionWindow, SlidingWindow, TimeWindow, UnlimitedWindow
from moldau.serdes.plain import IntegerSerde, LongSerde

__all__ = ["STATEFUL_BUILDERS"]

WINDOWED: dict[type[object], type[WindowedProcessor]] = {
    TimeWindow: TimeWindowProcessor,
    UnlimitedWindow: TimeWindowProcessor,
    SlidingWindow: SlidingWindowProcessor,
    SessionWindow: SessionProcessor,
}


def aggregate(node: ir.Aggregate, context: TaskContext) -> Processor:
    """The processor of an aggregation, by its window."""
    if node.window is not None:
        return WINDOWED[type(node.window)](node, context, folding_of(node.aggregator))
    if isinstance(node.aggregator, ir.Count) and isinstance(node.table.value_serde, LongSerde | IntegerSerde):
        return CountProcessor(node, context)
    return AggregateProcessor(node, context, folding_of(node.aggregator))


def cogroup(node: ir.Cogroup, context: TaskContext) -> tuple[Processor, ...]:
    """One processor for each grouped stream; all use the store and the cache of the first."""
    foldings = [
        Folding(
            node.initializer.call,
            callable_of(adder, "key", "value", "aggregate"),
            merge=None if node.merger is None else callable_of(node.merger, "key", "one", "other"),
        )
        for adder in node.adders
    ]
    if node.window is None:
        plain = AggregateProcessor(node, context, foldings[0])
        return (plain, *(AggregateProcessor(node, context, folding, plain) for folding in foldings[1:]))
    kind = WINDOWED[type(node.window)]
    first = kind(node, context, foldings[0])
    return (first, *(kind(node, context, folding, first, index) for index, folding in enumerate(foldings[1:], 1)))


STATEFUL_BUILDERS: dict[type[ir.Node], Builder] = {
    ir.Aggregate: aggregate,
    ir.AggregateTable: TableAggregateProcessor,
    ir.Cogroup: cogroup,
    ir.Suppress: SuppressProcessor,
}
