"""Partition counts: those of the topics as they are, those of repartitionings by Kafka Streams' rules.

A repartitioning without an explicit count gets the largest count of its inputs. The inputs of a join must be
copartitioned: repartitionings take the count of the topics they are joined with, and topics with different counts are
rejected. Start at `partition_counts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moldau.pipeline.ir.errors import CopartitioningError, TopologyError
from moldau.pipeline.ir.nodes import (
    Cogroup,
    GlobalTableSource,
    Join,
    Merge,
    Node,
    Repartition,
    Source,
    StreamGlobalTableJoin,
    inputs_of,
)

__all__ = ["partition_counts", "task_count"]


def partition_counts(nodes: tuple[Node, ...], topics: Mapping[str, int]) -> dict[str, int]:
    """The partition count of every topic, and of every `Repartition` by its topic name without the application id.

    `nodes` have inputs first and no foreign-key joins; `topics` has the partition counts of all source topics.
    """
    counts = dict(topics)
    repartitions = [node for node in nodes if isinstance(node, Repartition)]
    meetings = [node for node in nodes if _needs_copartitioning(node)]
    for repartition in repartitions:
        counts[repartition.topic] = _partition_count(repartition, counts)
    # A count that a join changes may change counts downstream; each round settles at least one more join.
    for _ in range(len(meetings) + 1):
        before = dict(counts)
        for meeting in meetings:
            _settle(meeting, counts)
        for repartition in repartitions:
            if not any(repartition in set(_origins(meeting)) for meeting in meetings):
                counts[repartition.topic] = _partition_count(repartition, counts)
        if counts == before:
            break
    return counts


def _needs_copartitioning(node: Node) -> bool:
    """Whether the inputs of a node must have equal partition counts."""
    if isinstance(node, Merge):
        return node.is_copartitioned
    return isinstance(node, Join | Cogroup) and not isinstance(node, StreamGlobalTableJoin)


def task_count(inputs: tuple[Source | Repartition, ...], counts: Mapping[str, int]) -> int:
    """How many tasks a sub-topology with these inputs has."""
    return max((_count(node, counts) for node in inputs), default=1)


def _partition_count(repartition: Repartition, counts: Mapping[str, int]) -> int:
    if repartition.partitions is not None:
        return repartition.partitions
    leader = repartition.copartitioned_with or repartition.input
    return max(_count(origin, counts) for origin in _origins_of(leader))


def _count(origin: Source | Repartition, counts: Mapping[str, int]) -> int:
    if isinstance(origin, Repartition):
        # A foreign-key join needs the count of its right side before that side's own repartitioning has one.
        return counts[origin.topic] if origin.topic in counts else _partition_count(origin, counts)
    known = [counts[topic] for topic in origin.topics if topic in counts]
    if not known and origin.topic_pattern is None:
        raise TopologyError(f"{origin.name}: unknown topic {', '.join(origin.topics)}", origin.origin)
    return max(known, default=1)


def _settle(meeting: Node, counts: dict[str, int]) -> None:
    origins = list(dict.fromkeys(_origins(meeting)))
    topics = {topic: counts[topic] for origin in origins if isinstance(origin, Source) for topic in origin.topics}
    fixed = {
        origin.topic: origin.partitions
        for origin in origins
        if isinstance(origin, Repartition) and origin.partitions is not None
    }
    demanded = {**topics, **fixed}
    if len(set(demanded.values())) > 1:
        facts = ", ".join(f"{topic} has {count}" for topic, count in demanded.items())
        raise CopartitioningError(
            f"{meeting.name}: the inputs of a join or merge must have the same number of partitions, but {facts}; "
            "repartition one side, or create the topics with equal counts",
            meeting.origin,
        )
    followers = [origin for origin in origins if isinstance(origin, Repartition) and origin.partitions is None]
    agreed = next(iter(demanded.values()), max((counts[one.topic] for one in followers), default=1))
    counts.update({origin.topic: agreed for origin in followers})


def _origins(meeting: Node) -> Iterator[Source | Repartition]:
    for source in inputs_of(meeting):
        yield from _origins_of(source)


def _origins_of(node: Node) -> Iterator[Source | Repartition]:
    """The topics and repartitionings whose records reach a node without another repartitioning in between."""
    ahead, seen = [node], set[Node]()
    while ahead:
        node = ahead.pop()
        if node in seen or isinstance(node, GlobalTableSource):
            continue
        seen.add(node)
        if isinstance(node, Source | Repartition):
            yield node
        else:
            ahead.extend(inputs_of(node))
