"""The processors of a sub-topology, made and linked for one task: who feeds whom, and where records come in.

Nothing runs here: `task` starts what is made. Start at `wire`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from moldau.pipeline.cores.builders import BUILDERS
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.failures import MissingBuilderError
from moldau.pipeline.cores.handlers import guarded, log_and_fail
from moldau.pipeline.cores.inputs import Input
from moldau.pipeline.cores.outputs import RepartitionOutput
from moldau.pipeline.cores.processor import Forward, Link, Processor
from moldau.pipeline.cores.stateless import PassThrough
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.subtopologies import SubTopology

__all__ = ["Wired", "wire"]


SCHEDULING = (ir.Process, ir.TableTransformValues)
"""Nodes whose objects may ask to be called back as time passes."""


class Wired(NamedTuple):
    """A task's processors in the order of the topology, and its inputs by the name of their node."""

    processors: list[Processor]
    inputs: dict[str, Input]


def wire(subtopology: SubTopology, context: TaskContext) -> Wired:
    """Make all processors and link them; stores are opened on the way, and no code of the user's is started."""
    return _Wiring(subtopology, context).finished()


class _Wiring:
    def __init__(self, subtopology: SubTopology, context: TaskContext) -> None:
        self._subtopology = subtopology
        self._context = context
        self._nodes = (*subtopology.global_tables, *subtopology.nodes)
        self._is_guarded = context.settings.processing_handler is not log_and_fail
        self._made: dict[str, tuple[Processor, ...]] = {}
        self._writers: dict[str, Processor] = {}
        """Of each repartitioning that is written here: it may be read here too, as another processor."""

    def finished(self) -> Wired:
        self._make()
        self._link()
        processors = [*(processor for made in self._made.values() for processor in made), *self._writers.values()]
        return Wired(processors, self._inputs())

    def _make(self) -> None:
        read = {node.name for node in self._subtopology.inputs}
        written = {node.name for node in self._subtopology.outputs}
        for node in self._nodes:
            if not isinstance(node, ir.Repartition):
                self._made[node.name] = self._built(node)
                continue
            if node.name in written:
                self._writers[node.name] = RepartitionOutput(node, self._context)
            if node.name in read:
                self._made[node.name] = (PassThrough(node, self._context),)

    def _built(self, node: ir.Node) -> tuple[Processor, ...]:
        builder = BUILDERS.get(type(node))
        if builder is None:
            raise MissingBuilderError(node)
        built = builder(node, self._context)
        return built if isinstance(built, tuple) else (built,)

    def _link(self) -> None:
        # From the end to the beginning, so that a node's children know already how they want to be called.
        for node in reversed(self._nodes):
            if node.name in self._made:
                links = [link for child in self._nodes for link in self._links(node, child)]
                for processor in self._made[node.name]:
                    processor.link(links)

    def _links(self, node: ir.Node, child: ir.Node) -> Iterable[Link]:
        """One link for each edge from a node to another; a self-join has two, a merge with itself one."""
        if isinstance(child, ir.Repartition):
            if child.input is node and child.name in self._writers:
                yield Link(child, self._take(self._writers[child.name]))
            return
        processors = self._made.get(child.name, ())
        for index, source in enumerate(ir.inputs_of(child)):
            if source is node and processors:
                processor = processors[index if len(processors) > 1 else 0]
                yield Link(child, self._take(processor), None if self._is_guarded else processor.take_value)
                if isinstance(child, ir.Merge):
                    return

    def _inputs(self) -> dict[str, Input]:
        has_schedules = any(isinstance(node, SCHEDULING) for node in self._nodes)
        return {
            source.name: Input(
                source, self._context, self._take(self._made[source.name][0]), has_schedules=has_schedules
            )
            for source in (*self._subtopology.global_tables, *self._subtopology.inputs)
        }

    def _take(self, processor: Processor) -> Forward:
        """How a processor is called: bare where the first failure ends everything, else with its failures caught."""
        return guarded(processor) if self._is_guarded else processor.take
