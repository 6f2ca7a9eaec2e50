"""Which topologies Spark can run without Python, decided by their nodes and settings alone.

An expression may still turn out to have no native form when it is lowered. Start at `native_aggregate`.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.pipeline.cores.handlers import log_and_continue, log_and_fail
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.expressions import Call
from moldau.pipeline.ir.expressions import Column as ColumnOf
from moldau.pipeline.ir.functions import Function, PythonFunction
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.spark.native_expressions import NotNativeError

__all__ = ["NativeRefusalError", "built_in", "functions_of", "native_aggregate"]


class NativeRefusalError(NotNativeError):
    """A topology cannot run without Python; the message names the node, the user's line and the reason."""

    def __init__(self, node: ir.Node, reason: str) -> None:
        super().__init__(f"{type(node).__name__} {node.name} ({node.origin}): {reason}")
        self.node = node
        self.reason = reason


_NATIVE = (ir.StreamSource, ir.Filter, ir.Map, ir.MapValues, ir.SelectKey, ir.Merge, ir.Split, ir.BranchOutput, ir.Sink)
_BEFORE_AGGREGATE = (ir.Repartition,)
_AFTER_AGGREGATE = (ir.Aggregate, ir.ToStream)


def native_aggregate(topology: Topology, settings: TaskSettings) -> ir.Aggregate | None:
    """The aggregation of a topology that may run natively, if it has one; raises `NativeRefusalError` for others."""
    aggregates = [node for node in topology.nodes if isinstance(node, ir.Aggregate)]
    for node in topology.nodes:
        _check(node, settings, has_aggregate=bool(aggregates))
    for other in aggregates[1:]:
        raise NativeRefusalError(other, "Spark emits one change per key and batch from one aggregation only")
    if len({_reading(source) for source in topology.sources}) > 1:
        raise NativeRefusalError(topology.sources[1], "sources differ in how they are read")
    return aggregates[0] if aggregates else None


def _reading(source: ir.Source) -> tuple[object, ...]:
    return source.topic_pattern, source.offset_reset


def _check(node: ir.Node, settings: TaskSettings, *, has_aggregate: bool) -> None:
    kinds = (*_NATIVE, *_BEFORE_AGGREGATE, *_AFTER_AGGREGATE) if has_aggregate else _NATIVE
    if not isinstance(node, kinds):
        raise NativeRefusalError(node, "runs in Python only")
    for function in functions_of(node):
        if isinstance(function, PythonFunction):
            raise NativeRefusalError(node, "calls a Python function; an expression could run inside Spark")
    if settings.deserialization_handler not in (log_and_fail, log_and_continue):
        raise NativeRefusalError(node, "the deserialization exception handler is a Python function")
    if settings.dead_letter_topic is not None:
        raise NativeRefusalError(node, "dead letters are written by Python only")
    match node:
        case ir.Source() if node.timestamps is not None:
            raise NativeRefusalError(node, "a timestamp extractor is a Python function")
        case ir.Sink() if node.topic is None or node.partitioner is not None:
            raise NativeRefusalError(node, "the topic or partition of each record is chosen by Python")
        case ir.Repartition() if node.partitioner is not None:
            raise NativeRefusalError(node, "the partition of each record is chosen by Python")
        case ir.Aggregate():
            _check_aggregate(node, settings)


def _check_aggregate(node: ir.Aggregate, settings: TaskSettings) -> None:
    if node.window is not None:
        raise NativeRefusalError(node, "windows close by the stream time of each partition, which Spark does not know")
    if not settings.is_caching or not node.table.is_caching:
        raise NativeRefusalError(node, "caching is off: every change is told, and Spark tells one per key and batch")
    if not isinstance(node.aggregator, ir.Count) and built_in(node) is None:
        raise NativeRefusalError(node, "only counts, and sums, minima and maxima as expressions, are Spark's own")


def functions_of(node: ir.Node) -> Iterable[Function]:
    match node:
        case ir.Filter():
            return (node.predicate,)
        case ir.Map() | ir.MapValues():
            return (node.mapper,)
        case ir.SelectKey():
            return (node.selector,)
        case ir.Split():
            return node.predicates
        case ir.ToStream() if node.selector is not None:
            return (node.selector,)
        case _:
            return ()


def built_in(node: ir.Aggregate) -> str | None:
    """The Spark function that is the same as a reducer of the form (aggregate op value)."""
    adder = node.aggregator.adder if isinstance(node.aggregator, ir.Reduce) else None
    if not isinstance(adder, Call) or len(adder.arguments) != 2:
        return None
    names = {argument.name for argument in adder.arguments if isinstance(argument, ColumnOf)}
    if names != {"aggregate", "value"}:
        return None
    return {"+": "sum", "LEAST": "min", "GREATEST": "max"}.get(adder.function)
