"""Drop records without a key before a repartitioning, unless something downstream accepts them (KIP-962).

Only left and outer joins of streams accept them; everything else drops them anyway, and they have no key to partition
by. Start at `drop_null_keys`.
"""

from __future__ import annotations

from collections.abc import Sequence

from moldau.pipeline.ir.nodes import (
    JoinKind,
    Node,
    Repartition,
    StreamGlobalTableJoin,
    StreamStreamJoin,
    StreamTableJoin,
    inputs_of,
)
from moldau.pipeline.ir.rewrites.rebuilding import rebuild, replace_fields

__all__ = ["drop_null_keys"]


def drop_null_keys(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Mark the repartitionings that can drop records without a key."""
    passing = _inputs_of_lenient_joins(nodes)

    def rewrite(node: Node) -> tuple[Node, ...]:
        if isinstance(node, Repartition) and not node.carries_changes and node.name not in passing:
            return (replace_fields(node, drops_null_keys=True),)
        return (node,)

    return rebuild(nodes, rewrite)


def _inputs_of_lenient_joins(nodes: Sequence[Node]) -> set[str]:
    found: set[str] = set()
    for node in reversed(nodes):
        if node.name in found or _takes_null_keys(node):
            # In Kafka Streams' graph the table is not an input of the join: only the stream side counts.
            sides = (
                inputs_of(node)[:1] if isinstance(node, StreamTableJoin | StreamGlobalTableJoin) else inputs_of(node)
            )
            found.update(source.name for source in sides)
    return found


def _takes_null_keys(node: Node) -> bool:
    return (
        isinstance(node, StreamStreamJoin | StreamTableJoin | StreamGlobalTableJoin) and node.kind is not JoinKind.INNER
    )
