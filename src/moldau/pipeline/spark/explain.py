"""Which path each node of a topology takes through Spark, and why, as text.

Start at `explanation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.functions import PythonFunction
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.spark.native_checks import NativeRefusalError, functions_of, native_aggregate
from moldau.pipeline.spark.paths import path_of
from moldau.pipeline.spark.plan import Plan, Stage

__all__ = ["explain", "explanation"]


def explain(
    topology: Topology, config: Mapping[str, Any], partition_counts: Mapping[str, int], shuffle_partitions: int = 2
) -> str:
    """What would become of a topology, without Spark; an expression may still turn out to need Python."""
    refusal: NativeRefusalError | None = None
    try:
        native_aggregate(topology, TaskSettings.of(config))
    except NativeRefusalError as error:
        refusal = error
    return explanation(Plan.of(topology, partition_counts, shuffle_partitions), refusal)


def explanation(plan: Plan, refusal: NativeRefusalError | None) -> str:
    """The text for a topology that runs natively where there is no refusal, else as the stages of its plan."""
    return "\n".join(_native_lines(plan.topology) if refusal is None else _hosted_lines(plan, refusal))


def _native_lines(topology: Topology) -> Iterator[str]:
    yield "One Spark query without Python: every node is an expression of Spark's own."
    for node in topology.nodes:
        yield _line(node, path_of(node, is_native=True))
    if any(isinstance(node, ir.Aggregate) for node in topology.nodes):
        yield "Caching is on, so each batch tells one change per key, with the largest timestamp and without headers."


def _hosted_lines(plan: Plan, refusal: NativeRefusalError) -> Iterator[str]:
    count = len(plan.stages)
    yield f"One Spark query of {count} stage{'s' if count > 1 else ''} with Python, because of {refusal}."
    for stage in plan.stages:
        yield f"Stage {stage.number}: {_manner(stage)}"
        for piece in stage.pieces:
            yield f"  sub-topology {piece.index}"
            for node in (*piece.global_tables, *piece.nodes):
                yield "  " + _line(node, _reason(node))


def _manner(stage: Stage) -> str:
    if stage.is_stateless:
        return "Arrow batches through a Python function (mapInArrow), no shuffle, no state"
    groups = len(stage.units)
    tasks = sum(map(len, stage.units.values()))
    text = f"transformWithState, state in RocksDB; {tasks} tasks in {groups} group{'s' if groups > 1 else ''} of rows"
    if stage.circles:
        text += "; sub-topologies that feed each other share one group, because Spark's stages cannot go back"
    return text


def _reason(node: ir.Node) -> str:
    path = path_of(node, is_native=False)
    calls = [one for one in functions_of(node) if isinstance(one, PythonFunction)]
    return f"{path}; calls {calls[0].origin}" if calls else path


def _line(node: ir.Node, path: str) -> str:
    return f"  {node.name} {type(node).__name__} ({node.origin}): {path}"
