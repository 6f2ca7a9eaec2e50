"""The joins of a table with another table: by key, or by a foreign key in its rows.

`KTable` has the methods. Start at `join_tables`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.pipeline.dsl.functions import Given, WithKey, keyed_function_of
from moldau.pipeline.dsl.graph import Part
from moldau.pipeline.dsl.options.given import option_of
from moldau.pipeline.dsl.options.joins import TableJoined
from moldau.pipeline.dsl.options.materialized import Materialized
from moldau.pipeline.dsl.options.operators import partitioner_of
from moldau.pipeline.dsl.stream_joins import METHOD, typed_joiner
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.expressions import Expression
from moldau.pipeline.ir.inference import with_types
from moldau.pipeline.ir.nodes import ForeignKeyJoin, JoinKind, Materialization, TableTableJoin
from moldau.pipeline.ir.origin import callers_origin

if TYPE_CHECKING:
    from moldau.pipeline.dsl.ktable import KTable

__all__ = ["join_on_foreign_key", "join_tables"]

FOREIGN_KEY = "KTABLE-FK-JOIN-"


def join_tables(
    left: KTable,
    right: KTable,
    joiner: Given | WithKey,
    kind: JoinKind,
    *,
    materialized: Materialized | None,
    name: str | None,
) -> KTable:
    """Join the rows of two tables that have the same key."""
    _check_other(left, right, METHOD[kind])
    graph = left.graph
    function, has_key = typed_joiner(joiner, METHOD[kind], left.keys, left.values, right.values)
    table = None
    if materialized is not None:
        options = option_of(materialized, Materialized).or_serdes(left.keys.serde, None)
        table = options.under(graph.claim_store(options.store_name or graph.names.store("KTABLE-MERGE-")))
    merge = graph.names.given_or_next(name, "KTABLE-MERGE-")
    this = graph.names.suffixed_or_next(name, "-join-this", "KTABLE-JOINTHIS-")
    other = graph.names.suffixed_or_next(name, "-join-other", "KTABLE-JOINOTHER-")
    node = TableTableJoin(
        name=merge,
        origin=callers_origin(),
        parts=(this, other, merge),
        left=left.node,
        right=right.node,
        joiner=function,
        has_key=has_key,
        kind=kind,
        table=table,
    )
    return _result(left, graph.add(node), materialized, Part.made_by(function), table)


def join_on_foreign_key(
    left: KTable,
    right: KTable,
    extractor: Given | WithKey,
    joiner: Given | WithKey,
    *,
    kind: JoinKind,
    table_joined: TableJoined | None,
    materialized: Materialized | None,
) -> KTable:
    """Join each row of the left table with the row of the right table whose key it contains."""
    what = "foreign_key_join" if kind is JoinKind.INNER else "foreign_key_left_join"
    _check_other(left, right, what)
    graph, joined = left.graph, option_of(table_joined, TableJoined)
    finder, finder_has_key = keyed_function_of(extractor, f"the extractor of {what}", "value")
    if isinstance(finder, Expression):
        finder = with_types(finder, {"key": left.keys.type, "value": left.values.type})
    function, has_key = typed_joiner(joiner, what, left.keys, left.values, right.values)
    names = _foreign_key_names(left, joined.name)
    options = option_of(materialized, Materialized).or_serdes(left.keys.serde, None)
    table = options.under(graph.claim_store(options.store_name or graph.names.store(f"{FOREIGN_KEY}OUTPUT-")))
    node = ForeignKeyJoin(
        name=names["result"],
        origin=callers_origin(),
        parts=tuple(names[part] for part in _PARTS),
        left=left.node,
        right=right.node,
        joiner=function,
        has_key=has_key,
        kind=kind,
        extractor=finder,
        extractor_has_key=finder_has_key,
        left_table=_materialization_for_sending(left, names["store"]),
        right_table=_materialization_for_sending(right, names["store"]),
        subscriptions=graph.claim_store(names["store"]),
        subscription_topic=f"{names['registration']}-topic",
        response_topic=f"{names['response']}-topic",
        left_partitioner=partitioner_of(joined.partitioner),
        right_partitioner=partitioner_of(joined.other_partitioner),
        table=table,
    )
    return _result(left, graph.add(node), options, Part.made_by(function), table)


_PARTS = ("send", "subscription sink", "subscription source", "receive", "lookup", "answer",
          "response sink", "response source", "resolve", "result")  # fmt: skip


def _foreign_key_names(left: KTable, name: str | None) -> dict[str, str]:
    """The names of all parts of a foreign-key join, in the order in which Kafka Streams numbers them."""
    order = (
        ("registration", "-subscription-registration", f"{FOREIGN_KEY}SUBSCRIPTION-REGISTRATION-"),
        ("send", "-subscription-registration-processor", f"{FOREIGN_KEY}SUBSCRIPTION-REGISTRATION-"),
        ("subscription sink", "-subscription-registration-sink", "KTABLE-SINK-"),
        ("subscription source", "-subscription-registration-source", "KTABLE-SOURCE-"),
        ("store", "-subscription-store", f"{FOREIGN_KEY}SUBSCRIPTION-STATE-STORE-"),
        ("receive", "-subscription-receive", f"{FOREIGN_KEY}SUBSCRIPTION-PROCESSOR-"),
        ("lookup", "-subscription-join-foreign", f"{FOREIGN_KEY}SUBSCRIPTION-PROCESSOR-"),
        ("answer", "-foreign-join-subscription", f"{FOREIGN_KEY}SUBSCRIPTION-PROCESSOR-"),
        ("response", "-subscription-response", f"{FOREIGN_KEY}SUBSCRIPTION-RESPONSE-"),
        ("response sink", "-subscription-response-sink", "KTABLE-SINK-"),
        ("response source", "-subscription-response-source", "KTABLE-SOURCE-"),
        ("resolve", "-subscription-response-resolver", f"{FOREIGN_KEY}SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-"),
        ("result", "-result", f"{FOREIGN_KEY}OUTPUT-"),
    )
    return {part: left.graph.names.suffixed_or_next(name, suffix, prefix) for part, suffix, prefix in order}


def _materialization_for_sending(table: KTable, store: str) -> Materialization:
    """The serdes of a table's keys and values when they are sent to another partition."""
    return Materialization(
        store=store, key_serde=table.keys.key_serde(), value_serde=table.values.value_serde(), is_caching=False
    )


def _result(
    left: KTable, node: Any, materialized: Materialized | None, values: Part, table: Materialization | None
) -> KTable:
    from moldau.pipeline.dsl.ktable import KTable

    options = option_of(materialized, Materialized)
    store = table.store if table is not None and table.is_queryable else None
    keys = left.keys.or_of(options.key_serde)
    return KTable(left.graph, node, keys, values.or_of(options.value_serde), store=store)


def _check_other(left: KTable, right: Any, what: str) -> None:
    from moldau.pipeline.dsl.ktable import KTable

    if not isinstance(right, KTable):
        raise TopologyError(f"{what} of a table needs another table, not {type(right).__name__}", callers_origin())
    if right.graph is not left.graph:
        raise TopologyError("both sides of a join must come from the same StreamsBuilder", callers_origin())
