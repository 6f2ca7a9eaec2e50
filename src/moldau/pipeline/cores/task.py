"""One sub-topology on one partition: records in, records out, state in between.

A task has no clock and does no I/O: its host feeds it records, tells it the time of day, carries its outputs away and
gives it backends for its stores. A task made anew from the same backends goes on exactly where the flushed one stopped.
Start at `Task`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moldau.pipeline.cores.backends import Backends, MemoryBackend, StateBackend
from moldau.pipeline.cores.builders import BUILDERS
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.failures import MissingBuilderError, ServiceFailedError, as_record_error
from moldau.pipeline.cores.guarding import guarded
from moldau.pipeline.cores.handlers import log_and_fail
from moldau.pipeline.cores.inputs import Input, Row
from moldau.pipeline.cores.outputs import RepartitionOutput
from moldau.pipeline.cores.processor import Forward, Link, Processor
from moldau.pipeline.cores.records import InputRecord, OutputRow
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.cores.stateless import PassThrough
from moldau.pipeline.cores.store import Store, StoreChange
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.old_values import table_plan
from moldau.pipeline.ir.subtopologies import SubTopology

__all__ = ["Task", "is_stateless", "store_names"]


class Task:
    """Runs a sub-topology for one partition."""

    def __init__(
        self,
        subtopology: SubTopology,
        *,
        partition: int,
        partition_counts: Mapping[str, int],
        backends: Backends,
        settings: TaskSettings | None = None,
    ) -> None:
        """`partition_counts` is by topic, and by the plain topic name of a `Repartition`."""
        self.subtopology = subtopology
        self.settings = settings or TaskSettings()
        nodes = (*subtopology.global_tables, *subtopology.nodes)
        self.context = TaskContext(
            partition=partition,
            partition_counts=partition_counts,
            backends=backends,
            settings=self.settings,
            traits=table_plan(nodes),
        )
        self._changes: dict[str, list[StoreChange]] = {}
        self._processors: list[Processor] = []
        self._inputs: dict[str, Input] = {}
        self._build(nodes)
        for processor in self._processors:
            processor.start()
        self.context.punctuations.is_starting = False

    # --- records in

    def process(self, input_name: str, record: InputRecord) -> None:
        """Process one record to its end."""
        self.process_batch(input_name, (record,))

    def process_batch(self, input_name: str, rows: Iterable[Row]) -> None:
        """Process records of one input in order; rows are tuples in the order of `InputRecord`."""
        source = self._inputs[input_name]
        self._run(lambda: source.feed(rows))

    def advance_wall_clock(self, now_ms: int) -> None:
        """Tell the time of day, for schedules that follow it."""
        self.context.current = None
        self._run(lambda: self._punctuate(now_ms))

    # --- records and state out

    @property
    def outputs(self) -> list[OutputRow]:
        """What left the task since the last drain, in order; see `OutputRecord` for the fields."""
        return self.context.outputs

    def drain(self) -> list[OutputRow]:
        """Take the outputs away."""
        outputs = self.context.outputs
        self.context.outputs = []
        return outputs

    def commit(self) -> None:
        """Forward what caching held back."""
        self._run(self._commit)

    def flush(self) -> None:
        """Write all state to the backends; what is cached must have been committed before."""
        for name, written in self.context.flush().items():
            self._changes.setdefault(name, []).extend(written)

    @property
    def changes(self) -> dict[str, list[StoreChange]]:
        """Entries of queryable stores that flushes have written since the last call, by store."""
        changes, self._changes = self._changes, {}
        return changes

    def store(self, name: str) -> Store:
        """A store by name, for inspection."""
        return self.context.store(name)

    @property
    def dropped_records(self) -> Mapping[tuple[str, str], int]:
        """How many records were left out on purpose, by node and reason."""
        return self.context.dropped

    @property
    def has_wall_clock_schedules(self) -> bool:
        """Whether anything waits for the time of day."""
        return self.context.punctuations.has_wall_clock_schedules

    def close(self) -> None:
        """End the processors; state that was not flushed is lost."""
        for processor in self._processors:
            processor.close()

    # --- making the graph

    def _build(self, nodes: tuple[ir.Node, ...]) -> None:
        read = {node.name for node in self.subtopology.inputs}
        written = {node.name for node in self.subtopology.outputs}
        made: dict[str, tuple[Processor, ...]] = {}
        writers: dict[str, Processor] = {}
        for node in nodes:
            if isinstance(node, ir.Repartition):
                if node.name in written:
                    writers[node.name] = RepartitionOutput(node, self.context)
                if node.name in read:
                    made[node.name] = (PassThrough(node, self.context),)
            else:
                made[node.name] = self._made(node)
        self._link(nodes, made, writers)
        has_schedules = any(isinstance(node, ir.Process | ir.TableTransformValues) for node in nodes)
        for source in (*self.subtopology.global_tables, *self.subtopology.inputs):
            take = self._take(made[source.name][0])
            self._inputs[source.name] = Input(source, self.context, take, has_schedules=has_schedules)
        self._processors = [*(p for processors in made.values() for p in processors), *writers.values()]

    def _made(self, node: ir.Node) -> tuple[Processor, ...]:
        builder = BUILDERS.get(type(node))
        if builder is None:
            raise MissingBuilderError(node)
        built = builder(node, self.context)
        return built if isinstance(built, tuple) else (built,)

    def _link(
        self, nodes: tuple[ir.Node, ...], made: dict[str, tuple[Processor, ...]], writers: dict[str, Processor]
    ) -> None:
        # From the end to the beginning, so that a node's children know already how they want to be called.
        for node in reversed(nodes):
            if node.name in made:
                links = [
                    link for child in nodes for link in self._links(node, child, made.get(child.name, ()), writers)
                ]
                for processor in made[node.name]:
                    processor.link(links)

    def _links(
        self, node: ir.Node, child: ir.Node, processors: tuple[Processor, ...], writers: dict[str, Processor]
    ) -> Iterable[Link]:
        """One link for each edge from a node to another; a self-join has two, a merge with itself one."""
        if isinstance(child, ir.Repartition):
            if child.input is node and child.name in writers:
                yield Link(child, self._take(writers[child.name]))
            return
        for index, source in enumerate(ir.inputs_of(child)):
            if source is node and processors:
                processor = processors[index if len(processors) > 1 else 0]
                yield Link(child, self._take(processor), None if self._is_guarded else processor.take_value)
                if isinstance(child, ir.Merge):
                    return

    @property
    def _is_guarded(self) -> bool:
        return self.settings.processing_handler is not log_and_fail

    def _take(self, processor: Processor) -> Forward:
        """How a processor is called: bare where the first failure ends everything, else with its failures caught."""
        return guarded(processor) if self._is_guarded else processor.take

    def _punctuate(self, now_ms: int) -> None:
        self.context.punctuations.punctuate_wall_clock(now_ms)
        self.context.finish_record()

    def _commit(self) -> None:
        self.context.current = None
        for release in self.context.at_commit:
            release()
        self.context.finish_record()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            failure = as_record_error(error, self.context)
            if failure is error:
                raise
            if not isinstance(failure, ServiceFailedError):
                self.context.dead_letter(failure)
            raise failure from error


def store_names(subtopology: SubTopology, settings: TaskSettings | None = None) -> tuple[str, ...]:
    """The backends that tasks of this sub-topology will ask for."""
    names: list[str] = []

    def note(name: str) -> StateBackend:
        names.append(name)
        return MemoryBackend()

    counts = _AnyCount()
    Task(subtopology, partition=0, partition_counts=counts, backends=note, settings=settings).close()
    return tuple(dict.fromkeys(names))


class _AnyCount(dict[str, int]):
    """Partition counts for a task that is only looked at."""

    def __missing__(self, topic: str) -> int:
        return 1


STATELESS: tuple[type[Any], ...] = (
    ir.StreamSource,
    ir.Filter,
    ir.Map,
    ir.MapValues,
    ir.FlatMap,
    ir.FlatMapValues,
    ir.SelectKey,
    ir.Peek,
    ir.ForEach,
    ir.Merge,
    ir.Split,
    ir.BranchOutput,
    ir.Repartition,
    ir.Sink,
)


def is_stateless(subtopology: SubTopology) -> bool:
    """Whether each record is processed without memory of others, so that tasks may come and go."""
    return not subtopology.global_tables and all(isinstance(node, STATELESS) for node in subtopology.nodes)
