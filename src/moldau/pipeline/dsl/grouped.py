"""Aggregations of streams grouped by key: count, reduce, aggregate.

Grouping alone moves no records. If the key may have changed, each aggregation first repartitions them, as in Kafka
Streams. `windowed` does the same per window; `cogrouped` aggregates several grouped streams into one table. Start at
`KGroupedStream`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, overload

from moldau.pipeline.dsl.counting import burn_number_of_count, counting
from moldau.pipeline.dsl.functions import Described, Given, callable_of, function_of
from moldau.pipeline.dsl.graph import Graph, Part, repartition_node
from moldau.pipeline.dsl.ktable import KTable
from moldau.pipeline.dsl.options.given import option_of
from moldau.pipeline.dsl.options.hints import FOLD_FIRST, Hinting
from moldau.pipeline.dsl.options.materialized import Materialized
from moldau.pipeline.dsl.options.named import Named, name_of
from moldau.pipeline.dsl.options.windows import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows, Windows
from moldau.pipeline.dsl.windowed import (
    SessionWindowedKStream,
    TimeWindowedKStream,
    checked_windows,
    windowed_keys,
)
from moldau.pipeline.ir.expressions import Expression
from moldau.pipeline.ir.functions import Function
from moldau.pipeline.ir.inference import with_types
from moldau.pipeline.ir.nodes import (
    Aggregate,
    Aggregator,
    Count,
    EmitStrategy,
    Fold,
    Node,
    Reduce,
    Repartition,
)
from moldau.pipeline.ir.origin import callers_origin
from moldau.pipeline.ir.type_variables import VR, K, V

if TYPE_CHECKING:
    from moldau.pipeline.dsl.cogrouped import CogroupedKStream

__all__ = ["KGroupedStream"]


class KGroupedStream(Hinting, Generic[K, V]):
    """A stream grouped by key; call `count`, `reduce` or `aggregate` on it, also per window (`windowed_by`)."""

    hints: ClassVar[dict[str, str]] = dict.fromkeys(("to", "to_stream", "filter", "map_values", "join"), FOLD_FIRST)

    def __init__(
        self, graph: Graph, node: Node, keys: Part, values: Part, *, has_new_keys: bool, name: str | None
    ) -> None:
        self.graph = graph
        self.node = node
        self.keys = keys
        self.values = values
        self.has_new_keys = has_new_keys
        self.repartition_name = name
        self._repartition: Repartition | None = None

    def count(self, materialized: Materialized | None = None, named: Named | str | None = None) -> KTable[K, int]:
        """Count the records of each key; records with a null value are not counted."""
        burn_number_of_count(self.graph, materialized)
        return self._fold(Count(), "KSTREAM-AGGREGATE-", counting(materialized), named)

    def reduce(
        self,
        reducer: Callable[[V, V], V] | Described,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable[K, V]:
        """Combine the values of each key: `reducer` (aggregate, value) returns the new aggregate.

        The first value of a key is its first aggregate, so values and aggregates have the same type.

        `readings.group_by_key().reduce(max)`
        """
        options = option_of(materialized, Materialized).or_serdes(None, self.values.serde)
        return self._fold(self.reducing(reducer), "KSTREAM-REDUCE-", options, named)

    def aggregate(
        self,
        initializer: Callable[[], VR],
        aggregator: Callable[[K, V, VR], VR] | Described,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable[K, VR]:
        """Aggregate the values of each key: `aggregator` (key, value, aggregate) returns the new aggregate.

        `initializer` () returns the first aggregate, which may have another type than the values.

        `amounts.group_by_key().aggregate(float, lambda key, amount, total: total + amount)`
        """
        fold = self.folding(initializer, aggregator, None)
        return self._fold(fold, "KSTREAM-AGGREGATE-", option_of(materialized, Materialized), named)

    def cogroup(self, aggregator: Callable[[K, V, VR], VR] | Described) -> CogroupedKStream[K, VR]:
        """Aggregate this stream and others into one table; `aggregator` (key, value, aggregate) is for this stream.

        `carts.cogroup(add_to_cart).cogroup(orders, place_order).aggregate(dict)`
        """
        from moldau.pipeline.dsl.cogrouped import CogroupedKStream

        return CogroupedKStream[K, VR](self.graph).cogroup(self, aggregator)

    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedKStream[K, V]: ...

    @overload
    def windowed_by(self, windows: TimeWindows | SlidingWindows | UnlimitedWindows) -> TimeWindowedKStream[K, V]: ...

    def windowed_by(self, windows: Windows) -> TimeWindowedKStream[K, V] | SessionWindowedKStream[K, V]:
        """Aggregate per key and window instead of per key.

        `visits.group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(timedelta(minutes=1))).count()`
        """
        windows = checked_windows(windows)
        if isinstance(windows, SessionWindows):
            return SessionWindowedKStream(self, windows)
        return TimeWindowedKStream(self, windows)

    def reducing(self, reducer: Given) -> Reduce:
        """The aggregator of `reduce`, with windows or without."""
        return Reduce(self.with_types(function_of(reducer, "reduce", "aggregate", "value")))

    def folding(self, initializer: Callable[[], Any], aggregator: Given, merger: Given | None) -> Fold:
        """The aggregator of `aggregate`, with windows or without."""
        return Fold(
            callable_of(initializer, "the initializer of aggregate"),
            self.with_types(function_of(aggregator, "aggregate", "key", "value", "aggregate")),
            merger=None if merger is None else function_of(merger, "the session merger", "key", "one", "other"),
        )

    def with_types(self, function: Function) -> Function:
        """The function with its types filled in if it is an expression; a Python function is returned unchanged."""
        if not isinstance(function, Expression):
            return function
        return with_types(function, {"key": self.keys.type, "value": self.values.type})

    def _fold(
        self, aggregator: Aggregator, prefix: str, options: Materialized, named: Named | str | None
    ) -> KTable[K, Any]:
        return self.fold(aggregator, prefix, options, named, windows=None, emit=EmitStrategy.ON_UPDATE)

    def fold(
        self,
        aggregator: Aggregator,
        prefix: str,
        options: Materialized,
        named: Named | str | None,
        *,
        windows: Windows | None,
        emit: EmitStrategy,
    ) -> KTable:
        """Add an aggregation to the graph and return its table; all methods of grouped streams call this."""
        graph = self.graph
        options = options.or_serdes(self.keys.serde, None)
        if windows is not None:
            options = options.with_least_retention(windows.least_retention_ms)
        store = graph.claim_store(options.store_name or graph.names.store(prefix))
        name = graph.names.given_or_next(name_of(named), prefix)
        table = options.under(store)
        node = Aggregate(
            name=name,
            origin=callers_origin(),
            input=self.where_keys_belong(store),
            aggregator=aggregator,
            table=table,
            window=None if windows is None else windows.ir_window,
            emit=emit,
        )
        graph.add(node)
        keys = Part.of(windowed_keys(options.key_serde, windows))
        values = Part.of(options.value_serde)
        return KTable(graph, node, keys, values, store=store if table.is_queryable else None)

    def where_keys_belong(self, store: str) -> Node:
        """This stream's node, repartitioned if its key may have changed.

        Several aggregations share one repartition node if the user has named it.
        """
        if not self.has_new_keys:
            return self.node
        node = self.repartition_for(store)
        if self._repartition is None or self.repartition_name is None:
            self._repartition = self.graph.add(node)
        return self._repartition

    def repartition_for(self, store: str) -> Repartition:
        """A repartition node for this stream, named by the user or after `store`, and not yet in the graph."""
        prefix = self.repartition_name or store
        return repartition_node(self.graph, self.node, prefix, keys=self.keys, values=self.values)
