"""The part of aggregations and suppression in the table in `builders`."""

from __future__ import annotations

from moldau.pipeline.cores.aggregation import AggregateProcessor, CountProcessor
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.folding import folding_of
from moldau.pipeline.cores.processor import Builder, Processor
from moldau.pipeline.ir import nodes as ir

__all__ = ["STATEFUL_BUILDERS"]


def aggregate(node: ir.Aggregate, context: TaskContext) -> Processor:
    """The processor of an aggregation, by its window."""
    if isinstance(node.aggregator, ir.Count):
        return CountProcessor(node, context)
    return AggregateProcessor(node, context, folding_of(node.aggregator))


STATEFUL_BUILDERS: dict[type[ir.Node], Builder] = {
    ir.Aggregate: aggregate,
}
