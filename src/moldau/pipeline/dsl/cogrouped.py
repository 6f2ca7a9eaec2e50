"""Several grouped streams aggregated into one table, each with its own function. Start at `CogroupedKStream`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, overload

from moldau.pipeline.dsl.functions import Described, Given, callable_of, function_of
from moldau.pipeline.dsl.graph import Graph, Part
from moldau.pipeline.dsl.grouped import KGroupedStream
from moldau.pipeline.dsl.ktable import KTable
from moldau.pipeline.dsl.options.given import option_of
from moldau.pipeline.dsl.options.materialized import Materialized
from moldau.pipeline.dsl.options.named import Named, name_of
from moldau.pipeline.dsl.options.windows import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows, Windows
from moldau.pipeline.dsl.windowed import checked_windows, windowed_keys
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.functions import Function
from moldau.pipeline.ir.nodes import Cogroup, Node
from moldau.pipeline.ir.origin import callers_origin
from moldau.pipeline.ir.type_variables import VO, K, V
from moldau.serdes.windowed import Windowed

__all__ = ["CogroupedKStream", "SessionWindowedCogroupedKStream", "TimeWindowedCogroupedKStream"]

AGGREGATE = "COGROUPKSTREAM-AGGREGATE-"


class CogroupedKStream(Generic[K, V]):
    """Several grouped streams, each with the function that adds its records to an aggregate of type `V`."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._groups: dict[KGroupedStream, Function] = {}
        self._sources: dict[KGroupedStream, Node] = {}

    def cogroup(
        self, grouped: KGroupedStream[K, VO], aggregator: Callable[[K, VO, V], V] | Described
    ) -> CogroupedKStream[K, V]:
        """Add a stream; `aggregator` (key, value, aggregate) returns the new aggregate for one of its records."""
        if not isinstance(grouped, KGroupedStream) or grouped.graph is not self._graph:
            raise TopologyError("cogroup takes a grouped stream of the same StreamsBuilder", callers_origin())
        self._groups[grouped] = grouped.with_types(function_of(aggregator, "cogroup", "key", "value", "aggregate"))
        return self

    def aggregate(
        self,
        initializer: Callable[[], V],
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable[K, V]:
        """Aggregate all the streams by key; `initializer` () returns the first aggregate."""
        return self.fold(initializer, None, materialized, named, windows=None)

    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedCogroupedKStream[K, V]: ...

    @overload
    def windowed_by(
        self, windows: TimeWindows | SlidingWindows | UnlimitedWindows
    ) -> TimeWindowedCogroupedKStream[K, V]: ...

    def windowed_by(
        self, windows: Windows
    ) -> TimeWindowedCogroupedKStream[K, V] | SessionWindowedCogroupedKStream[K, V]:
        """Aggregate per key and window."""
        windows = checked_windows(windows)
        if isinstance(windows, SessionWindows):
            return SessionWindowedCogroupedKStream(self, windows)
        return TimeWindowedCogroupedKStream(self, windows)

    def fold(
        self,
        initializer: Callable[[], Any],
        merger: Given | None,
        materialized: Materialized | None,
        named: Named | str | None,
        *,
        windows: Windows | None,
    ) -> KTable:
        """Add the aggregation to the graph and return its table."""
        graph, name = self._graph, name_of(named)
        options = option_of(materialized, Materialized).or_serdes(self._key_serde(), None)
        if windows is not None:
            options = options.with_least_retention(windows.least_retention_ms)
        table = options.under(graph.claim_store(options.store_name or graph.names.store(AGGREGATE)))
        inputs = tuple(self._source(grouped, table.store) for grouped in self._groups)
        parts = [graph.names.suffixed_or_next(name, f"-cogroup-agg-{nth}", AGGREGATE) for nth in range(len(inputs))]
        merge = graph.names.suffixed_or_next(name, "-cogroup-merge", "COGROUPKSTREAM-MERGE-")
        node = Cogroup(
            name=merge,
            origin=callers_origin(),
            parts=(*parts, merge),
            inputs=inputs,
            adders=tuple(self._groups.values()),
            initializer=callable_of(initializer, "the initializer of aggregate"),
            merger=None if merger is None else function_of(merger, "the session merger", "key", "one", "other"),
            table=table,
            window=None if windows is None else windows.ir_window,
        )
        graph.add(node)
        keys = Part.of(windowed_keys(options.key_serde, windows))
        store = table.store if table.is_queryable else None
        return KTable(graph, node, keys, Part.of(options.value_serde), store=store)

    def _source(self, grouped: KGroupedStream, store: str) -> Node:
        if not grouped.has_new_keys:
            return grouped.node
        node = grouped.repartition_for(store)
        if grouped not in self._sources:
            self._sources[grouped] = self._graph.add(node)
        return self._sources[grouped]

    def _key_serde(self) -> Any:
        return next((grouped.keys.serde for grouped in self._groups if grouped.keys.serde is not None), None)


class TimeWindowedCogroupedKStream(Generic[K, V]):
    """Several grouped streams, to be aggregated by time window."""

    def __init__(self, cogrouped: CogroupedKStream[K, V], windows: Windows) -> None:
        self._cogrouped = cogrouped
        self._windows = windows

    def aggregate(
        self,
        initializer: Callable[[], V],
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable[Windowed[K], V]:
        """Aggregate all the streams by key and window; `initializer` () returns the first aggregate."""
        return self._cogrouped.fold(initializer, None, materialized, named, windows=self._windows)


class SessionWindowedCogroupedKStream(Generic[K, V]):
    """Several grouped streams, to be aggregated by session."""

    def __init__(self, cogrouped: CogroupedKStream[K, V], windows: SessionWindows) -> None:
        self._cogrouped = cogrouped
        self._windows = windows

    def aggregate(
        self,
        initializer: Callable[[], V],
        session_merger: Callable[[K, V, V], V] | Described,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable[Windowed[K], V]:
        """Aggregate all the streams by key and session; `initializer` () returns the first aggregate.

        `session_merger` (key, one, other) merges the aggregates of two sessions when a record connects them.
        """
        return self._cogrouped.fold(initializer, session_merger, materialized, named, windows=self._windows)
