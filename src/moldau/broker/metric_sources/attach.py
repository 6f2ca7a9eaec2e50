"""Registering the metric sources of a broker. Start at `attach_metrics`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.broker.metrics import Metrics

if TYPE_CHECKING:
    from moldau.broker.context import Broker
    from moldau.broker.health.loop_monitor import LoopMonitor
    from moldau.broker.health.watchdog import Watchdog
    from moldau.controller.metadata_log import MetadataLog
    from moldau.log.cleaning.cleaner import Cleaner
    from moldau.net.server import Server

__all__ = ["Parts", "attach_metrics"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The components to read besides the broker. A missing component has no metrics."""

    broker_state: Callable[[], int]
    started_ms: int = 0
    server: Server | None = None
    cleaner: Callable[[], Cleaner | None] = lambda: None
    metadata_log: MetadataLog | None = None
    loop_monitor: LoopMonitor | None = None
    watchdog: Watchdog | None = None


def attach_metrics(metrics: Metrics, broker: Broker, parts: Parts) -> None:
    """Register every source to be read at each scrape. The modules are imported then, not at startup."""

    def source(module: str) -> None:
        def families() -> object:
            import importlib

            found = importlib.import_module(f"moldau.broker.metric_sources.{module}")
            return found.families(broker, parts)

        metrics.add_source(families)  # type: ignore[arg-type]  # `families` is typed in each module

    for module in ("health", "throughput", "requests", "storage", "controller", "process", "transactions", "groups"):
        source(module)
