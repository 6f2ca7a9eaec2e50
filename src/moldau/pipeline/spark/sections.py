"""Decides which outputs of a topology Spark computes natively, and which run in Python. Pure: independent of Spark.

The decision is made per output. A *section* is a part that Spark computes natively: sinks that are reached by
expressions alone, or one aggregation with everything after it. The nodes before or after an aggregation may need Python
while the aggregation itself is native: then the section has a Python part before it, after it, or both. Everything else
is *hosted*: it runs as the tasks of `pipeline.cores`, planned by `plan`. Expressions may be computed both in a section
and by hosted tasks, since they have no side effects; a user's function is called only once per record.

An expression can turn out to have no native form when it is lowered; its node is then passed in as refused, and the
topology is cut again. Start at `cut_topology`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.cores.task import STATELESS
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.rewrites.rebuilding import with_inputs
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.spark.native.aggregates import native_aggregate
from moldau.pipeline.spark.native.checks import NativeRefusalError, aggregate_refusal, node_refusal
from moldau.pipeline.spark.native.serdes import READABLE
from moldau.pipeline.spark.native.sql.lowering import is_sql
from moldau.serdes.plain import FunctionSerde
from moldau.serdes.serde import Serde

__all__ = ["Cut", "Section", "changelog_topic", "cut_topology", "handover"]

_FOLLOWING: tuple[type[Any], ...] = (ir.ToStream, *(kind for kind in STATELESS if kind is not ir.StreamSource))
"""Nodes that may follow a native aggregation: none that depends on the order of changes of different keys."""

_PRECEDING: tuple[type[Any], ...] = tuple(kind for kind in STATELESS if kind not in (ir.Sink, ir.ForEach))


@dataclass(frozen=True, eq=False)
class Section:
    """Outputs that Spark computes natively."""

    topology: Topology
    """All nodes between the sources and the outputs, including Python parts."""
    aggregate: ir.Aggregate | None = None
    before: Topology | None = None
    """The Python part before the aggregation; its only output is a `Repartition` with the records to aggregate."""
    after: Topology | None = None
    """The Python part after the aggregation; it reads the changes as if they came from the changelog topic."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names that a checkpoint records for the section: its aggregation, or its sinks."""
        if self.aggregate is not None:
            return (self.aggregate.name,)
        return tuple(sink.name for sink in self.topology.sinks)

    @property
    def has_python(self) -> bool:
        return self.before is not None or self.after is not None

    @property
    def is_sql(self) -> bool:
        """Whether it works on typed rows; records that Spark would compute differently are left to the driver."""
        return any(map(is_sql, self.topology.sources))


@dataclass(frozen=True, eq=False)
class Cut:
    """A topology cut into sections and a hosted part."""

    topology: Topology
    sections: tuple[Section, ...]
    hosted: Topology | None
    """The part that runs as tasks in Python; None if there is none."""
    refusals: Mapping[str, NativeRefusalError]
    """For each aggregation and sink that is hosted or has a Python part: the node that needs Python, and why."""

    @property
    def has_python(self) -> bool:
        return self.hosted is not None or any(section.has_python for section in self.sections)

    @property
    def native_outputs(self) -> tuple[str, ...]:
        return tuple(name for section in self.sections for name in section.outputs)


def changelog_topic(aggregate: ir.Aggregate) -> str:
    """The name of the aggregation's changelog topic in Kafka Streams, without the application id."""
    return f"{aggregate.table.store}-changelog"


def cut_topology(
    topology: Topology, settings: TaskSettings, refused: Mapping[str, NativeRefusalError] | None = None
) -> Cut:
    """Decide for each output of a topology how it runs; `refused` nodes need Python in any case."""
    return _Cutting(topology, settings, refused or {}).cut()


class _Cutting:
    def __init__(self, topology: Topology, settings: TaskSettings, refused: Mapping[str, NativeRefusalError]) -> None:
        self._topology = topology
        self._settings = settings
        self._refused = refused
        self._refused_aggregates: Mapping[str, NativeRefusalError] = {}
        self._nodes = {node.name: node for node in topology.nodes}
        self._ancestors: dict[str, set[str]] = {}
        for node in topology.nodes:
            sources = [source.name for source in ir.inputs_of(node)]
            self._ancestors[node.name] = set(sources).union(*(self._ancestors[name] for name in sources))
        self._descendants: dict[str, set[str]] = {name: set() for name in self._nodes}
        for name, ancestors in self._ancestors.items():
            for ancestor in ancestors:
                self._descendants[ancestor].add(name)

    def cut(self) -> Cut:
        refusals: dict[str, NativeRefusalError] = {}
        sections: list[Section] = []
        native: set[str] = set()
        for node in self._topology.nodes:
            if isinstance(node, ir.Aggregate):
                try:
                    section = self._aggregate_section(node)
                except NativeRefusalError as refusal:
                    refusals[node.name] = refusal
                    continue
                sections.append(section)
                native |= {node.name, *self._descendants[node.name]}
                refusals.update(self._refusals_around(section, node))
        self._refused_aggregates = {name: refusal for name, refusal in refusals.items() if name not in native}
        expressions: dict[tuple[object, ...], list[str]] = {}
        for sink in self._topology.sinks:
            if sink.name in native:
                continue
            try:
                expressions.setdefault(self._reading_of_expressions(sink), []).append(sink.name)
            except NativeRefusalError as refusal:
                refusals[sink.name] = refusal
            else:
                native.add(sink.name)
        refusals.update(self._other_refusals(native | refusals.keys()))
        sections[:0] = [Section(Topology(self._with_ancestors(names))) for names in expressions.values()]
        return Cut(self._topology, tuple(sections), self._hosted_topology(native), refusals)

    # --- sinks behind expressions

    def _reading_of_expressions(self, sink: ir.Sink) -> tuple[object, ...]:
        """How the sources of a sink are read; raises if there are not only expressions between them and the sink."""
        nodes = self._with_ancestors([sink.name])
        for node in nodes:
            if node.name in self._refused_aggregates:
                raise self._refused_aggregates[node.name]
            if isinstance(node, ir.Repartition):
                raise NativeRefusalError(node, "Spark does not know which partition Kafka would choose for a key")
            if (refusal := self._refusal(node)) is not None:
                raise refusal
        if any(map(is_sql, nodes)):
            return self._reading_of_sql(nodes)
        return self._reading(nodes)

    @staticmethod
    def _reading_of_sql(nodes: Iterable[ir.Node]) -> tuple[object, ...]:
        """The source of a sink of SQL; each source has a section of its own."""
        for node in nodes:
            if not is_sql(node):
                raise NativeRefusalError(node, "runs in Python only between nodes of SQL")
        (source,) = (node.name for node in nodes if isinstance(node, ir.Source))
        return (source,)

    def _reading(self, nodes: Iterable[ir.Node]) -> tuple[object, ...]:
        sources = [node for node in nodes if isinstance(node, ir.Source)]
        readings = {(source.topic_pattern, source.offset_reset) for source in sources}
        if len(readings) > 1:
            raise NativeRefusalError(sources[1], "sources differ in how they are read")
        return readings.pop()

    # --- aggregations

    def _aggregate_section(self, node: ir.Aggregate) -> Section:
        refusal = self._refused.get(node.name) or aggregate_refusal(node, self._settings)
        if refusal is not None:
            raise refusal
        self._check_store(node)
        followers = [each for each in self._topology.nodes if each.name in self._descendants[node.name]]
        for follower in followers:
            self._check_follower(node, follower)
        ahead = [each for each in self._topology.nodes if each.name in self._ancestors[node.name]]
        for each in ahead:
            self._check_ahead(node, each)
        python_ahead, python_behind = any(map(self._refusal, ahead)), any(map(self._refusal, followers))
        if python_ahead:
            self._check_python_ahead(node, ahead)
        else:
            self._reading(ahead)
        if python_behind:
            self._check_no_repartition(followers)
        return Section(
            Topology([*ahead, node, *followers]),
            node,
            before=Topology(_before(node, ahead)) if python_ahead else None,
            after=Topology(_after(node, followers, self._settings)) if python_behind else None,
        )

    def _check_store(self, node: ir.Aggregate) -> None:
        for other in self._topology.nodes:
            if node.table.store in getattr(other, "connected", ()):
                raise NativeRefusalError(node, f"{other.name} reads its store, which Spark does not expose")

    def _check_follower(self, node: ir.Aggregate, follower: ir.Node) -> None:
        own = {node.name, *self._descendants[node.name]}
        if not isinstance(follower, _FOLLOWING):
            raise NativeRefusalError(
                node,
                f"its changes go to {type(follower).__name__} {follower.name}, and Spark gives those of different "
                "keys in no defined order",
            )
        if any(source.name not in own for source in ir.inputs_of(follower)):
            raise NativeRefusalError(node, f"its changes are merged with other records in {follower.name}")

    def _check_ahead(self, node: ir.Aggregate, each: ir.Node) -> None:
        if not isinstance(each, _PRECEDING):
            raise NativeRefusalError(each, "runs in Python only")
        if isinstance(each, ir.Source) and each.timestamps is not None:
            raise NativeRefusalError(each, "a timestamp extractor is a Python function")
        if isinstance(each, ir.Repartition) and each.partitioner is not None:
            raise NativeRefusalError(each, "the partition of each record is chosen by Python")

    @staticmethod
    def _check_no_repartition(nodes: Iterable[ir.Node]) -> None:
        for each in nodes:
            if isinstance(each, ir.Repartition):
                raise NativeRefusalError(each, "Python next to a native aggregation cannot repartition once more")

    def _check_python_ahead(self, node: ir.Aggregate, ahead: list[ir.Node]) -> None:
        """Refuse if a user's function feeds other nodes too: it may be called only once per record."""
        if self._settings.dead_letter_topic is not None:
            raise NativeRefusalError(node, "dead letters are written by Python only")
        self._check_no_repartition(each for each in ahead if each is not node.input)
        if isinstance(node.aggregator, ir.Fold) and not isinstance(node.input, ir.Repartition):
            raise NativeRefusalError(node, "Python before it hands on aggregates, and it takes other values")
        if isinstance(node.input, ir.Repartition) and not isinstance(node.input.value_serde, READABLE):
            raise NativeRefusalError(node.input, f"Spark cannot tell null from other values of {_kind(node.input)}")
        own = {node.name, *(each.name for each in ahead), *self._descendants[node.name]}
        for each in ahead:
            others = self._descendants[each.name] - own
            if others and not isinstance(each, ir.Source) and self._refusal(each) is not None:
                first = next(name for name in self._nodes if name in others)
                raise NativeRefusalError(each, f"needs Python and feeds {first} as well as {node.name}")

    def _refusals_around(self, section: Section, node: ir.Aggregate) -> dict[str, NativeRefusalError]:
        """Why parts of a section need Python: before the aggregation, and at each sink after it."""
        found = {}
        ahead = [each for each in section.topology.nodes if each.name in self._ancestors[node.name]]
        if section.before is not None:
            found[node.name] = next(refusal for each in ahead if (refusal := self._refusal(each)) is not None)
        if section.after is not None:
            for name in self._descendants[node.name]:
                if isinstance(self._nodes[name], ir.Sink) and (refusal := self._refusal_below(node, name)) is not None:
                    found[name] = refusal
        return found

    def _refusal_below(self, node: ir.Aggregate, name: str) -> NativeRefusalError | None:
        between = self._ancestors[name] & self._descendants[node.name] | {name}
        nodes = (self._nodes[each] for each in self._nodes if each in between)
        return next((refusal for each in nodes if (refusal := self._refusal(each)) is not None), None)

    def _other_refusals(self, decided: set[str]) -> dict[str, NativeRefusalError]:
        """Why the path to a node that is neither sink nor aggregation needs Python."""
        found = {}
        for name, after in self._descendants.items():
            if not after and name not in decided:
                refusals = filter(None, map(self._refusal, self._with_ancestors([name])))
                found[name] = next(refusals, NativeRefusalError(self._nodes[name], "runs in Python only"))
        return found

    # --- the hosted part

    def _hosted_topology(self, native: set[str]) -> Topology | None:
        leaves = [name for name, after in self._descendants.items() if not after and name not in native]
        if all(isinstance(self._nodes[name], ir.GlobalTableSource) for name in leaves) and native:
            # Global tables without processors are not read by any node.
            return None
        # Processors may read any global table without declaring it.
        tables = [table.name for table in self._topology.global_tables]
        return Topology(self._with_ancestors([*leaves, *tables])) if leaves else None

    def _refusal(self, node: ir.Node) -> NativeRefusalError | None:
        return self._refused.get(node.name) or node_refusal(node, self._settings)

    def _with_ancestors(self, names: Iterable[str]) -> list[ir.Node]:
        wanted = {one for name in names for one in (name, *self._ancestors[name])}
        return [node for node in self._topology.nodes if node.name in wanted]


def _kind(node: ir.Repartition) -> str:
    return type(node.value_serde).__name__


# --- Python around an aggregation ------------------------------------------------------------------------------


def _before(node: ir.Aggregate, ahead: list[ir.Node]) -> list[ir.Node]:
    """The nodes before an aggregation, and the repartitioning by which records leave them."""
    if isinstance(node.input, ir.Repartition):
        return ahead
    return [*ahead, handover(node)]


def handover(node: ir.Aggregate) -> ir.Repartition:
    """The records that Python writes for a native aggregation: the key as in the store, the value if needed.

    Records that come through a repartitioning are written by that node.
    """
    if isinstance(node.input, ir.Repartition):
        return node.input
    return ir.Repartition(
        name=f"{node.name}-input",
        origin=node.origin,
        input=node.input,
        topic=changelog_topic(node),
        key_serde=node.table.key_serde,
        value_serde=_PRESENCE if _only_presence_matters(node) else node.table.value_serde,
        partitions=1,
        drops_null_keys=True,
    )


def _only_presence_matters(node: ir.Aggregate) -> bool:
    fold = native_aggregate(node)
    return fold is not None and not fold.reads_value


def _no_bytes(value: Any) -> bytes:
    return b""


_PRESENCE: Serde = FunctionSerde(_no_bytes, bytes)
"""For values of which only the presence matters."""


def _after(node: ir.Aggregate, followers: list[ir.Node], settings: TaskSettings) -> list[ir.Node]:
    """The nodes after an aggregation, with a source in place of its changes."""
    source = ir.StreamSource(
        name=node.name,
        origin=node.origin,
        topics=(settings.internal_topic(changelog_topic(node)),),
        key_serde=node.table.key_serde,
        value_serde=node.table.value_serde,
    )
    made: dict[str, ir.Node] = {node.name: source}
    result: list[ir.Node] = [source]
    for follower in followers:
        fed = tuple(made[each.name] for each in ir.inputs_of(follower))
        if isinstance(follower, ir.ToStream):
            if follower.selector is None:
                made[follower.name] = fed[0]
                continue
            new: ir.Node = ir.SelectKey(
                name=follower.name, origin=follower.origin, input=fed[0], selector=follower.selector
            )
        else:
            new = with_inputs(follower, fed)
        made[follower.name] = new
        result.append(new)
    return result
