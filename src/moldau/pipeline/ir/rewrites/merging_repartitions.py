"""Merge several repartitionings into one right after the operator that changes keys (KIP-295).

Automatic repartitionings after the same key-changing operator, with no value-changing operator in between, carry the
same records, so one of them suffices. Those the user asked for stay. Where streams with new keys are merged first, the
one repartitioning comes after the merge; where only one of the streams has new keys and is repartitioned before the
merge, the others must be copartitioned with it (`Merge.is_copartitioned`). Start at `merge_repartitions`.
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
from moldau.pipeline.ir.rewrites.rebuilding import replace_fields, with_inputs
from moldau.pipeline.ir.serdes import DefaultSerde

__all__ = ["merge_repartitions"]


def merge_repartitions(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The pipeline with automatic repartitionings merged where they carry the same records."""
    return _Merging(nodes).result()


def _changes_keys(node: Node) -> bool:
    if isinstance(node, ToStream):
        return node.selector is not None
    return isinstance(node, SelectKey | Map | FlatMap) or (isinstance(node, Process) and not node.keeps_key)


def _changes_values(node: Node) -> bool:
    return isinstance(node, MapValues | FlatMapValues | StreamGlobalTableJoin | Process)


class _Merging:
    """The graph as mutable maps by node name."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._inputs = {node.name: [source.name for source in inputs_of(node)] for node in nodes}
        self._singles: dict[str, Repartition] = {}
        """The merged repartitionings, by the key-changing node or merge that they come right after."""

        self._meetings: set[str] = set()
        """Merges between a merged repartitioning and one that it replaced: their inputs must be copartitioned."""

    def result(self) -> tuple[Node, ...]:
        for changer, repartitions in self._by_changer().items():
            # With two consecutive merges, the first may already have replaced the repartitionings of the second.
            left = [name for name in repartitions if name in self._inputs]
            if left:
                self._merge(changer, left)
        return self._rebuild()

    # --- which

    def _by_changer(self) -> dict[str, list[str]]:
        """Repartitionings that can be merged, by the node after which the merged one comes."""
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
        """The direct child of `above` on a path to this node; may be this node itself."""
        return self._above(name, lambda one: above in self._feeders(one))

    def _changes_keys(self, name: str) -> bool:
        return _changes_keys(self._nodes[name])

    def _changes_records(self, name: str) -> bool:
        return self._changes_keys(name) or _changes_values(self._nodes[name])

    def _above(self, name: str, holds: Callable[[str], bool]) -> str | None:
        """The nearest node for which `holds`, starting with this one and going upstream, first inputs first."""
        if holds(name):
            return name
        ways = (self._above(feeder, holds) for feeder in self._feeders(name))
        return next((found for found in ways if found is not None), None)

    def _feeders(self, name: str) -> list[str]:
        inputs = list(dict.fromkeys(self._inputs[name]))
        # In Kafka Streams' graph the table is not an input of such a join.
        return inputs[:1] if isinstance(self._nodes[name], StreamTableJoin | StreamGlobalTableJoin) else inputs

    # --- how

    def _merge(self, changer: str, repartitions: list[str]) -> None:
        many = [node for name in repartitions if isinstance(node := self._nodes[name], Repartition)]
        single = self._singles[changer] = _single(many, self._nodes[changer])
        # It may have the name of one that it replaces.
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
            # Kafka Streams removes the old input and appends the new one, which determines the order in describe().
            self._inputs[name] = [*(one for one in inputs if one != before), after]
        else:
            self._inputs[name] = [after if one == before else one for one in inputs]

    def _rebuild(self) -> tuple[Node, ...]:
        made: dict[str, Node] = {}
        for name, node in self._nodes.items():
            if name not in self._inputs or node in self._singles.values():
                continue
            made[name] = with_inputs(node, tuple(made[one] for one in self._inputs[name]))
            if name in self._meetings:
                made[name] = replace_fields(made[name], is_copartitioned=True)
            if name in self._singles:
                made[_key(name)] = with_inputs(self._singles[name], (made[name],))
        return tuple(made.values())


def _key(changer: str) -> str:
    return f"repartitioned {changer}"


def _single(repartitions: list[Repartition], changer: Node) -> Repartition:
    """The repartitioning that replaces several: named after the first, with the first serdes that are given."""
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
