"""Metrics of the queries of a server, for Prometheus: state, lag, records and the time of a batch.

The numbers are the engine's, which asks brokers for the lag. They are asked for after a scrape, at most once in some
seconds, so that a server that nobody watches does no such work; the first scrape shows states only. Start at
`QueryMetrics`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from moldau.core.errors import MoldauError
from moldau.core.prometheus import MetricFamily, MetricType, Series

__all__ = ["QueryMetrics"]

REFRESH_S = 5.0
PREFIX = "moldau_ksql_query"
COUNTED_STATES = ("CREATED", "RUNNING", "PAUSED", "REBALANCING", "ERROR")
NUMBERS = {
    "records-lag": ("lag", MetricType.GAUGE, "Records in the topics of a query that it has not read yet."),
    "records-in-total": ("records_in_total", MetricType.COUNTER, "Records that a query has read."),
    "records-out-total": ("records_out_total", MetricType.COUNTER, "Records that a query has written."),
    "batch-time-ms": ("batch_ms", MetricType.GAUGE, "How long the last batch of a query took."),
    "state-records": ("state_records", MetricType.GAUGE, "Records in the state of a query."),
    "restarts": ("restarts", MetricType.GAUGE, "How often a query was started again."),
}
"""The engine's names, and names, types and descriptions here."""


class QueryMetrics:
    """Called at each scrape, on the event loop."""

    def __init__(
        self, states: Callable[[], Mapping[str, str]], ask: Callable[[str], Awaitable[Mapping[str, Any]]], group: str
    ) -> None:
        """`states` are those of the queries that run here; `ask` gives what the engine knows of one; `group` is what
        stands before a query's id in the name of its consumer group."""
        self._states, self._ask, self._group = states, ask, group
        self._known: dict[str, Mapping[str, Any]] = {}
        self._asked = float("-inf")
        self._asking: asyncio.Task[None] | None = None

    def families(self) -> Iterator[MetricFamily]:
        """The metrics as they were last known; newer ones are asked for."""
        states = self._states()
        self._refresh(list(states))
        yield MetricFamily(
            f"{PREFIX}_state",
            MetricType.GAUGE,
            "1 for the state that a query is in.",
            [Series((*self._labels(query_id), ("state", state)), 1) for query_id, state in states.items()],
        )
        yield from _engine_families(states)
        for key, (name, kind, description) in NUMBERS.items():
            series = [
                Series(self._labels(query_id), float(self._known[query_id][key]))
                for query_id in states
                if self._known.get(query_id, {}).get(key) is not None
            ]
            yield MetricFamily(f"{PREFIX}_{name}", kind, description, series)

    def _labels(self, query_id: str) -> tuple[tuple[str, str], ...]:
        return (("query", query_id), ("group", f"{self._group}{query_id}"))

    def _refresh(self, query_ids: list[str]) -> None:
        is_asking = self._asking is not None and not self._asking.done()
        if not is_asking and time.monotonic() - self._asked >= REFRESH_S:
            self._asked = time.monotonic()
            self._asking = asyncio.get_running_loop().create_task(self._ask_all(query_ids))

    async def _ask_all(self, query_ids: list[str]) -> None:
        known: dict[str, Mapping[str, Any]] = {}
        for query_id in query_ids:
            try:
                known[query_id] = (await self._ask(query_id)).get("metrics") or {}
            except MoldauError:
                continue  # it has just started or ended
        self._known = known


def _engine_families(states: Mapping[str, str]) -> Iterator[MetricFamily]:
    """The queries of a server, by the names that ksqlDB's have in Prometheus."""
    prefix = "ksql_ksql_engine_query_stats"
    counts = {f"{state.lower()}_queries": list(states.values()).count(state) for state in COUNTED_STATES}
    totals = {"liveness_indicator": 1, "num_persistent_queries": len(states), "num_active_queries": len(states)}
    for name, value in {**totals, **counts}.items():
        yield MetricFamily(f"{prefix}_{name}", MetricType.GAUGE, "", [Series((), value)])
