"""Whether a query may run in real-time mode, asked before its statement is accepted. Start at `check_latency`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.spark.native.realtime import realtime_refusal

__all__ = ["check_latency"]

LATENCY = "moldau.latency"


def check_latency(topology: Topology, properties: Mapping[str, Any]) -> None:
    """Raise `KsqlError` if the properties ask for real-time mode and the query cannot run in it, with the reason."""
    if str(properties.get(LATENCY, "")).lower() != "realtime":
        return
    refusal = realtime_refusal(topology, TaskSettings())
    if refusal is not None:
        raise KsqlError(
            f"{LATENCY}=realtime is not possible for this query: {refusal.reason}. UNSET '{LATENCY}'; and it runs in "
            "micro-batches, exactly once."
        )
