"""Describes as text how each part of a topology runs on Spark, and why some parts need Python.

Start at `explanation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.cores.task import STATELESS
from moldau.pipeline.ir import foreign_key as fk
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.functions import PythonFunction
from moldau.pipeline.ir.row_nodes import AddRecordColumns, SetTimestamp
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.spark.native.checks import functions_of
from moldau.pipeline.spark.native.realtime import realtime_aggregates, realtime_refusal
from moldau.pipeline.spark.plan import Plan, Stage
from moldau.pipeline.spark.sections import Cut, Section, cut_topology

__all__ = ["HOSTED", "NATIVE", "REWRITTEN", "explain", "explanation", "path_of", "realtime_explanation"]


def explain(
    topology: Topology, config: Mapping[str, Any], partition_counts: Mapping[str, int], shuffle_partitions: int = 2
) -> str:
    """The explanation without starting Spark; an expression may still turn out to need Python."""
    settings = TaskSettings.of(config)
    refusal = realtime_refusal(topology, settings)
    if config.get("moldau.latency") == "realtime":
        if refusal is None:
            return realtime_explanation(topology)
        return f"moldau.latency=realtime is not possible: {refusal}"
    cut = cut_topology(topology, settings)
    hosted = None if cut.hosted is None else Plan.of(cut.hosted, partition_counts, shuffle_partitions)
    return explanation(cut, hosted, settings)


def realtime_explanation(topology: Topology) -> str:
    """The explanation for a topology that runs in real-time mode."""
    lines = ["One Spark query in real-time mode without Python, at least once; records get the time of writing."]
    lines += [_line(node, path_of(node, is_native=True, is_realtime=True)) for node in topology.nodes]
    aggregates = realtime_aggregates(topology)
    if aggregates:
        lines.append(
            f"{_number(len(aggregates), 'aggregation')} in one groupBy: every change is emitted, cached or not. "
            "Stores that can be queried follow their changelog topics."
        )
    if any(node.window is not None for node in aggregates):
        lines.append("A window takes records for at least a day after its end: grace is not looked at.")
    return "\n".join(lines)


def explanation(cut: Cut, hosted: Plan | None, settings: TaskSettings) -> str:
    """The explanation for the sections of a topology and the plan of the hosted part."""
    refusal = realtime_refusal(cut.topology, settings)
    can = "possible" if refusal is None else f"not possible: {refusal}"
    return "\n".join([*_lines(cut, hosted), f"moldau.latency=realtime is {can}"])


def _lines(cut: Cut, hosted: Plan | None) -> Iterator[str]:
    yield _summary(cut, hosted)
    for number, section in enumerate(cut.sections, start=1):
        yield f"Native section {number}: {_contents(section)}"
        yield from _section_lines(section)
    if hosted is not None:
        yield from _hosted_lines(hosted)
    if cut.has_python:
        yield "In Python because of:"
        yield from dict.fromkeys(f"  {refusal}" for refusal in cut.refusals.values())
    if any(section.aggregate is not None for section in cut.sections):
        yield (
            "Caching is on, so each batch emits one change per key of a native aggregation, with the largest timestamp "
            "and without headers."
        )


def _summary(cut: Cut, hosted: Plan | None) -> str:
    if not cut.has_python:
        return "One Spark query without Python: every node is an expression of Spark's own."
    stages = 0 if hosted is None else len(hosted.stages)
    around = sum((section.before is not None) + (section.after is not None) for section in cut.sections)
    python = f"{_number(stages + around, 'stage')} with Python"
    if not cut.sections:
        return f"One Spark query of {python}, because of {next(iter(cut.refusals.values()), 'its operators')}."
    return f"One Spark query of {_number(len(cut.sections), 'native section')} and {python}."


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _contents(section: Section) -> str:
    if section.aggregate is None:
        text = "expressions from topic to topic, without Python"
        if not section.is_sql:
            return text
        return f"{text}; a record that Spark would compute differently is left to Python, in the driver"
    python = [place for place, part in (("before", section.before), ("after", section.after)) if part is not None]
    if not python:
        return "an aggregation, without Python"
    return f"an aggregation, with Python {' and '.join(python)} it (mapInArrow, no state)"


def _section_lines(section: Section) -> Iterator[str]:
    before, after = _names(section.before), _names(section.after)
    for node in section.topology.nodes:
        in_python = node.name in (before if _is_before(section, node) else after) and node is not section.aggregate
        yield _line(node, _python(node) if in_python else path_of(node, is_native=True))


def _is_before(section: Section, node: ir.Node) -> bool:
    nodes = section.topology.nodes
    return section.aggregate is not None and nodes.index(node) < nodes.index(section.aggregate)


def _names(topology: Topology | None) -> frozenset[str]:
    return frozenset() if topology is None else frozenset(node.name for node in topology.nodes)


def _hosted_lines(plan: Plan) -> Iterator[str]:
    for stage in plan.stages:
        yield f"Stage {stage.number}: {_manner(stage)}"
        for sub_topology in stage.sub_topologies:
            yield f"  sub-topology {sub_topology.index}"
            for node in (*sub_topology.global_tables, *sub_topology.nodes):
                yield "  " + _line(node, _python(node))


def _manner(stage: Stage) -> str:
    if stage.is_stateless:
        return "Arrow batches through a Python function (mapInArrow), no shuffle, no state"
    tasks = sum(map(len, stage.units.values()))
    shares = f"{_number(tasks, 'task')} in {_number(len(stage.units), 'group')} of rows"
    text = f"transformWithState, state in RocksDB; {shares}"
    if stage.cycles:
        text += "; sub-topologies that feed each other share one group, because Spark's stages cannot go back"
    return text


def _python(node: ir.Node) -> str:
    path = path_of(node, is_native=False)
    calls = _python_functions(node)
    return f"{path}; calls {calls[0].origin}" if calls else path


def _python_functions(node: ir.Node) -> list[PythonFunction]:
    functions: Iterable[Any] = functions_of(node)
    return [one for one in functions if isinstance(one, PythonFunction)]


def _line(node: ir.Node, path: str) -> str:
    return f"  {node.name} {type(node).__name__}{node.origin.in_brackets}: {path}"


# --- how each kind of node runs; a test checks that every kind is in exactly one table -------------------------

NATIVE: dict[type[ir.Node], str] = {
    ir.StreamSource: "Kafka connector",
    ir.Filter: "where",
    ir.Map: "select",
    ir.MapValues: "select",
    ir.SelectKey: "select",
    ir.Merge: "the ways of all inputs",
    ir.Split: "where",
    ir.BranchOutput: "where",
    ir.Aggregate: "groupBy().agg(), one change per key and batch",
    ir.Repartition: "groupBy",
    ir.ToStream: "nothing to do",
    ir.Sink: "select",
    AddRecordColumns: "select",
    SetTimestamp: "select",
}
"""Nodes that Spark can compute natively; in a hosted part, tasks run them too."""

HOSTED: dict[type[ir.Node], str] = {
    ir.TableSource: "table",
    ir.GlobalTableSource: "table, whole in every task",
    ir.GlobalStoreSource: "the user's processor, and its store whole in every task",
    ir.FlatMap: "Python function",
    ir.FlatMapValues: "Python function",
    ir.Peek: "Python function",
    ir.ForEach: "Python function",
    ir.ToTable: "table",
    ir.TableFilter: "table",
    ir.TableMapValues: "table",
    ir.TableTransformValues: "the user's transformer",
    ir.GroupTable: "changes of a table",
    ir.AggregateTable: "aggregation with undo",
    ir.Cogroup: "aggregation of several streams",
    ir.StreamStreamJoin: "windowed join",
    ir.StreamTableJoin: "look-up in a table",
    ir.StreamGlobalTableJoin: "look-up in a global table",
    ir.TableTableJoin: "join of tables",
    ir.Suppress: "buffer",
    ir.Process: "the user's processor",
    fk.ForeignKeySubscribe: "first step of a foreign-key join",
    fk.ForeignKeyRows: "left rows of a foreign-key join",
    fk.ForeignKeyLookup: "second step of a foreign-key join",
    fk.ForeignKeyResolve: "third step of a foreign-key join",
}
"""Nodes that only the tasks of `pipeline.cores` run, inside Spark's Python workers."""

REWRITTEN: dict[type[ir.Node], str] = {
    ir.ForeignKeyJoin: "three steps with repartitionings between them: ir.rewrites.foreign_key",
}
"""Nodes that are rewritten to other nodes before anything runs."""


def path_of(node: ir.Node, *, is_native: bool, is_realtime: bool = False) -> str:
    """How a node runs, as text."""
    if is_realtime and isinstance(node, ir.Aggregate):
        return "native: groupBy().agg(), every change"
    if is_native:
        return f"native: {NATIVE.get(type(node), 'select')}"
    return "Python, no state" if isinstance(node, STATELESS) else "Python, in a task with state"
