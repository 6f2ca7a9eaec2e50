"""A topology split into sub-topologies, which run per partition, as Kafka Streams splits it.

Nodes are in the same sub-topology when one feeds the other or when they share a store; records enter another one only
through `Repartition` nodes. A sub-topology may feed itself, and several may feed each other in a cycle, see `waves`.
`pipeline.cores` runs a sub-topology. Start at `split`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from moldau.pipeline.ir.nodes import (
    GlobalTableSource,
    Materialization,
    Node,
    Process,
    Repartition,
    Sink,
    Source,
    TableTransformValues,
    inputs_of,
)

__all__ = ["SubTopology", "split", "waves"]


@dataclass(frozen=True, slots=True, eq=False)
class SubTopology:
    """Nodes that run together in one task per partition."""

    index: int
    nodes: tuple[Node, ...]
    """All nodes of the sub-topology in topological order; the children of a node get its records in this order.

    A `Repartition` is both in the sub-topology that writes it and in the one that reads it. Global tables are left out.
    """
    inputs: tuple[Source | Repartition, ...]
    """The entry points, in the order in which records with equal timestamps are taken."""
    outputs: tuple[Sink | Repartition, ...]
    global_tables: tuple[GlobalTableSource, ...]
    """Tables that every partition has as a whole."""


def split(nodes: Iterable[Node]) -> tuple[SubTopology, ...]:
    """Split at repartitionings; `nodes` are in topological order."""
    ordered = tuple(nodes)
    members = _members(ordered)
    return tuple(_sub_topology(index, ordered, group) for index, group in enumerate(members))


def waves(sub_topologies: tuple[SubTopology, ...]) -> tuple[tuple[SubTopology, ...], ...]:
    """The sub-topologies in topological order; sub-topologies that form a cycle are in the same wave."""
    feeds = {
        sub_topology.index: {
            other.index for other in sub_topologies if any(output in other.inputs for output in sub_topology.outputs)
        }
        for sub_topology in sub_topologies
    }
    reaches = {index: _reachable(index, feeds) for index in feeds}
    groups: dict[frozenset[int], None] = {}
    for sub_topology in sub_topologies:
        cycle = {other for other in reaches[sub_topology.index] if sub_topology.index in reaches[other]}
        groups[frozenset(cycle | {sub_topology.index})] = None
    first_come = sorted(groups, key=lambda group: (len(group | _before(group, reaches)), min(group)))
    return tuple(
        tuple(sub_topology for sub_topology in sub_topologies if sub_topology.index in group) for group in first_come
    )


def _before(group: frozenset[int], reaches: dict[int, set[int]]) -> set[int]:
    return {index for index, reached in reaches.items() if reached & group}


def _reachable(start: int, feeds: dict[int, set[int]]) -> set[int]:
    reached: set[int] = set()
    ahead = [start]
    while ahead:
        for index in feeds[ahead.pop()] - reached:
            reached.add(index)
            ahead.append(index)
    return reached


class _Groups:
    """Names in disjoint groups (union-find)."""

    def __init__(self) -> None:
        self._leader: dict[str, str] = {}

    def leader(self, name: str) -> str:
        path = []
        while (above := self._leader.setdefault(name, name)) != name:
            path.append(name)
            name = above
        self._leader.update(dict.fromkeys(path, name))
        return name

    def unite(self, one: str, other: str) -> None:
        self._leader[self.leader(other)] = self.leader(one)


def _members(nodes: tuple[Node, ...]) -> list[set[str]]:
    """Names of the nodes of each sub-topology, ordered by first node; a `Repartition` is in the one that reads it."""
    groups = _Groups()
    for node in nodes:
        if isinstance(node, Repartition | GlobalTableSource):
            continue
        for source in inputs_of(node):
            if not isinstance(source, GlobalTableSource):
                groups.unite(node.name, source.name)
    for users in _users_of_stores(nodes).values():
        for user in users:
            groups.unite(users[0], user)
    members: dict[str, set[str]] = {}
    for node in nodes:
        if not isinstance(node, GlobalTableSource):
            members.setdefault(groups.leader(node.name), set()).add(node.name)
    return list(members.values())


def _users_of_stores(nodes: tuple[Node, ...]) -> dict[str, list[str]]:
    """Per store, the names of the nodes that own or use it."""
    users: dict[str, list[str]] = {}
    for node in nodes:
        table = getattr(node, "table", None)
        owned = [table.store] if isinstance(table, Materialization) else []
        if isinstance(node, Process | TableTransformValues):
            owned += [store.table.store for store in node.stores] + list(node.connected)
        for store in owned:
            users.setdefault(store, []).append(node.name)
    for node in nodes:
        if isinstance(node, GlobalTableSource):
            users.pop(node.table.store, None)
    return users


def _sub_topology(index: int, ordered: tuple[Node, ...], members: set[str]) -> SubTopology:
    written = {node.name for node in ordered if isinstance(node, Repartition) and node.input.name in members}
    nodes = tuple(node for node in ordered if node.name in members | written)
    needed = {source.name for node in nodes for source in inputs_of(node)}
    if any(isinstance(node, Process | TableTransformValues) for node in nodes):
        # A processor may read any global table without declaring it.
        needed |= {node.name for node in ordered if isinstance(node, GlobalTableSource)}
    read = tuple(node for node in nodes if isinstance(node, Source | Repartition) and node.name in members)
    return SubTopology(
        index,
        nodes,
        inputs=tuple(node for node in read if isinstance(node, Source | Repartition)),
        outputs=tuple(n for n in nodes if isinstance(n, Sink) or (isinstance(n, Repartition) and n.name in written)),
        global_tables=tuple(n for n in ordered if isinstance(n, GlobalTableSource) and n.name in needed),
    )
