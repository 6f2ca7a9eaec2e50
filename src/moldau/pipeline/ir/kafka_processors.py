"""The processors, sources and sinks that Kafka Streams would create for our nodes, for `describe()`.

One node here may be several there: a stream-stream join has five processors, a repartitioning is a filter, a sink and a
source. Names come from `Node.parts`. `describing` prints them. Start at `kafka_processors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from moldau.pipeline.ir.nodes import (
    Aggregate,
    AggregateTable,
    Cogroup,
    ForeignKeyJoin,
    GlobalStoreSource,
    GlobalTableSource,
    Materialization,
    Node,
    Process,
    Repartition,
    Sink,
    StreamGlobalTableJoin,
    StreamSource,
    StreamStreamJoin,
    StreamTableJoin,
    Suppress,
    TableSource,
    TableTableJoin,
    TableTransformValues,
    inputs_of,
)
from moldau.pipeline.ir.old_values import TableTraits, table_plan

__all__ = ["KafkaProcessor", "KafkaSink", "KafkaSource", "kafka_processors"]


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """A source node of topics; a global one feeds a store that all tasks share."""

    name: str
    topics: tuple[str, ...]
    pattern: str | None = None
    is_global: bool = False

    predecessors: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KafkaProcessor:
    """A processor node."""

    name: str
    predecessors: tuple[str, ...]
    stores: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KafkaSink:
    """A sink node; `topic` is None where it depends on the record."""

    name: str
    predecessors: tuple[str, ...]
    topic: str | None
    stores: tuple[str, ...] = ()


Part = KafkaSource | KafkaProcessor | KafkaSink


def kafka_processors(nodes: Iterable[Node]) -> list[Part]:
    """All parts in the order in which Kafka Streams adds them to its topology."""
    ordered = tuple(nodes)
    plan = table_plan(ordered)
    return [part for node in ordered for part in _parts(node, plan)]


Plan = dict[str, TableTraits]


def _parts(node: Node, plan: Plan) -> Iterator[Part]:
    expand = _EXPANSIONS.get(type(node))
    if expand is not None:
        yield from expand(node, plan)
    else:
        # A stream merged with itself feeds the merge once.
        sources = tuple(dict.fromkeys(source.name for source in inputs_of(node)))
        yield KafkaProcessor(node.name, sources, _own_stores(node, plan))


def _own_stores(node: Node, plan: Plan) -> tuple[str, ...]:
    stores: list[str] = []
    table = getattr(node, "table", None)
    if isinstance(table, Materialization) and plan[node.name].is_materialized:
        stores.append(table.store)
    if isinstance(node, Process | TableTransformValues):
        stores += [store.table.store for store in node.stores] + list(node.connected)
    if isinstance(node, Suppress):
        stores.append(node.buffer.store)
    return tuple(stores)


def _stores_to_look_into(node: Node, plan: Plan) -> tuple[str, ...]:
    """The stores that a lookup of a row of this table reads."""
    table = getattr(node, "table", None)
    if isinstance(node, Aggregate | AggregateTable | Cogroup):
        return (node.table.store,)
    if isinstance(table, Materialization) and plan[node.name].is_materialized:
        return (table.store,)
    behind = tuple(store for source in inputs_of(node) for store in _stores_to_look_into(source, plan))
    return (node.buffer.store, *behind) if isinstance(node, Suppress) else behind


def _stream_source(node: StreamSource, plan: Plan) -> Iterator[Part]:
    yield KafkaSource(node.name, node.topics, node.topic_pattern)


def _table_source(node: TableSource, plan: Plan) -> Iterator[Part]:
    source, table = node.parts or (f"{node.name}-source", node.name)
    yield KafkaSource(source, node.topics)
    yield KafkaProcessor(table, (source,), _own_stores(node, plan))


def _global_table_source(node: GlobalTableSource, plan: Plan) -> Iterator[Part]:
    source, table = node.parts or (f"{node.name}-source", node.name)
    yield KafkaSource(source, node.topics, is_global=True)
    yield KafkaProcessor(table, (source,), (node.table.store,))


def _repartition(node: Repartition, plan: Plan) -> Iterator[Part]:
    *null_filter, sink, source = node.parts or (f"{node.name}-sink", node.name)
    feeder = node.input.name
    for name in null_filter:
        yield KafkaProcessor(name, (feeder,))
        feeder = name
    yield KafkaSink(sink, (feeder,), node.topic)
    yield KafkaSource(source, (node.topic,))


def _stream_stream_join(node: StreamStreamJoin, plan: Plan) -> Iterator[Part]:
    this_windowed, other_windowed, this_join, other_join, merge = node.parts or _generated_names(node, 5)
    if node.is_self_join:
        yield KafkaProcessor(this_windowed, (node.left.name,), (node.left_store.store,))
        yield KafkaProcessor(merge, (this_windowed,), (node.left_store.store,))
        return
    outer = () if node.outer_store is None else (node.outer_store,)
    yield KafkaProcessor(this_windowed, (node.left.name,), (node.left_store.store,))
    yield KafkaProcessor(other_windowed, (node.right.name,), (node.right_store.store,))
    yield KafkaProcessor(this_join, (this_windowed,), (node.right_store.store, *outer))
    yield KafkaProcessor(other_join, (other_windowed,), (node.left_store.store, *outer))
    yield KafkaProcessor(merge, (this_join, other_join))


def _stream_table_join(node: StreamTableJoin, plan: Plan) -> Iterator[Part]:
    buffer = () if node.buffer is None else (node.buffer.store,)
    yield KafkaProcessor(node.name, (node.left.name,), (*buffer, *_stores_to_look_into(node.right, plan)))


def _stream_global_table_join(node: StreamGlobalTableJoin, plan: Plan) -> Iterator[Part]:
    yield KafkaProcessor(node.name, (node.left.name,))


def _table_table_join(node: TableTableJoin, plan: Plan) -> Iterator[Part]:
    this, other, merge = node.parts or _generated_names(node, 3)
    yield KafkaProcessor(this, (node.left.name,), _stores_to_look_into(node.right, plan))
    yield KafkaProcessor(other, (node.right.name,), _stores_to_look_into(node.left, plan))
    yield KafkaProcessor(merge, (this, other), _own_stores(node, plan))


def _foreign_key_join(node: ForeignKeyJoin, plan: Plan) -> Iterator[Part]:
    parts = node.parts or _generated_names(node, 10)
    send, out, back, receive, lookup, answer, response_out, response_back, resolve, result = parts
    yield KafkaProcessor(send, (node.left.name,))
    yield KafkaSink(out, (send,), node.subscription_topic)
    yield KafkaSource(back, (node.subscription_topic,))
    yield KafkaProcessor(receive, (back,), (node.subscriptions,))
    yield KafkaProcessor(lookup, (receive,), _stores_to_look_into(node.right, plan))
    yield KafkaProcessor(answer, (node.right.name,), (node.subscriptions,))
    yield KafkaSink(response_out, (lookup, answer), node.response_topic)
    yield KafkaSource(response_back, (node.response_topic,))
    yield KafkaProcessor(resolve, (response_back,), _stores_to_look_into(node.left, plan))
    yield KafkaProcessor(result, (resolve,), _own_stores(node, plan))


def _cogroup(node: Cogroup, plan: Plan) -> Iterator[Part]:
    *folds, merge = node.parts or _generated_names(node, len(node.inputs) + 1)
    for fold, source in zip(folds, node.inputs, strict=True):
        yield KafkaProcessor(fold, (source.name,), (node.table.store,))
    yield KafkaProcessor(merge, tuple(folds))


def _sink(node: Sink, plan: Plan) -> Iterator[Part]:
    yield KafkaSink(node.name, (node.input.name,), node.topic)


def _generated_names(node: Node, count: int) -> tuple[str, ...]:
    """Generated names for the parts of a node without `Node.parts`; downstream nodes follow the last one."""
    return (*(f"{node.name}-{nth}" for nth in range(1, count)), node.name)


_EXPANSIONS: dict[type[Node], Callable[[Any, Plan], Iterator[Part]]] = {
    StreamSource: _stream_source,
    TableSource: _table_source,
    GlobalTableSource: _global_table_source,
    GlobalStoreSource: _global_table_source,
    Repartition: _repartition,
    StreamStreamJoin: _stream_stream_join,
    StreamTableJoin: _stream_table_join,
    StreamGlobalTableJoin: _stream_global_table_join,
    TableTableJoin: _table_table_join,
    ForeignKeyJoin: _foreign_key_join,
    Cogroup: _cogroup,
    Sink: _sink,
}
