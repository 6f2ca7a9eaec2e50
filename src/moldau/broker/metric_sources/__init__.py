"""Where metrics come from: each module reads one part of the broker and says it in Kafka's names.

Nothing here counts; it only looks, and only when asked. Start at `attach_metrics`.
"""

from __future__ import annotations

from moldau.broker.metric_sources.attach import Parts, attach_metrics

__all__ = ["Parts", "attach_metrics"]
