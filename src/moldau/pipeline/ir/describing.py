"""`Topology.describe()`: the exact text of Kafka Streams, followed by what stays inside the engine.

Kafka Streams prints neighbours in the order of Java's collections, which depends on hashes of names and on the order
in which neighbours were added. People compare descriptions and tools parse them, so that order is reproduced. Of 5,512
tested topologies two differ: an operator with many neighbours, which Java's tree map orders differently from our list.
Start at `description`.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence

from moldau.core.java_order import java_hash_order
from moldau.pipeline.ir.kafka_processors import KafkaProcessor, KafkaSink, KafkaSource, Part, kafka_processors
from moldau.pipeline.ir.nodes import ForeignKeyJoin, GlobalTableSource, Node, Repartition

__all__ = ["description", "kafka_description"]


def description(nodes: Sequence[Node]) -> str:
    """What Kafka Streams would print, followed by the topics and stores that are not on the broker here."""
    return kafka_description(nodes) + _inside_spark(nodes)


def kafka_description(nodes: Iterable[Node]) -> str:
    """What Kafka Streams' `Topology.describe()` prints of the same topology."""
    groups = _groups(kafka_processors(nodes))
    shown = (_global_store(number, parts) or _subtopology(number, parts) for number, parts in enumerate(groups))
    return "Topologies:\n " + "".join(f"  {text}" for text in shown)


def _inside_spark(nodes: Sequence[Node]) -> str:
    shared = {node.table.store for node in nodes if isinstance(node, GlobalTableSource)}
    stores = sorted({store for part in kafka_processors(nodes) for store in part.stores} - shared)
    topics = [node.topic for node in nodes if isinstance(node, Repartition)]
    for node in nodes:
        if isinstance(node, ForeignKeyJoin):
            topics += [node.subscription_topic, node.response_topic]
    if not topics and not stores:
        return ""
    lines = ["Inside Spark (no topic on the broker is made for these):"]
    lines += [f"  repartitioned by a shuffle: {topic}" for topic in topics]
    lines += [f"  store, with its changelog in the checkpoint: {store}" for store in stores]
    return "\n".join(lines) + "\n"


def _groups(parts: list[Part]) -> list[list[Part]]:
    """Parts that are connected by records or by stores, ordered by the first part of each group."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    owner: dict[str, str] = {}
    for part in parts:
        for other in (*part.predecessors, *(owner.setdefault(store, part.name) for store in part.stores)):
            leader[find(other)] = find(part.name)
    groups: dict[str, list[Part]] = {}
    for part in parts:
        groups.setdefault(find(part.name), []).append(part)
    return list(groups.values())


class _DescribedPart:
    """A part with its neighbours, in Java's order."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.name = part.name
        self.size = 1
        """How many parts are downstream, itself included, counted once per path."""
        self.predecessors: list[_DescribedPart] = []
        self.successors: list[_DescribedPart] = []

    def grow(self, by: int) -> None:
        self.size += by
        for predecessor in self.predecessors:
            predecessor.grow(by)

    def __str__(self) -> str:
        after = f"\n      --> {_names(self.successors)}"
        before = f"\n      <-- {_names(self.predecessors)}"
        match self.part:
            case KafkaSource():
                topics = self.part.pattern or _set(self.part.topics)
                return f"Source: {self.name} (topics: {topics}){after}"
            case KafkaProcessor():
                return f"Processor: {self.name} (stores: {_set(self.part.stores)}){after}{before}"
            case KafkaSink():
                where = "chosen for each record" if self.part.topic is None else f"topic: {self.part.topic}"
                return f"Sink: {self.name} ({where}){before}"


def _insert(neighbours: list[_DescribedPart], new: _DescribedPart) -> None:
    """Insert a neighbour by its current size, larger first, then by name.

    Sizes grow later without moving the neighbours that are already in the list, as in Kafka Streams.
    """
    if new not in neighbours:
        insort(neighbours, new, key=lambda each: (-each.size, each.name))


def _subtopology(number: int, parts: list[Part]) -> str:
    shown = _connect(parts)
    in_order = sorted(shown, key=lambda each: (-each.size, each.name))
    return f"Sub-topology: {number}\n" + "".join(f"    {each}\n" for each in in_order) + "\n"


def _connect(parts: list[Part]) -> list[_DescribedPart]:
    by_name = {part.name: part for part in parts}
    shown = {name: _DescribedPart(by_name[name]) for name in java_hash_order(by_name)}
    for each in shown.values():
        for name in each.part.predecessors:
            predecessor = shown[name]
            _insert(each.predecessors, predecessor)
            _insert(predecessor.successors, each)
            predecessor.grow(each.size)
    return list(shown.values())


def _global_store(number: int, parts: list[Part]) -> str | None:
    if not any(isinstance(part, KafkaSource) and part.is_global for part in parts):
        return None
    source, processor = _connect(sorted(parts, key=lambda part: not isinstance(part, KafkaSource)))
    if not isinstance(source.part, KafkaSource):
        source, processor = processor, source
    return f"Sub-topology: {number} for global store (will not generate tasks)\n    {source}\n    {processor}\n"


def _names(nodes: Sequence[_DescribedPart]) -> str:
    return ", ".join(node.name for node in nodes) or "none"


def _set(names: tuple[str, ...]) -> str:
    return f"[{', '.join(java_hash_order(dict.fromkeys(names)))}]"
