"""Where metrics come from: each module reads one part of the broker and says it in Kafka's names.

Nothing here counts; it only looks, and only when asked. Start at `connect_metrics`.
"""

from __future__ import annotations

from moldau.broker.metric_sources.connect import Parts, connect_metrics

__all__ = ["Parts", "connect_metrics"]
