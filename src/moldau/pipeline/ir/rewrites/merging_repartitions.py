"""One repartitioning right after the operator that changes keys, in place of several further down.

Repartitionings that Kafka Streams made by itself, after one operator that changes keys and none that changes values in
between, carry the same records: one of them can serve all. Those the user asked for stay. Where streams with new keys
are merged first, the one repartitioning comes after the merge; where only one of them has new keys, and is
repartitioned before, the others must be partitioned alike (`Merge.is_copartitioned`). Start at `merged_repartitions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from moldau.pipeline.ir.nodes import (
    FlatMap,
    FlatMapValues,
    Map,
    MapValues,
    Merge,
    Node,
    Process,
    Repartition,
    SelectKey,
    StreamGlobalTableJoin,
    StreamTableJoin,
    ToStream,
    inputs_of,
)
from moldau.pipeline.ir.rewrites.rebuilding import replaced, with_inputs
from moldau.pipeline.ir.serdes import DefaultSerde

__all__ = ["merged_repartitions"]


def merged_repartitions(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The pipeline with as few repartitionings as its operators that change keys allow."""
    return _Merging(nodes).result()


def _changes_keys(node: Node) -> bool:
    if isinstance(node, ToStream):
        return node.selector is not None
    return isinstance(node, SelectKey | Map | FlatMap) or (isinstance(node, Process) and not node.keeps_key)


def _changes_values(node: Node) -> bool:
    return isinstance(node, MapValues | FlatMapValues | StreamGlobalTableJoin | Process)


class _Merging:
    """A graph by names, which can be changed while it is looked at."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._inputs = {node.name: [source.name for source in inputs_of(node)] for node in nodes}
        self._singles: dict[str, Repartition] = {}
        """What comes right after a node that changes keys, or merges streams whose keys were changed; by that node."""

        self._meetings: set[str] = set()
        """Merges with records of the one repartitioning, behind which another one was left out."""

    def result(self) -> tuple[Node, ...]:
        for changer, repartitions in self._by_changer().items():
            # Behind two merges one after the other, the first has taken what the second could.
            left = [name for name in repartitions if name in self._inputs]
            if left:
                self._merge(changer, left)
        return self._rebuilt()

    # --- which

    def _by_changer(self) -> dict[str, list[str]]:
        """Repartitionings that can be one, by the node after which it comes."""
        found: dict[str, list[str]] = {name: [] for name, node in self._nodes.items() if _changes_keys(node)}
        for name, node in self._nodes.items():
            if isinstance(node, Repartition) and node.is_automatic:
                nearest = self._above(name, self._changes_records)
                if nearest is not None and nearest == self._above(name, self._changes_keys):
                    found[nearest].append(name)
        self._behind_merges(found)
        return found

    def _behind_merges(self, found: dict[str, list[str]]) -> None:
        joint: dict[str, list[str]] = {}
        changed = dict(found)
        for merge, node in self._nodes.items():
            if not isinstance(node, Merge):
                continue
            changers = [
                changer
                for changer, repartitions in changed.items()
                if all(self._is_below(one, merge) for one in repartitions) and self._is_below(merge, changer)
            ]
            joint[merge] = list(dict.fromkeys(one for changer in changers for one in changed[changer]))
            for changer in changers:
                found.pop(changer, None)
        found.update(joint)

    def _is_below(self, name: str, other: str) -> bool:
        return self._child_of(other, name) is not None

    def _child_of(self, above: str, name: str) -> str | None:
        """The node that `above` feeds directly, on a way down to this one; perhaps this one itself."""
        return self._above(name, lambda one: above in self._feeders(one))

    def _changes_keys(self, name: str) -> bool:
        return _changes_keys(self._nodes[name])

    def _changes_records(self, name: str) -> bool:
        return self._changes_keys(name) or _changes_values(self._nodes[name])

    def _above(self, name: str, holds: Callable[[str], bool]) -> str | None:
        """The node itself or one it comes from, nearest first; of several inputs the first that leads to one counts."""
        if holds(name):
            return name
        ways = (self._above(feeder, holds) for feeder in self._feeders(name))
        return next((found for found in ways if found is not None), None)

    def _feeders(self, name: str) -> list[str]:
        inputs = list(dict.fromkeys(self._inputs[name]))
        # A table is no input of such a join in Kafka Streams' graph.
        return inputs[:1] if isinstance(self._nodes[name], StreamTableJoin | StreamGlobalTableJoin) else inputs

    # --- how

    def _merge(self, changer: str, repartitions: list[str]) -> None:
        many = [node for name in repartitions if isinstance(node := self._nodes[name], Repartition)]
        single = self._singles[changer] = _single(many, self._nodes[changer])
        # Its own name may be that of one it replaces.
        key = _key(changer)
        self._nodes[key], self._inputs[key] = single, [changer]
        for name in repartitions:
            child = self._child_of(changer, name)
            if child is not None and child != key:
                self._feed(child, changer, key)
            if self._comes_from(name, key):
                self._meetings |= self._merges_between(name, key)
                feeder = self._inputs.pop(name)[0]
                for other in self._inputs:
                    self._feed(other, name, feeder)

    def _merges_between(self, name: str, single: str) -> set[str]:
        found = {name} if isinstance(self._nodes[name], Merge) else set[str]()
        for feeder in self._inputs[name]:
            if feeder != single and self._comes_from(feeder, single):
                found |= self._merges_between(feeder, single)
        return found

    def _comes_from(self, name: str, other: str) -> bool:
        return any(one == other or self._comes_from(one, other) for one in self._inputs[name])

    def _feed(self, name: str, before: str, after: str) -> None:
        inputs = self._inputs[name]
        if before in inputs and isinstance(self._nodes[name], Merge):
            # Kafka Streams takes one away and adds the other at the end, and prints them so.
            self._inputs[name] = [*(one for one in inputs if one != before), after]
        else:
            self._inputs[name] = [after if one == before else one for one in inputs]

    def _rebuilt(self) -> tuple[Node, ...]:
        made: dict[str, Node] = {}
        for name, node in self._nodes.items():
            if name not in self._inputs or node in self._singles.values():
                continue
            made[name] = with_inputs(node, tuple(made[one] for one in self._inputs[name]))
            if name in self._meetings:
                made[name] = replaced(made[name], is_copartitioned=True)
            if name in self._singles:
                made[_key(name)] = with_inputs(self._singles[name], (made[name],))
        return tuple(made.values())


def _key(changer: str) -> str:
    return f"repartitioned {changer}"


def _single(repartitions: list[Repartition], changer: Node) -> Repartition:
    """One in place of many: named after the first, with the first serdes that any of them names."""
    first = repartitions[0]
    keys = [node.key_serde for node in repartitions if not isinstance(node.key_serde, DefaultSerde)]
    values = [node.value_serde for node in repartitions if not isinstance(node.value_serde, DefaultSerde)]
    name = f"{first.topic}-source"
    return replace(
        first,
        name=name,
        parts=(f"{first.topic}-filter", f"{first.topic}-sink", name),
        input=changer,
        key_serde=(keys or [first.key_serde])[0],
        value_serde=(values or [first.value_serde])[0],
    )
