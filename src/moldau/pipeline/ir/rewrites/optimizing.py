"""The optimizations of `topology.optimization`: fewer repartitionings, and one store for a stream joined with itself.

They reduce shuffles and state (KIP-295, KIP-862). Results are those of Kafka Streams' optimized topology, which differ
from the unoptimized one for records without a key and for very late ones, see docs/streams.md. Tests compare the
descriptions with those of Kafka Streams. Start at `optimize`.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.nodes import Node, StreamStreamJoin
from moldau.pipeline.ir.rewrites.merging_repartitions import merge_repartitions
from moldau.pipeline.ir.rewrites.rebuilding import rebuild, replace_fields

__all__ = ["SETTING", "optimizations", "optimize"]

SETTING = "topology.optimization"
NONE, ALL = "none", "all"
REUSE_SOURCE_TOPICS = "reuse.ktable.source.topics"
MERGE_REPARTITIONS = "merge.repartition.topics"
SINGLE_STORE_SELF_JOIN = "single.store.self.join"
EACH = (REUSE_SOURCE_TOPICS, MERGE_REPARTITIONS, SINGLE_STORE_SELF_JOIN)


def optimizations(setting: object) -> frozenset[str]:
    """The optimizations that a value of the setting selects; raises `TopologyError` with the allowed values."""
    words = [word.strip() for word in str(NONE if setting is None else setting).split(",")]
    if words == [NONE]:
        return frozenset()
    if words == [ALL]:
        return frozenset(EACH)
    for word in words:
        if word not in EACH:
            raise TopologyError(
                f"{SETTING} is {str(setting)!r}, but {word!r} is not allowed: set {NONE} or {ALL} alone, "
                f"or a comma-separated list of {', '.join(EACH)}"
            )
    return frozenset(words)


def optimize(nodes: Iterable[Node], wanted: frozenset[str]) -> tuple[Node, ...]:
    """The same pipeline with these optimizations.

    Reusing a source topic as changelog needs no rewrite: there are no other changelog topics here.
    """
    result = tuple(nodes)
    if MERGE_REPARTITIONS in wanted:
        result = merge_repartitions(result)
    if SINGLE_STORE_SELF_JOIN in wanted:
        result = rebuild(result, _with_one_store)
    return result


def _with_one_store(node: Node) -> tuple[Node, ...]:
    if isinstance(node, StreamStreamJoin) and node.left is node.right:
        return (replace_fields(node, right_store=node.left_store, outer_store=None, is_self_join=True),)
    return (node,)
