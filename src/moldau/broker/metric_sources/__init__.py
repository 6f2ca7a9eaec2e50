"""Sources of metrics: each module reads one part of the broker and returns families with Kafka's names.

Nothing is counted here; values are read at each scrape. Start at `attach_metrics`.
"""

from __future__ import annotations

from moldau.broker.metric_sources.attach import Parts, attach_metrics

__all__ = ["Parts", "attach_metrics"]
