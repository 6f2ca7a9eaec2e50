"""Aggregations of a table grouped by another key: each change subtracts the old row and adds the new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic

from moldau.pipeline.dsl.counting import counting
from moldau.pipeline.dsl.functions import Described, callable_of, function_of
from moldau.pipeline.dsl.graph import REPARTITION_SUFFIX, Graph, Part
from moldau.pipeline.dsl.ktable import KTable
from moldau.pipeline.dsl.options.given import option_of
from moldau.pipeline.dsl.options.materialized import Materialized
from moldau.pipeline.dsl.options.named import Named, name_of
from moldau.pipeline.ir.nodes import AggregateTable, Aggregator, Count, Fold, Node, Reduce, Repartition
from moldau.pipeline.ir.origin import callers_origin
from moldau.pipeline.ir.type_variables import VR, K, V

__all__ = ["KGroupedTable"]


class KGroupedTable(Generic[K, V]):
    """A table grouped by another key; call `count`, `reduce` or `aggregate` on it."""

    def __init__(self, graph: Graph, node: Node, keys: Part, values: Part, *, name: str | None) -> None:
        self._graph = graph
        self._node = node
        self._keys = keys
        self._values = values
        self._repartition_name = name
        self._repartition: Repartition | None = None

    def count(self, materialized: Materialized | None = None, named: Named | str | None = None) -> KTable[K, int]:
        """Count the rows of each group."""
        return self._fold(Count(), "KTABLE-AGGREGATE-", counting(materialized), named)

    def reduce(
        self,
        adder: Callable[[V, V], V] | Described,
        subtractor: Callable[[V, V], V] | Described,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable[K, V]:
        """Combine the rows of each group with `adder` (aggregate, new value) and `subtractor` (aggregate, old value).

        Each returns the new aggregate.
        """
        options = option_of(materialized, Materialized).or_serdes(None, self._values.serde)
        reduce = Reduce(
            function_of(adder, "the adder of reduce", "aggregate", "value"),
            function_of(subtractor, "the subtractor of reduce", "aggregate", "value"),
        )
        return self._fold(reduce, "KTABLE-REDUCE-", options, named)

    def aggregate(
        self,
        initializer: Callable[[], VR],
        adder: Callable[[K, V, VR], VR] | Described,
        subtractor: Callable[[K, V, VR], VR] | Described,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable[K, VR]:
        """Aggregate the rows of each group with `adder` and `subtractor` (key, value, aggregate).

        `initializer` () returns the first aggregate. A row that moves to another group is subtracted from the old group
        and added to the new one.

            accounts.group_by(by_branch, grouped).aggregate(int, lambda key, balance, total: total + balance,
                                                            lambda key, balance, total: total - balance)
        """
        fold = Fold(
            callable_of(initializer, "the initializer of aggregate"),
            function_of(adder, "the adder of aggregate", "key", "value", "aggregate"),
            function_of(subtractor, "the subtractor of aggregate", "key", "value", "aggregate"),
        )
        return self._fold(fold, "KTABLE-AGGREGATE-", option_of(materialized, Materialized), named)

    def _fold(
        self, aggregator: Aggregator, prefix: str, options: Materialized, named: Named | str | None
    ) -> KTable[K, Any]:
        graph, given = self._graph, name_of(named)
        options = options.or_serdes(self._keys.serde, None)
        table = options.under(graph.claim_store(options.store_name or graph.names.store("KTABLE-AGGREGATE-")))
        sink = graph.names.suffixed_or_next(given, "-sink", "KSTREAM-SINK-")
        source = graph.names.suffixed_or_next(given, "-source", "KSTREAM-SOURCE-")
        name = graph.names.given_or_next(given, prefix)
        if self._repartition is None or self._repartition_name is None:
            self._repartition = graph.add(self._repartition_for(sink, source, table.store))
        node = AggregateTable(
            name=name, origin=callers_origin(), input=self._repartition, aggregator=aggregator, table=table
        )
        graph.add(node)
        store = table.store if table.is_queryable else None
        return KTable(graph, node, Part.of(options.key_serde), Part.of(options.value_serde), store=store)

    def _repartition_for(self, sink: str, source: str, store: str) -> Repartition:
        return Repartition(
            name=source,
            origin=callers_origin(),
            parts=(sink, source),
            input=self._node,
            topic=(self._repartition_name or store) + REPARTITION_SUFFIX,
            key_serde=self._keys.key_serde(),
            value_serde=self._values.value_serde(),
            carries_changes=True,
        )
