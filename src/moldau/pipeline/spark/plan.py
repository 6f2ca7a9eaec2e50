"""Plans the sub-topologies of a pipeline as stages of one Spark query. Pure: does not depend on Spark.

Sub-topologies are planned in waves: a stage comes after all stages that feed it. Stateless ones need no shuffle.
Stateful ones run as one group of rows per partition; those that feed each other in a cycle run together in a single
group, where records are passed on in memory. Every input and output gets a number that rows carry instead of a name.
Start at `Plan.of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from moldau.pipeline.cores.context import DEAD_LETTERS
from moldau.pipeline.cores.processing_log_output import PROCESSING_LOG
from moldau.pipeline.cores.task import is_stateless
from moldau.pipeline.ir.copartitioning import partition_counts, task_count
from moldau.pipeline.ir.nodes import GlobalTableSource, Node, Process, Repartition, Source, TableTransformValues
from moldau.pipeline.ir.subtopologies import SubTopology, waves
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.spark.placement import slots

__all__ = ["STATE_OUTPUT", "InputPoint", "OutputPoint", "Plan", "Stage", "Unit", "store_output"]


STATE_OUTPUT = "state"
"""The output for all state, used by tests to inspect it."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One task: a sub-topology, by its index, on one partition."""

    sub_topology: int
    partition: int


@dataclass(frozen=True, slots=True)
class InputPoint:
    """An input of tasks; rows carry its `index`, which also orders records with the same timestamp."""

    index: int
    node: Source | Repartition
    topic: str | None
    """None if the topics are given by a pattern; rows then carry their topic."""
    sub_topologies: tuple[int, ...]
    """The sub-topologies that read it; more than one only for a global table."""

    @property
    def is_global(self) -> bool:
        return isinstance(self.node, GlobalTableSource)


@dataclass(frozen=True, slots=True)
class OutputPoint:
    """An output of the topology: a sink, a store's changes, dead letters."""

    index: int
    name: str
    topic: str | None
    """None if each row carries its own topic, or has none."""
    store: str | None
    """The queryable store whose changes leave by this output."""


@dataclass(frozen=True)
class Stage:
    """Sub-topologies that run at the same depth, and are all stateless or all stateful."""

    number: int
    groups: tuple[tuple[SubTopology, ...], ...]
    """A group has more than one sub-topology only if they feed each other in a cycle."""
    is_stateless: bool
    units: Mapping[int, tuple[Unit, ...]] = field(default_factory=dict)
    """The units of each slot; empty for stateless stages."""

    @property
    def sub_topologies(self) -> tuple[SubTopology, ...]:
        return tuple(sub_topology for group in self.groups for sub_topology in group)

    @property
    def cycles(self) -> frozenset[int]:
        """The slots whose tasks feed each other, or themselves."""
        sub_topologies = {sub_topology.index for group in self.groups if _is_cycle(group) for sub_topology in group}
        return frozenset(slot for slot, units in self.units.items() if units[0].sub_topology in sub_topologies)

    @cached_property
    def slot_of(self) -> dict[Unit, int]:
        return {unit: slot for slot, units in self.units.items() for unit in units}


def store_output(store: str) -> str:
    """The name of the output for changes of a queryable store."""
    return f"store:{store}"


class Plan:
    """The stages of a topology in order, and the numbers of its inputs and outputs."""

    def __init__(
        self,
        topology: Topology,
        counts: Mapping[str, int],
        stages: tuple[Stage, ...],
        outputs: tuple[OutputPoint, ...],
    ) -> None:
        self.topology = topology
        self.counts = counts
        self.stages = stages
        self.inputs = tuple(_inputs(topology.subtopologies))
        self.outputs = outputs

    @classmethod
    def of(
        cls,
        topology: Topology,
        topics: Mapping[str, int],
        shuffle_partitions: int,
        outputs: tuple[OutputPoint, ...] | None = None,
    ) -> Plan:
        """Plan a topology whose serdes are all known, for topics with these partition counts.

        If the topology is part of another, `outputs` are those of the whole.
        """
        sub_topologies = topology.subtopologies
        nodes = tuple(dict.fromkeys(node for sub_topology in sub_topologies for node in sub_topology.nodes))
        counts = partition_counts(nodes, topics)
        stages = tuple(_stages(sub_topologies, counts, shuffle_partitions))
        return cls(topology, counts, stages, tuple(_outputs(topology)) if outputs is None else outputs)

    @cached_property
    def input_of(self) -> dict[str, int]:
        """The first input number of each node that reads records."""
        found: dict[str, int] = {}
        for point in self.inputs:
            found.setdefault(point.node.name, point.index)
        return found

    @cached_property
    def stage_of(self) -> dict[int, Stage]:
        """The stage of each sub-topology, by index."""
        return {sub_topology.index: stage for stage in self.stages for sub_topology in stage.sub_topologies}

    @cached_property
    def reader_of(self) -> dict[str, SubTopology]:
        """The sub-topology that reads a repartitioning, by the node's name."""
        return {
            node.name: sub_topology
            for sub_topology in self.topology.subtopologies
            for node in sub_topology.inputs
            if isinstance(node, Repartition)
        }

    def targets(self, repartition: str) -> tuple[int, tuple[int, ...]]:
        """The input number of a repartitioning, and the slot of each of its partitions (0 if there are no slots)."""
        sub_topology = self.reader_of[repartition]
        stage = self.stage_of[sub_topology.index]
        partitions = range(task_count(sub_topology.inputs, self.counts))
        slot_of = tuple(stage.slot_of.get(Unit(sub_topology.index, partition), 0) for partition in partitions)
        return self.input_of[repartition], slot_of

    @property
    def is_stateless(self) -> bool:
        return all(stage.is_stateless for stage in self.stages)

    @property
    def needs_ticks(self) -> bool:
        """Whether any node may depend on the wall-clock time."""
        return any(isinstance(node, Process | TableTransformValues) for node in self.topology.nodes)


def _stages(sub_topologies: tuple[SubTopology, ...], counts: Mapping[str, int], shuffle_partitions: int) -> list[Stage]:
    depth_of: dict[Node, int] = {}
    by_kind: dict[tuple[int, bool], list[tuple[SubTopology, ...]]] = {}
    for group in waves(sub_topologies):
        inputs = [node for sub_topology in group for node in sub_topology.inputs]
        depth = max((depth_of[node] + 1 for node in inputs if node in depth_of), default=0)
        depth_of.update(
            {node: depth for sub_topology in group for node in sub_topology.outputs if isinstance(node, Repartition)}
        )
        stateless = not _is_cycle(group) and all(map(_remembers_nothing, group))
        by_kind.setdefault((depth, not stateless), []).append(group)
    stages = []
    for number, ((_, has_state), groups) in enumerate(sorted(by_kind.items(), key=lambda item: item[0])):
        units = _assign_slots(groups, counts, shuffle_partitions) if has_state else {}
        stages.append(Stage(number, tuple(groups), not has_state, units))
    return stages


def _remembers_nothing(sub_topology: SubTopology) -> bool:
    """Whether no state must outlive a batch; a timestamp extractor needs the last timestamp of its partition."""
    return is_stateless(sub_topology) and not any(
        isinstance(node, Source) and node.timestamps for node in sub_topology.inputs
    )


def _is_cycle(group: tuple[SubTopology, ...]) -> bool:
    return len(group) > 1 or any(output in group[0].inputs for output in group[0].outputs)


def _assign_slots(
    groups: list[tuple[SubTopology, ...]], counts: Mapping[str, int], shuffle_partitions: int
) -> dict[int, tuple[Unit, ...]]:
    """Assign a slot to every group of tasks, partition by partition, so that later partitions come last."""
    wanted: list[tuple[int, tuple[Unit, ...]]] = []
    for group in groups:
        units = [
            Unit(sub_topology.index, partition)
            for sub_topology in group
            for partition in range(task_count(sub_topology.inputs, counts))
        ]
        if _is_cycle(group):
            wanted.append((0, tuple(units)))
        else:
            wanted.extend((unit.partition, (unit,)) for unit in units)
    wanted.sort(key=lambda one: (one[0], one[1][0].sub_topology))
    return dict(zip(slots(len(wanted), shuffle_partitions), (units for _, units in wanted), strict=True))


def _inputs(sub_topologies: tuple[SubTopology, ...]) -> list[InputPoint]:
    readers: dict[Source | Repartition, list[int]] = {}
    for sub_topology in sub_topologies:
        for table in sub_topology.global_tables:
            readers.setdefault(table, []).append(sub_topology.index)
    for sub_topology in sub_topologies:
        for node in sub_topology.inputs:
            readers.setdefault(node, []).append(sub_topology.index)
    points: list[InputPoint] = []
    for node, indexes in readers.items():
        topics: tuple[str | None, ...] = (None,)
        if isinstance(node, Source) and node.topic_pattern is None:
            topics = node.topics
        for topic in topics:
            points.append(InputPoint(len(points), node, topic, tuple(indexes)))
    return points


def _outputs(topology: Topology) -> list[OutputPoint]:
    stores = dict.fromkeys(table.store for table in topology.stores.values() if table.is_queryable)
    named: list[tuple[str, str | None, str | None]] = [
        *((sink.name, sink.topic if sink.chooser is None else None, None) for sink in topology.sinks),
        *((name, None, None) for name in (DEAD_LETTERS, STATE_OUTPUT)),
        *((store_output(store), None, store) for store in stores),
        (PROCESSING_LOG, None, None),
    ]
    return [OutputPoint(index, *one) for index, one in enumerate(named)]
