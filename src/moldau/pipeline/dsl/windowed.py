"""Windowed aggregations of grouped streams: count, reduce and aggregate per key and window.

Made by `KGroupedStream.windowed_by`. Start at `TimeWindowedKStream`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from moldau.pipeline.dsl.counting import burn_number_of_count, counting
from moldau.pipeline.dsl.functions import Described
from moldau.pipeline.dsl.options.given import option_of
from moldau.pipeline.dsl.options.hints import FOLD_FIRST, Hinting
from moldau.pipeline.dsl.options.materialized import Materialized
from moldau.pipeline.dsl.options.named import Named
from moldau.pipeline.dsl.options.windows import SessionWindows, SlidingWindows, UnlimitedWindows, Windows
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.nodes import Aggregator, Count, EmitStrategy
from moldau.pipeline.ir.origin import callers_origin
from moldau.pipeline.ir.serdes import DefaultSerde
from moldau.pipeline.ir.type_variables import VR, K, V
from moldau.serdes.serde import Serde
from moldau.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde, Windowed

if TYPE_CHECKING:
    from moldau.pipeline.dsl.grouped import KGroupedStream
    from moldau.pipeline.dsl.ktable import KTable

__all__ = ["SessionWindowedKStream", "TimeWindowedKStream", "checked_windows", "windowed_keys"]


class _Windowed(Hinting, Generic[K, V]):
    """Common base class of streams grouped by time window and by session."""

    hints: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("to", "to_stream", "filter", "map_values", "join"), FOLD_FIRST),
        "suppress": "a table has it: " + FOLD_FIRST,
    }

    def __init__(self, grouped: KGroupedStream[K, V], windows: Windows, emit: EmitStrategy) -> None:
        self._grouped = grouped
        self._windows = windows
        self._emit = emit

    def count(
        self, materialized: Materialized | None = None, named: Named | str | None = None
    ) -> KTable[Windowed[K], int]:
        """Count the records of each key in each window; records with a null value are not counted."""
        if not isinstance(self._windows, SlidingWindows):
            burn_number_of_count(self._grouped.graph, materialized)
        return self._fold(Count(), "KSTREAM-AGGREGATE-", counting(materialized), named)

    def reduce(
        self,
        reducer: Callable[[V, V], V] | Described,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable[Windowed[K], V]:
        """Combine the values of each key and window: `reducer` (aggregate, value) returns the new aggregate."""
        options = option_of(materialized, Materialized).or_serdes(None, self._grouped.values.serde)
        return self._fold(self._grouped.reducing(reducer), "KSTREAM-REDUCE-", options, named)

    def _fold(
        self, aggregator: Aggregator, prefix: str, options: Materialized, named: Named | str | None
    ) -> KTable[Windowed[K], Any]:
        return self._grouped.fold(aggregator, prefix, options, named, windows=self._windows, emit=self._emit)


class TimeWindowedKStream(_Windowed[K, V]):
    """A stream grouped by key and time window; call `count`, `reduce` or `aggregate` on it."""

    def __init__(
        self, grouped: KGroupedStream[K, V], windows: Windows, emit: EmitStrategy = EmitStrategy.ON_UPDATE
    ) -> None:
        super().__init__(grouped, windows, emit)

    def emit_strategy(self, emit: EmitStrategy) -> TimeWindowedKStream[K, V]:
        """Choose whether to emit every update of a window, or only its final result when it closes.

        `per_minute.emit_strategy(EmitStrategy.ON_WINDOW_CLOSE).count()`
        """
        if _checked_strategy(emit) is EmitStrategy.ON_WINDOW_CLOSE and isinstance(self._windows, UnlimitedWindows):
            raise TopologyError("an unlimited window never closes, so it cannot emit on close", callers_origin())
        return TimeWindowedKStream(self._grouped, self._windows, emit)

    def aggregate(
        self,
        initializer: Callable[[], VR],
        aggregator: Callable[[K, V, VR], VR] | Described,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable[Windowed[K], VR]:
        """Aggregate the values of each key and window.

        `initializer` () returns the first aggregate; `aggregator` (key, value, aggregate) returns the new one.
        """
        fold = self._grouped.folding(initializer, aggregator, None)
        return self._fold(fold, "KSTREAM-AGGREGATE-", option_of(materialized, Materialized), named)


class SessionWindowedKStream(_Windowed[K, V]):
    """A stream grouped by key and session; call `count`, `reduce` or `aggregate` on it."""

    def __init__(
        self, grouped: KGroupedStream[K, V], windows: SessionWindows, emit: EmitStrategy = EmitStrategy.ON_UPDATE
    ) -> None:
        super().__init__(grouped, windows, emit)
        self._sessions = windows

    def emit_strategy(self, emit: EmitStrategy) -> SessionWindowedKStream[K, V]:
        """Choose whether to emit every update of a session, or only its final result when it closes."""
        return SessionWindowedKStream(self._grouped, self._sessions, _checked_strategy(emit))

    def aggregate(
        self,
        initializer: Callable[[], VR],
        aggregator: Callable[[K, V, VR], VR] | Described,
        session_merger: Callable[[K, VR, VR], VR] | Described,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable[Windowed[K], VR]:
        """Aggregate the values of each key and session.

        `initializer` () returns the first aggregate; `aggregator` (key, value, aggregate) returns the new one.
        `session_merger` (key, one, other) merges the aggregates of two sessions when a record connects them.
        """
        fold = self._grouped.folding(initializer, aggregator, session_merger)
        return self._fold(fold, "KSTREAM-AGGREGATE-", option_of(materialized, Materialized), named)


def _checked_strategy(emit: EmitStrategy) -> EmitStrategy:
    if not isinstance(emit, EmitStrategy):
        raise TopologyError(
            f"emit_strategy takes EmitStrategy.ON_UPDATE or EmitStrategy.ON_WINDOW_CLOSE, not {emit!r}",
            callers_origin(),
        )
    return emit


def checked_windows(windows: Windows) -> Windows:
    """Return `windows`; raise `TopologyError` if they are not windows for an aggregation."""
    if not isinstance(windows, Windows):
        raise TopologyError(
            f"windowed_by takes TimeWindows, SlidingWindows, SessionWindows or UnlimitedWindows, not {windows!r}",
            callers_origin(),
        )
    return windows


def windowed_keys(serde: Serde | None, windows: Windows | None) -> Serde | None:
    """The serde of a windowed table's keys, made from the serde of the plain keys."""
    match windows:
        case None:
            return serde
        case SessionWindows():
            return SessionWindowedSerde(serde or DefaultSerde("key"))
        case _:
            return TimeWindowedSerde(serde or DefaultSerde("key"), windows.window_size_ms)
