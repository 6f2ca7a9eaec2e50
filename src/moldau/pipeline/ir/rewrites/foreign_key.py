"""Lower a foreign-key join to its steps with repartitionings between them. Start at `lower_foreign_key_joins`."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from moldau.pipeline.ir.foreign_key import (
    ForeignKeyLookup,
    ForeignKeyResolve,
    ForeignKeyRows,
    ForeignKeySubscribe,
    LeftRow,
    LeftRowSerde,
    Response,
    ResponseSerde,
    SubscriptionSerde,
)
from moldau.pipeline.ir.functions import PythonFunction
from moldau.pipeline.ir.nodes import ForeignKeyJoin, Materialization, Node, Repartition
from moldau.pipeline.ir.rewrites.rebuilding import rebuild
from moldau.serdes.plain import BytesSerde
from moldau.serdes.serde import Serde

__all__ = ["lower_foreign_key_joins"]


def lower_foreign_key_joins(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Replace every `ForeignKeyJoin`; the step that emits the result keeps its name."""
    return rebuild(nodes, lambda node: _steps(node) if isinstance(node, ForeignKeyJoin) else (node,))


def _steps(join: ForeignKeyJoin) -> tuple[Node, ...]:
    rows, rows_there = _rows(join)
    subscribe, subscriptions = _subscriptions(join)
    lookup, responses = _answers(join, subscriptions)
    resolve = _resolve(join, rows_there, responses)
    # Rows go first: if both tables are the same, a row must arrive before the responses that its change causes.
    return rows, subscribe, rows_there, subscriptions, lookup, responses, resolve


def _rows(join: ForeignKeyJoin) -> tuple[ForeignKeyRows, Repartition]:
    """The step that sends left rows, and its repartitioning."""
    rows = ForeignKeyRows(name=f"{join.name}-rows", origin=join.origin, input=join.left, left_table=join.left_table)
    return rows, _to_left_rows(join, rows, "rows-there", f"{join.response_topic}-rows", LeftRowSerde())


def _subscriptions(join: ForeignKeyJoin) -> tuple[ForeignKeySubscribe, Repartition]:
    """The step that sends subscriptions, and its repartitioning to the right table."""
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
    there = Repartition(
        name=f"{join.name}-subscriptions",
        origin=join.origin,
        input=subscribe,
        topic=join.subscription_topic,
        key_serde=join.right_table.key_serde,
        value_serde=SubscriptionSerde(),
        partitioner=_without_value(join.right_partitioner),
        copartitioned_with=join.right,
    )
    return subscribe, there


def _answers(join: ForeignKeyJoin, subscriptions: Node) -> tuple[ForeignKeyLookup, Repartition]:
    """The step that sends responses, and its repartitioning back to the left keys."""
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
        subscriptions=_internal(join.subscriptions),
    )
    return lookup, _to_left_rows(join, lookup, "responses", join.response_topic, ResponseSerde())


def _resolve(join: ForeignKeyJoin, rows: Node, responses: Node) -> ForeignKeyResolve:
    return ForeignKeyResolve(
        name=join.name,
        origin=join.origin,
        parts=join.parts,
        left=rows,
        right=responses,
        joiner=join.joiner,
        has_key=join.has_key,
        kind=join.kind,
        left_table=join.left_table,
        right_table=join.right_table,
        rows=_internal(f"{join.subscriptions}-rows"),
        table=join.table,
    )


def _to_left_rows(join: ForeignKeyJoin, source: Node, what: str, topic: str, serde: Serde) -> Repartition:
    return Repartition(
        name=f"{join.name}-{what}",
        origin=join.origin,
        input=source,
        topic=topic,
        key_serde=join.left_table.key_serde,
        value_serde=serde,
        partitioner=PythonFunction(primary_partition, join.origin),
        copartitioned_with=join.left,
    )


def _internal(store: str) -> Materialization:
    return Materialization(store=store, key_serde=BytesSerde(), value_serde=BytesSerde(), is_caching=False)


def primary_partition(topic: str, key: object, value: Response | LeftRow, count: int) -> int:
    """The partition of the left row, whatever partitioner its topic uses."""
    return value.primary_partition


def _without_value(partitioner: PythonFunction | None) -> PythonFunction | None:
    """A user's partitioner called with the key only: the values here are internal messages, not the user's."""
    if partitioner is None:
        return None
    call = partitioner.call

    def one_partition(topic: str, key: object, value: object, count: int) -> int | None:
        chosen = call(topic, key, None, count)
        if isinstance(chosen, Collection):
            if len(chosen) != 1:
                raise ValueError(f"a foreign-key join needs one partition for each key, and {chosen!r} was chosen")
            (chosen,) = chosen
        partition: int | None = chosen
        return partition

    return PythonFunction(one_partition, partitioner.origin)
