"""The table from node classes to the builders of their processors. A node without an entry cannot run in Python.

Sources and repartitionings at the edges of a sub-topology are linked by `pipeline.cores.wiring`. Start at `BUILDERS`.
"""

from __future__ import annotations

from moldau.pipeline.cores.aggregations.aggregation import AggregateProcessor, CountProcessor, TableAggregateProcessor
from moldau.pipeline.cores.aggregations.closing_windows import WindowedProcessor
from moldau.pipeline.cores.aggregations.folding import Folding, folding_of
from moldau.pipeline.cores.aggregations.session_aggregation import SessionProcessor
from moldau.pipeline.cores.aggregations.sliding_aggregation import SlidingWindowProcessor
from moldau.pipeline.cores.aggregations.suppression import SuppressProcessor
from moldau.pipeline.cores.aggregations.windowed_aggregation import TimeWindowProcessor
from moldau.pipeline.cores.calls import callable_of
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.global_stores import GlobalStoreProcessor
from moldau.pipeline.cores.joins.foreign_key_join import (
    RowsProcessor,
    SubscribeProcessor,
    foreign_key_lookup,
    foreign_key_resolve,
)
from moldau.pipeline.cores.joins.stream_join import stream_join
from moldau.pipeline.cores.joins.stream_table_join import global_table_join, stream_table_join
from moldau.pipeline.cores.joins.table_join import table_join
from moldau.pipeline.cores.outputs import SinkProcessor
from moldau.pipeline.cores.processor import Builder, Processor
from moldau.pipeline.cores.processors import user_processor
from moldau.pipeline.cores.row_nodes import ROW_BUILDERS
from moldau.pipeline.cores.stateless import STATELESS_BUILDERS
from moldau.pipeline.cores.tables import TABLE_BUILDERS
from moldau.pipeline.cores.transform_values import TransformValuesProcessor
from moldau.pipeline.ir import foreign_key
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.windows import SessionWindow, SlidingWindow, TimeWindow, UnlimitedWindow
from moldau.serdes.plain import IntegerSerde, LongSerde

__all__ = ["BUILDERS"]

WINDOWED: dict[type[object], type[WindowedProcessor]] = {
    TimeWindow: TimeWindowProcessor,
    UnlimitedWindow: TimeWindowProcessor,
    SlidingWindow: SlidingWindowProcessor,
    SessionWindow: SessionProcessor,
}


def build_aggregation(node: ir.Aggregate, context: TaskContext) -> Processor:
    """The processor of an aggregation, by its window."""
    if node.window is not None:
        return WINDOWED[type(node.window)](node, context, folding_of(node.aggregator, context.processing_log))
    if isinstance(node.aggregator, ir.Count) and isinstance(node.table.value_serde, LongSerde | IntegerSerde):
        return CountProcessor(node, context)
    return AggregateProcessor(node, context, folding_of(node.aggregator, context.processing_log))


def build_cogroup(node: ir.Cogroup, context: TaskContext) -> tuple[Processor, ...]:
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


BUILDERS: dict[type[ir.Node], Builder] = {
    **STATELESS_BUILDERS,
    **TABLE_BUILDERS,
    **ROW_BUILDERS,
    # aggregations and suppression
    ir.Aggregate: build_aggregation,
    ir.AggregateTable: TableAggregateProcessor,
    ir.Cogroup: build_cogroup,
    ir.Suppress: SuppressProcessor,
    # joins
    ir.StreamStreamJoin: stream_join,
    ir.StreamTableJoin: stream_table_join,
    ir.StreamGlobalTableJoin: global_table_join,
    ir.TableTableJoin: table_join,
    foreign_key.ForeignKeyRows: RowsProcessor,
    foreign_key.ForeignKeySubscribe: SubscribeProcessor,
    foreign_key.ForeignKeyLookup: foreign_key_lookup,
    foreign_key.ForeignKeyResolve: foreign_key_resolve,
    # processors that users write
    ir.Process: user_processor,
    ir.GlobalStoreSource: GlobalStoreProcessor,
    ir.TableTransformValues: TransformValuesProcessor,
    ir.Sink: SinkProcessor,
}
