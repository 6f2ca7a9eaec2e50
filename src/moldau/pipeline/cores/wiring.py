"""Create the processors of a sub-topology for one task, and link them to each other and to the inputs.

Nothing runs here: `task` starts the processors. Start at `wire`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from moldau.pipeline.cores.builders import BUILDERS
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.failures import MissingBuilderError
from moldau.pipeline.cores.fusing.fused import Fused, fused_input
from moldau.pipeline.cores.handlers import log_and_fail, with_handler
from moldau.pipeline.cores.inputs import Input
from moldau.pipeline.cores.outputs import RepartitionOutput
from moldau.pipeline.cores.processor import Forward, Link, Processor
from moldau.pipeline.cores.stateless import PassThrough
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.subtopologies import SubTopology

__all__ = ["Wired", "wire"]


SCHEDULING = (ir.Process, ir.TableTransformValues)
"""Nodes whose user objects may create schedules."""


class Wired(NamedTuple):
    """A task's processors in topological order, and its inputs by the name of their node."""

    processors: list[Processor]
    inputs: dict[str, Input]


def wire(subtopology: SubTopology, context: TaskContext) -> Wired:
    """Create and link all processors; this opens stores, but starts no user code."""
    return _Wiring(subtopology, context).build()


class _Wiring:
    def __init__(self, subtopology: SubTopology, context: TaskContext) -> None:
        self._subtopology = subtopology
        self._context = context
        self._nodes = (*subtopology.global_tables, *subtopology.nodes)
        self._is_guarded = context.settings.processing_handler is not log_and_fail
        self._made: dict[str, tuple[Processor, ...]] = {}
        self._children: dict[Processor, list[Link]] = {}
        self._writers: dict[str, Processor] = {}
        """The output of each repartitioning written here; the same node may also be an input of this task."""

    def build(self) -> Wired:
        self._make()
        self._link()
        processors = [*(processor for made in self._made.values() for processor in made), *self._writers.values()]
        return Wired(processors, self._inputs())

    def _make(self) -> None:
        read = {node.name for node in self._subtopology.inputs}
        written = {node.name for node in self._subtopology.outputs}
        for node in self._nodes:
            if not isinstance(node, ir.Repartition):
                self._made[node.name] = self._build(node)
                continue
            if node.name in written:
                self._writers[node.name] = RepartitionOutput(node, self._context)
            if node.name in read:
                self._made[node.name] = (PassThrough(node, self._context),)

    def _build(self, node: ir.Node) -> tuple[Processor, ...]:
        builder = BUILDERS.get(type(node))
        if builder is None:
            raise MissingBuilderError(node)
        built = builder(node, self._context)
        return built if isinstance(built, tuple) else (built,)

    def _link(self) -> None:
        # In reverse topological order, so that the `take` of a node's children is final when it is linked.
        for node in reversed(self._nodes):
            if node.name in self._made:
                links = [link for child in self._nodes for link in self._links(node, child)]
                for processor in self._made[node.name]:
                    processor.link(links)
                    self._children[processor] = links

    def _links(self, node: ir.Node, child: ir.Node) -> Iterable[Link]:
        """One link for each edge from a node to another; a self-join has two, a merge with itself one."""
        if isinstance(child, ir.Repartition):
            if child.input is node and child.name in self._writers:
                writer = self._writers[child.name]
                yield Link(child, self._take(writer), None, writer)
            return
        processors = self._made.get(child.name, ())
        for index, source in enumerate(ir.inputs_of(child)):
            if source is node and processors:
                processor = processors[index if len(processors) > 1 else 0]
                take_value = None if self._is_guarded else processor.take_value
                yield Link(child, self._take(processor), take_value, processor)
                if isinstance(child, ir.Merge):
                    return

    def _inputs(self) -> dict[str, Input]:
        has_schedules = any(isinstance(node, SCHEDULING) for node in self._nodes)
        return {
            source.name: Input(
                source,
                self._context,
                self._take(self._made[source.name][0]),
                has_schedules=has_schedules,
                find_fused=partial(self._fuse, source),
            )
            for source in (*self._subtopology.global_tables, *self._subtopology.inputs)
        }

    def _fuse(self, source: ir.Source | ir.Repartition) -> Fused | None:
        if self._is_guarded:
            return None
        return fused_input(source, self._made[source.name][0], self._context, self._children)

    def _take(self, processor: Processor) -> Forward:
        """The function that calls a processor: directly where failures stop the pipeline, else through the handler."""
        return with_handler(processor) if self._is_guarded else processor.take
