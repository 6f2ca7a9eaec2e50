"""Streams grouped by key, and folded: count, reduce, aggregate, with windows or without.

Grouping itself does nothing; if keys may lie in the wrong partition, each fold first repartitions, as in Kafka Streams.
Several grouped streams fold into one table with `cogroup` (`cogrouped`). Start at `KGroupedStream`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from moldau.pipeline.dsl.functions import Given, callable_of, function_of
from moldau.pipeline.dsl.given_options import option_of
from moldau.pipeline.dsl.graph import Graph, Part, repartitioned
from moldau.pipeline.dsl.hints import Hinting
from moldau.pipeline.dsl.ktable import KTable
from moldau.pipeline.dsl.materialized import Materialized
from moldau.pipeline.dsl.options import Named, name_of
from moldau.pipeline.dsl.windows import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows, Windows
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.functions import Function, PythonFunction
from moldau.pipeline.ir.inference import typed
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
from moldau.pipeline.ir.serdes import DefaultSerde, LongSerde, Serde
from moldau.pipeline.ir.windowed_serdes import SessionWindowedSerde, TimeWindowedSerde

if TYPE_CHECKING:
    from moldau.pipeline.dsl.cogrouped import CogroupedKStream

__all__ = ["KGroupedStream", "SessionWindowedKStream", "TimeWindowedKStream", "windowed_keys"]


FOLD_FIRST = "fold the groups first, with count(), reduce(...) or aggregate(...)"


class KGroupedStream(Hinting):
    """Records by key, ready to be folded."""

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

    def count(self, materialized: Materialized | None = None, named: Named | str | None = None) -> KTable:
        """How many records each key has; those with a null value do not count."""
        burn_number_of_count(self.graph, materialized)
        return self._fold(Count(), "KSTREAM-AGGREGATE-", _counting(materialized), named)

    def reduce(
        self, reducer: Given, materialized: Materialized | None = None, named: Named | str | None = None
    ) -> KTable:
        """Combine the values of each key: `reducer` (aggregate, value) returns the next aggregate.

        The first value is the first aggregate, so both are of one type.
        """
        options = option_of(materialized, Materialized).or_serdes(None, self.values.serde)
        return self._fold(self._reduce(reducer), "KSTREAM-REDUCE-", options, named)

    def aggregate(
        self,
        initializer: Callable[[], Any],
        aggregator: Given,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable:
        """Fold the values of each key: `aggregator` (key, value, aggregate), starting with `initializer` ()."""
        fold = self._aggregate(initializer, aggregator, None)
        return self._fold(fold, "KSTREAM-AGGREGATE-", option_of(materialized, Materialized), named)

    def cogroup(self, aggregator: Given) -> CogroupedKStream:
        """Fold this stream together with others: `aggregator` (key, value, aggregate) is for this one."""
        from moldau.pipeline.dsl.cogrouped import CogroupedKStream

        return CogroupedKStream(self.graph).cogroup(self, aggregator)

    def windowed_by(self, windows: Windows) -> TimeWindowedKStream | SessionWindowedKStream:
        """Fold per key and window."""
        match windows:
            case SessionWindows():
                return SessionWindowedKStream(self, windows)
            case TimeWindows() | SlidingWindows() | UnlimitedWindows():
                return TimeWindowedKStream(self, windows)
            case _:
                raise TopologyError(
                    "windowed_by takes TimeWindows, SlidingWindows, SessionWindows or UnlimitedWindows, "
                    f"not {windows!r}",
                    callers_origin(),
                )

    def _reduce(self, reducer: Given) -> Reduce:
        return Reduce(self.typed(function_of(reducer, "reduce", "aggregate", "value")))

    def _aggregate(self, initializer: Callable[[], Any], aggregator: Given, merger: Given | None) -> Fold:
        return Fold(
            callable_of(initializer, "the initializer of aggregate"),
            self.typed(function_of(aggregator, "aggregate", "key", "value", "aggregate")),
            merger=None if merger is None else function_of(merger, "the session merger", "key", "one", "other"),
        )

    def typed(self, function: Function) -> Function:
        """A function's types, where it is an expression."""
        if isinstance(function, PythonFunction):
            return function
        return typed(function, {"key": self.keys.type, "value": self.values.type})

    def _fold(self, aggregator: Aggregator, prefix: str, options: Materialized, named: Named | str | None) -> KTable:
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
        """The table that an aggregation makes; what all methods of grouped streams come to."""
        graph = self.graph
        options = options.or_serdes(self.keys.serde, None)
        if windows is not None:
            options = options.retained(windows.least_retention_ms)
        store = graph.claim_store(options.store_name or graph.names.store(prefix))
        name = graph.names.chosen(name_of(named), prefix)
        table = options.under(store)
        node = Aggregate(
            name=name,
            origin=callers_origin(),
            input=self.where_keys_belong(store),
            aggregator=aggregator,
            table=table,
            window=None if windows is None else windows.declared,
            emit=emit,
        )
        graph.add(node)
        keys = Part.of(windowed_keys(options.key_serde, windows))
        values = Part.of(options.value_serde)
        return KTable(graph, node, keys, values, store=store if table.is_queryable else None)

    def where_keys_belong(self, store: str) -> Node:
        """This stream, repartitioned if it must be; a repartition topic that the user named serves several folds."""
        if not self.has_new_keys:
            return self.node
        node = self.repartition_for(store)
        if self._repartition is None or self.repartition_name is None:
            self._repartition = self.graph.add(node)
        return self._repartition

    def repartition_for(self, store: str) -> Repartition:
        """A repartitioning of this stream on its way to a store, not yet in the graph."""
        prefix = self.repartition_name or store
        return repartitioned(self.graph, self.node, prefix, keys=self.keys, values=self.values)


class _Windowed(Hinting):
    """What time windows and sessions have in common."""

    hints: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("to", "to_stream", "filter", "map_values", "join"), FOLD_FIRST),
        "suppress": "a table has it: " + FOLD_FIRST,
    }

    def __init__(self, grouped: KGroupedStream, windows: Windows, emit: EmitStrategy) -> None:
        self._grouped = grouped
        self._windows = windows
        self._emit = emit

    def count(self, materialized: Materialized | None = None, named: Named | str | None = None) -> KTable:
        """How many records each key has in each window; those with a null value do not count."""
        if not isinstance(self._windows, SlidingWindows):
            burn_number_of_count(self._grouped.graph, materialized)
        return self._fold(Count(), "KSTREAM-AGGREGATE-", _counting(materialized), named)

    def reduce(
        self, reducer: Given, materialized: Materialized | None = None, named: Named | str | None = None
    ) -> KTable:
        """Combine the values of each key and window: `reducer` (aggregate, value) returns the next aggregate."""
        options = option_of(materialized, Materialized).or_serdes(None, self._grouped.values.serde)
        return self._fold(self._grouped._reduce(reducer), "KSTREAM-REDUCE-", options, named)

    def _fold(self, aggregator: Aggregator, prefix: str, options: Materialized, named: Named | str | None) -> KTable:
        return self._grouped.fold(aggregator, prefix, options, named, windows=self._windows, emit=self._emit)


class TimeWindowedKStream(_Windowed):
    """Records by key and time window, ready to be folded."""

    def __init__(self, grouped: KGroupedStream, windows: Windows, emit: EmitStrategy = EmitStrategy.ON_UPDATE) -> None:
        super().__init__(grouped, windows, emit)

    def emit_strategy(self, emit: EmitStrategy) -> TimeWindowedKStream:
        """Tell every update of a window, or only its final result when it closes."""
        if emit is EmitStrategy.ON_WINDOW_CLOSE and isinstance(self._windows, UnlimitedWindows):
            raise TopologyError("an unlimited window never closes, so it cannot emit on close", callers_origin())
        return TimeWindowedKStream(self._grouped, self._windows, emit)

    def aggregate(
        self,
        initializer: Callable[[], Any],
        aggregator: Given,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable:
        """Fold each key's values per window: `aggregator` (key, value, aggregate), starting with `initializer` ()."""
        fold = self._grouped._aggregate(initializer, aggregator, None)
        return self._fold(fold, "KSTREAM-AGGREGATE-", option_of(materialized, Materialized), named)


class SessionWindowedKStream(_Windowed):
    """Records by key and session, ready to be folded."""

    def __init__(
        self, grouped: KGroupedStream, windows: SessionWindows, emit: EmitStrategy = EmitStrategy.ON_UPDATE
    ) -> None:
        super().__init__(grouped, windows, emit)
        self._sessions = windows

    def emit_strategy(self, emit: EmitStrategy) -> SessionWindowedKStream:
        """Tell every update of a session, or only its final result when it closes."""
        return SessionWindowedKStream(self._grouped, self._sessions, emit)

    def aggregate(
        self,
        initializer: Callable[[], Any],
        aggregator: Given,
        session_merger: Given,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable:
        """Fold each key's values per session; `session_merger` (key, one, other) joins two that grew together."""
        fold = self._grouped._aggregate(initializer, aggregator, session_merger)
        return self._fold(fold, "KSTREAM-AGGREGATE-", option_of(materialized, Materialized), named)


def windowed_keys(serde: Serde | None, windows: Windows | None) -> Serde | None:
    """The serde of a windowed table's keys, from that of the keys themselves."""
    match windows:
        case None:
            return serde
        case SessionWindows():
            return SessionWindowedSerde(serde or DefaultSerde("key"))
        case _:
            return TimeWindowedSerde(serde or DefaultSerde("key"), windows.window_size_ms)


def _counting(materialized: Materialized | None) -> Materialized:
    options = option_of(materialized, Materialized)
    return options if options.value_serde is not None else replace(options, value_serde=LongSerde())


def burn_number_of_count(graph: Graph, materialized: Materialized | None) -> None:
    """Kafka Streams' `count` takes one number too many when it is told of a store without a name."""
    if materialized is not None and option_of(materialized, Materialized).store_name is None:
        graph.names.store("KSTREAM-AGGREGATE-")
