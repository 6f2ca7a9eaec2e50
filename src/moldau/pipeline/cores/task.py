"""A task: one sub-topology on one partition, with its state.

A task has no clock and does no I/O: its host passes it records and the wall clock time, drains its outputs and provides
backends for its stores. A new task with the same backends continues exactly where the flushed one stopped. `wiring`
creates its processors. Start at `Task`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any

from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.failures import ServiceFailedError, as_record_error
from moldau.pipeline.cores.fusing.columns import InputColumns
from moldau.pipeline.cores.fusing.fused import Outputs
from moldau.pipeline.cores.inputs import Row
from moldau.pipeline.cores.processor import Processor
from moldau.pipeline.cores.records import InputRecord, OutputRow
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.cores.stores.backends import Backends, MemoryBackend, StateBackend
from moldau.pipeline.cores.stores.store import Store, StoreChange
from moldau.pipeline.cores.wiring import wire
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.old_values import TableTraits, table_plan
from moldau.pipeline.ir.row_nodes import AddRecordColumns, SetTimestamp
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
        wall_clock_ms: int | None = None,
    ) -> None:
        """`partition_counts` is by topic, and by the topic name of a `Repartition` without the application id.

        `wall_clock_ms` is the time that processors see while they start.
        """
        self.subtopology = subtopology
        self.settings = settings or TaskSettings()
        self.context = TaskContext(
            partition=partition,
            partition_counts=partition_counts,
            backends=backends,
            settings=self.settings,
            traits=_traits(subtopology),
        )
        self._changes: dict[str, list[StoreChange]] = {}
        self._processors, self._inputs = wire(subtopology, self.context)
        self._started: list[Processor] = []
        if wall_clock_ms is not None:
            self.tell_wall_clock(wall_clock_ms)
        self._start()

    # --- records in

    def process(self, input_name: str, record: InputRecord) -> None:
        """Process one record, with everything that it causes in this task."""
        self.process_batch(input_name, (record,))

    def process_batch(self, input_name: str, rows: Iterable[Row]) -> None:
        """Process records of one input in order; rows are tuples in the order of `InputRecord`."""
        source = self._inputs[input_name]
        self._run(lambda: source.feed(rows))

    def process_columns(
        self, input_name: str, columns: InputColumns, topic: str, *, notes_causes: bool = False, counts: bool = False
    ) -> Outputs | None:
        """Process records of one input and topic as columns, and return what left; see `fusing.fused`.

        Returns None, and has done nothing, if the records must be passed to `process_batch`.
        """
        fused = self._inputs[input_name].fused
        if fused is None:
            return None
        outputs: list[Outputs | None] = []
        self._run(lambda: outputs.append(fused.process(columns, topic, notes_causes=notes_causes, counts=counts)))
        return outputs[0]

    def tell_wall_clock(self, now_ms: int) -> None:
        """Set the wall clock time for the next records, without running schedules."""
        self.context.punctuations.tell_wall_clock(now_ms)

    def advance_wall_clock(self, now_ms: int) -> None:
        """Set the wall clock time, and run the schedules that are due."""
        self.context.current = None
        self._run(lambda: self._punctuate(now_ms))

    # --- records and state out

    @property
    def outputs(self) -> list[OutputRow]:
        """The outputs since the last drain, in order; see `OutputRecord` for the fields."""
        return self.context.outputs

    def drain(self) -> list[OutputRow]:
        """Return the outputs and clear them."""
        outputs = self.context.outputs
        self.context.outputs = []
        return outputs

    def commit(self) -> None:
        """Forward what caching held back."""
        self._run(self._commit)

    def flush(self) -> None:
        """Write all state to the backends; `commit` must be called before, so that caches are empty."""
        for name, written in self.context.flush().items():
            self._changes.setdefault(name, []).extend(written)

    @property
    def changes(self) -> dict[str, list[StoreChange]]:
        """Entries of queryable stores that flushes have written since the last access, by store; clears them."""
        changes, self._changes = self._changes, {}
        return changes

    def store(self, name: str) -> Store:
        """A store by name, for inspection."""
        return self.context.store(name)

    @property
    def dropped_records(self) -> Mapping[tuple[str, str], int]:
        """How many records were deliberately skipped, by node and reason."""
        return self.context.dropped

    @property
    def has_wall_clock_schedules(self) -> bool:
        """Whether there are schedules by the wall clock."""
        return self.context.punctuations.has_wall_clock_schedules

    def close(self) -> None:
        """Close all processors, even if one of them raises; state that was not flushed is lost."""
        started, self._started = self._started, []
        with ExitStack() as ends:
            for processor in reversed(started):
                ends.callback(processor.close)

    def _start(self) -> None:
        try:
            for processor in self._processors:
                processor.start()
                self._started.append(processor)
        except Exception:
            self.close()
            raise
        self.context.punctuations.is_starting = False

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
        except (Exception, SystemExit) as error:
            # A function that calls sys.exit would end its worker without an error.
            failure = as_record_error(error, self.context)
            if failure is error:
                raise
            if not isinstance(failure, ServiceFailedError):
                self.context.dead_letter(failure)
            raise failure from error


def store_names(subtopology: SubTopology, settings: TaskSettings | None = None) -> tuple[str, ...]:
    """The backends that tasks of this sub-topology use; processors are created to find out, but not started."""
    names: list[str] = []

    def note(name: str) -> StateBackend:
        names.append(name)
        return MemoryBackend()

    context = TaskContext(
        partition=0,
        partition_counts=_AnyCount(),
        backends=note,
        settings=settings or TaskSettings(),
        traits=_traits(subtopology),
    )
    wire(subtopology, context)
    return tuple(dict.fromkeys(names))


def _traits(subtopology: SubTopology) -> dict[str, TableTraits]:
    return table_plan((*subtopology.global_tables, *subtopology.nodes))


class _AnyCount(dict[str, int]):
    """Partition counts for a task that is never run."""

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
    AddRecordColumns,
    SetTimestamp,
)


def is_stateless(subtopology: SubTopology) -> bool:
    """Whether records are processed independently, so that tasks can be recreated at any time."""
    return not subtopology.global_tables and all(isinstance(node, STATELESS) for node in subtopology.nodes)
