"""A foreign-key join as three steps with two repartitionings between them. Start at `lower_foreign_key_joins`."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.pipeline.ir.foreign_key import (
    ForeignKeyLookup,
    ForeignKeyResolve,
    ForeignKeySubscribe,
    Response,
    ResponseSerde,
    SubscriptionSerde,
)
from moldau.pipeline.ir.functions import PythonFunction
from moldau.pipeline.ir.nodes import ForeignKeyJoin, Materialization, Node, Repartition
from moldau.pipeline.ir.rewrites.rebuilding import rebuilt
from moldau.pipeline.ir.serdes import BytesSerde

__all__ = ["lower_foreign_key_joins"]


def lower_foreign_key_joins(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Replace every `ForeignKeyJoin`; the step that gives the rows keeps its name."""
    return rebuilt(nodes, lambda node: _steps(node) if isinstance(node, ForeignKeyJoin) else (node,))


def _steps(join: ForeignKeyJoin) -> tuple[Node, ...]:
    subscribe = ForeignKeySubscribe(
        name=f"{join.name}-subscribe",
        origin=join.origin,
        input=join.left,
        extractor=join.extractor,
        extractor_has_key=join.extractor_has_key,
        kind=join.kind,
        left_table=join.left_table,
        foreign_key_serde=join.right_table.key_serde,
    )
    subscriptions = Repartition(
        name=f"{join.name}-subscriptions",
        origin=join.origin,
        input=subscribe,
        topic=join.subscription_topic,
        key_serde=join.right_table.key_serde,
        value_serde=SubscriptionSerde(),
        partitioner=_without_value(join.right_partitioner),
        copartitioned_with=join.right,
    )
    lookup = ForeignKeyLookup(
        name=f"{join.name}-lookup",
        origin=join.origin,
        left=subscriptions,
        right=join.right,
        joiner=join.joiner,
        kind=join.kind,
        has_key=join.has_key,
        left_table=join.left_table,
        right_table=join.right_table,
        subscriptions=Materialization(
            store=join.subscriptions, key_serde=BytesSerde(), value_serde=SubscriptionSerde(), is_caching=False
        ),
    )
    responses = Repartition(
        name=f"{join.name}-responses",
        origin=join.origin,
        input=lookup,
        topic=join.response_topic,
        key_serde=join.left_table.key_serde,
        value_serde=ResponseSerde(),
        partitioner=_without_value(join.left_partitioner) or PythonFunction(primary_partition, join.origin),
        copartitioned_with=join.left,
    )
    resolve = ForeignKeyResolve(
        name=join.name,
        origin=join.origin,
        parts=join.parts,
        input=responses,
        joiner=join.joiner,
        has_key=join.has_key,
        kind=join.kind,
        left_table=join.left_table,
        right_table=join.right_table,
        table=join.table,
    )
    return subscribe, subscriptions, lookup, responses, resolve


def primary_partition(topic: str, key: object, response: Response, count: int) -> int:
    """Back to where the left row is, however its topic was partitioned."""
    return response.primary_partition


def _without_value(partitioner: PythonFunction | None) -> PythonFunction | None:
    """A user's partitioner sees keys only: what travels here are not their values."""
    if partitioner is None:
        return None
    call = partitioner.call
    return PythonFunction(lambda topic, key, value, count: call(topic, key, None, count), partitioner.origin)
