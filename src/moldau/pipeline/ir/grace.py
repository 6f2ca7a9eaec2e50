"""When the windows of a table close."""

from __future__ import annotations

from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.nodes import Aggregate, Cogroup, Node, inputs_of
from moldau.pipeline.ir.windows import AggregationWindow, SessionWindow, UnlimitedWindow

__all__ = ["close_delay_ms"]


def close_delay_ms(node: Node) -> int:
    """How long after its end a window of this table closes: the grace period, for sessions plus the gap."""
    if isinstance(node, Aggregate | Cogroup) and node.window is not None:
        return _delay_ms(node.window)
    inputs = inputs_of(node)
    if not inputs:
        raise TopologyError(
            "until_window_closes needs windows, but no operator before this point has any (looked up to "
            f"{node.name}): use windowed_by before the aggregation, or Suppressed.until_time_limit",
            node.origin,
        )
    return max(close_delay_ms(source) for source in inputs)


def _delay_ms(window: AggregationWindow) -> int:
    match window:
        case SessionWindow():
            return window.gap_ms + window.grace_ms
        case UnlimitedWindow():
            return 0
        case _:
            return window.grace_ms
