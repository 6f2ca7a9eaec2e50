"""Runs tasks inside Spark: a stateful processor for stages with state, a function over Arrow batches for the others.

Both run in Python workers. Start at `TaskHost` and `StatelessHost`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from moldau.pipeline.cores.fusing.columns import Counted, OutputColumns
from moldau.pipeline.cores.fusing.fused import Outputs
from moldau.pipeline.cores.stores.backends import MemoryBackend
from moldau.pipeline.cores.task import Task
from moldau.pipeline.spark.failures import marking_failures
from moldau.pipeline.spark.hosted.arrow_groups import receive_groups
from moldau.pipeline.spark.hosted.bundling import row_objects, table_of
from moldau.pipeline.spark.hosted.group_flow import marking
from moldau.pipeline.spark.hosted.group_run import GroupRun, without_garbage_collection
from moldau.pipeline.spark.hosted.ordering import Numbers
from moldau.pipeline.spark.hosted.state_access import StateAccess, opened_state
from moldau.pipeline.spark.hosted.task_rows import (
    BundleWriter,
    FoldWriter,
    InputRun,
    Origin,
    input_runs,
)
from moldau.pipeline.spark.hosted.work import Parcel, StageWork
from moldau.pipeline.spark.plan import Unit
from moldau.pipeline.spark.rows import Table

__all__ = ["StatelessHost", "StatelessRun", "TaskHost"]


class TaskHost(StatefulProcessor):
    """Runs the groups of a stage; a group is one slot."""

    def __init__(self, parcel: Parcel, takes_groups: bool) -> None:
        """With `takes_groups` rows come as groups of `arrow_groups`, else each is a bundle."""
        self._parcel = parcel
        self._takes_groups = takes_groups
        self._state: StateAccess | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return (_unpack_host, (self._parcel, self._takes_groups))

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state: one map for each store."""
        work = self._parcel.stage_work()
        self._state = opened_state(handle, work.states, public_only=work.public_only)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        """Process the rows of one slot; bundles that finished in an earlier stage are passed through."""
        (slot,) = key
        table = Table([row.group for row in rows]) if self._takes_groups else table_of(rows)
        if slot < 0:
            yield from chain.from_iterable(map(row_objects, _in_order(table)))
            return
        assert self._state is not None
        with marking_failures():
            batches = GroupRun(self._parcel.stage_work(), slot, self._state).run(table)
            yield from chain.from_iterable(map(row_objects, batches))

    def close(self) -> None:
        """Does nothing: the tasks are kept for the next batch."""


def _unpack_host(parcel: Parcel, takes_groups: bool) -> TaskHost:
    if takes_groups:
        receive_groups()
    return TaskHost(parcel, takes_groups)


def _in_order(table: Table) -> list[pa.RecordBatch]:
    return table.take(np.lexsort((table.numbers("offset"), table.numbers("input")))).bundles()


class StatelessHost:
    """Runs a stateless stage: rows are processed as they arrive, partition by partition."""

    def __init__(self, parcel: Parcel) -> None:
        self._parcel = parcel

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The function for `mapInArrow`."""
        with marking_failures(), without_garbage_collection():
            run = StatelessRun(self._parcel.stage_work())
            for batch in batches:
                if batch.num_rows:
                    yield from run.take(Table([batch]))
            yield from run.finish()


def _write(
    writer: BundleWriter | FoldWriter, outputs: OutputColumns | Counted, origin: Origin | None
) -> Iterator[pa.RecordBatch]:
    if isinstance(writer, BundleWriter):
        assert isinstance(outputs, OutputColumns)
        return writer.write_columns(outputs, origin)
    return writer.write_columns(outputs) if isinstance(outputs, OutputColumns) else writer.add(outputs)


_stateless_tasks: dict[tuple[str, Unit], Task] = {}


class StatelessRun:
    """One Spark task of a stateless stage."""

    def __init__(self, work: StageWork) -> None:
        self._work = work
        self._inputs = np.array(list(work.inputs), np.int64)
        self._writers: dict[Unit, BundleWriter | FoldWriter] = {}
        self._clocks: dict[tuple[int, int], int] = {}

    def take(self, table: Table) -> Iterator[pa.RecordBatch]:
        is_mine = np.isin(table.numbers("input"), self._inputs) & (table.numbers("slot") >= 0)
        if not is_mine.all():
            yield from table.where(~is_mine).bundles()
            table = table.where(is_mine)
        table = table.records()
        targets, inputs = table.numbers("target"), table.numbers("input")
        units = targets * len(self._work.inputs) + np.searchsorted(np.sort(self._inputs), inputs)
        cuts = [0, *(np.flatnonzero(np.diff(units)) + 1).tolist(), table.count]
        for start, end in pairwise(cuts):
            if end > start:
                (sub_topology,) = self._work.readers[int(inputs[start])]
                yield from self._take_run(table.slice(start, end - start), Unit(sub_topology, int(targets[start])))

    def _take_run(self, table: Table, unit: Unit) -> Iterator[pa.RecordBatch]:
        """Process rows of one input and one partition, in order."""
        task, writer = self._task(unit), self._writer(unit)
        origin = self._origin(table) if writer.forwards else None
        marks = list[int]()
        for run in input_runs(table, self._work):
            columns = self._columns(task, run, writer)
            if columns is not None:
                yield from chain.from_iterable(_write(writer, outputs, origin) for outputs in columns)
                marks.extend([0] * run.count)
            else:
                rows = run.rows()
                task.process_batch(run.node, marking(rows, task.outputs, marks) if writer.forwards else rows)
        if self._work.store_output is not None and isinstance(writer, BundleWriter):
            yield writer.store_rows(table, self._work.store_output)
        yield from writer.write(task.drain(), origin, marks)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What was held back to the end of the Spark task."""
        for writer in self._writers.values():
            if isinstance(writer, FoldWriter):
                yield from writer.finish()

    @staticmethod
    def _columns(task: Task, run: InputRun, writer: BundleWriter | FoldWriter) -> Outputs | None:
        """What left when the records were processed as columns; None if they must be processed one by one."""
        if not run.has_columns or run.topic is None:
            return None
        counts = isinstance(writer, FoldWriter) and writer.counts
        return task.process_columns(run.node, run, run.topic, notes_causes=writer.forwards, counts=counts)

    def _origin(self, table: Table) -> Origin:
        lane, partition, offset = (table.numbers(name) for name in ("lane", "partition", "offset"))
        lineage = table.lineage()
        clock = table.numbers("clock") if table.has("clock") else self._clock(table, lane, partition)
        return Origin(clock, lane, partition, offset, lineage)

    def _clock(self, table: Table, lane: Numbers, partition: Numbers) -> Numbers:
        """For each row the largest timestamp so far in its topic partition, within the whole Spark task."""
        place = int(lane[0]), int(partition[0])
        clock: Numbers = np.maximum.accumulate(table.numbers("timestamp"))
        if place in self._clocks:
            clock = np.maximum(clock, self._clocks[place])
        self._clocks[place] = int(clock[-1])
        return clock

    def _task(self, unit: Unit) -> Task:
        key = self._work.identity, unit
        task = _stateless_tasks.get(key)
        if task is None:
            if len(_stateless_tasks) > 1000:
                _stateless_tasks.clear()
            task = _stateless_tasks[key] = self._work.task(unit, lambda name: MemoryBackend())
        task.drain()
        return task

    def _writer(self, unit: Unit) -> BundleWriter | FoldWriter:
        if unit not in self._writers:
            self._writers[unit] = (
                FoldWriter(counts=self._work.feeds_count)
                if self._work.feeds_aggregate
                else BundleWriter(self._work, unit.partition)
            )
        return self._writers[unit]
