"""Checks which nodes Spark can compute without Python, from the node and the settings alone.

An expression may still turn out to have no native form when it is lowered. `sections` uses these checks to decide what
runs natively. Start at `node_refusal` and `aggregate_refusal`.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.pipeline.cores.handlers import log_and_continue, log_and_fail
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.functions import Function, PythonFunction
from moldau.pipeline.spark.native.aggregates import native_aggregate
from moldau.pipeline.spark.native.expressions import NotNativeError
from moldau.pipeline.spark.native.serdes import READABLE
from moldau.pipeline.spark.native.sql.lowering import is_sql, sql_reason

__all__ = ["NativeRefusalError", "aggregate_refusal", "functions_of", "node_refusal"]


class NativeRefusalError(NotNativeError):
    """A node cannot run without Python; the message names the node, the user's line and the reason."""

    def __init__(self, node: ir.Node, reason: str) -> None:
        super().__init__(f"{type(node).__name__} {node.name}{node.origin.in_brackets}: {reason}")
        self.node = node
        self.reason = reason


_NATIVE = (
    ir.StreamSource,
    ir.Filter,
    ir.Map,
    ir.MapValues,
    ir.SelectKey,
    ir.Merge,
    ir.Split,
    ir.BranchOutput,
    ir.Repartition,
    ir.ToStream,
    ir.Sink,
)


def node_refusal(node: ir.Node, settings: TaskSettings) -> NativeRefusalError | None:
    """Why a node between a source and a sink needs Python; None if it does not."""
    reason = _reason(node, settings)
    return None if reason is None else NativeRefusalError(node, reason)


def _reason(node: ir.Node, settings: TaskSettings) -> str | None:
    if is_sql(node):
        return _sql_reason(node, settings)
    if not isinstance(node, _NATIVE):
        return "runs in Python only"
    if any(isinstance(function, PythonFunction) for function in functions_of(node)):
        return "calls a Python function; an expression could run inside Spark"
    if settings.dead_letter_topic is not None:
        return "dead letters are written by Python only"
    match node:
        case ir.Source():
            return _source_reason(node, settings)
        case ir.Sink() if node.topic is None or node.partitioner is not None:
            return "the topic or partition of each record is chosen by Python"
        case ir.Repartition() if node.partitioner is not None:
            return "the partition of each record is chosen by Python"
        case _:
            return None


def _sql_reason(node: ir.Node, settings: TaskSettings) -> str | None:
    if settings.dead_letter_topic is not None:
        return "dead letters are written by Python only"
    if isinstance(node, ir.Source) and settings.timestamps is not None:
        return "a timestamp extractor is a Python function"
    return sql_reason(node)


def _source_reason(node: ir.Source, settings: TaskSettings) -> str | None:
    if node.timestamps is not None or settings.timestamps is not None:
        return "a timestamp extractor is a Python function"
    if settings.deserialization_handler not in (log_and_fail, log_and_continue):
        return "the deserialization exception handler is a Python function"
    for serde in (node.key_serde, node.value_serde):
        if not isinstance(serde, READABLE):
            return f"{type(serde).__name__} has no native form"
    return None


def aggregate_refusal(node: ir.Aggregate, settings: TaskSettings) -> NativeRefusalError | None:
    """Why Spark cannot compute an aggregation natively; None if it can."""
    reason = _aggregate_reason(node, settings)
    return None if reason is None else NativeRefusalError(node, reason)


def _aggregate_reason(node: ir.Aggregate, settings: TaskSettings) -> str | None:
    if node.window is not None:
        return "windows close by the stream time of each partition, which Spark does not know"
    if not settings.is_caching or not node.table.is_caching:
        return "caching is off: every change is emitted, and Spark emits one per key and batch"
    if native_aggregate(node) is None:
        return "only counts, and sums, minima and maxima of whole numbers as expressions, are Spark's own"
    return None


def functions_of(node: ir.Node) -> Iterable[Function]:
    """The functions that a stateless node calls for each record."""
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
