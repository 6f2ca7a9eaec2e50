"""Runs a group's rows through its tasks: many rows at a time for one task, one at a time for tasks in a cycle.

Outputs are written for the next stage as they are produced. Start at `flow_of`; `group_run` feeds it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from moldau.pipeline.cores.fusing.columns import OutputColumns
from moldau.pipeline.cores.records import OutputRow
from moldau.pipeline.cores.task import Task
from moldau.pipeline.spark.hosted.task_rows import BundleWriter, InputRun, Origin, input_runs
from moldau.pipeline.spark.hosted.work import StageWork
from moldau.pipeline.spark.plan import Unit
from moldau.pipeline.spark.rows import Table

__all__ = ["GroupFlow", "flow_of", "marking"]

_ROWS_AT_ONCE = 20_000


def flow_of(work: StageWork, slot: int, tasks: Mapping[Unit, Task], writer: BundleWriter) -> GroupFlow:
    """The flow for a group: `_Cycle` if its tasks feed each other, else `_Solo`."""
    if slot in work.cycles:
        return _Cycle(work, tasks, writer)
    ((unit, task),) = tasks.items()
    return _Solo(work, unit, task, writer)


class GroupFlow(ABC):
    """Rows in, bundles out."""

    def take_in_steps(self, table: Table, origin: Origin, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Process the rows from `start` to before `end`, some thousands at a time."""
        for at in range(start, end, _ROWS_AT_ONCE):
            count = min(_ROWS_AT_ONCE, end - at)
            yield from self.take(table.slice(at, count), origin.slice(at, at + count))

    @abstractmethod
    def take(self, table: Table, origin: Origin) -> Iterator[pa.RecordBatch]:
        """Process rows completely."""

    @abstractmethod
    def punctuate(self, now_ms: int) -> Iterator[pa.RecordBatch]:
        """Call wall-clock punctuations that are due."""

    @abstractmethod
    def commit(self) -> Iterator[pa.RecordBatch]:
        """Forward the records that caches held back."""


class _Solo(GroupFlow):
    """A group of one task: it gets thousands of records at a time."""

    def __init__(self, work: StageWork, unit: Unit, task: Task, writer: BundleWriter) -> None:
        self._work = work
        self._origin = Origin.after_all(unit)
        self._task = task
        self._writer = writer

    def take(self, table: Table, origin: Origin) -> Iterator[pa.RecordBatch]:
        task, marks, start = self._task, list[int](), 0
        for run in input_runs(table, self._work):
            if not self._work.commits_each_record and (columns := self._columns(run)) is not None:
                # What left before is written first: records of a key stay in order.
                yield from self._writer.write(task.drain(), origin, marks)
                for outputs in columns:
                    yield from self._writer.write_columns(outputs, origin.slice(start, start + run.count))
                marks[:] = [0] * (start + run.count)
            else:
                self._take_rows(run, marks)
            start += run.count
        yield from self._writer.write(task.drain(), origin, marks)

    def _columns(self, run: InputRun) -> list[OutputColumns] | None:
        """What left when the records were processed as columns; None if they must be processed one by one."""
        if not run.has_columns or run.topic is None:
            return None
        found: Any = self._task.process_columns(run.node, run, run.topic, notes_causes=self._writer.forwards)
        return found  # type: ignore[no-any-return]

    def _take_rows(self, run: InputRun, marks: list[int]) -> None:
        task, rows = self._task, run.rows()
        if self._work.commits_each_record:
            for row in rows:
                task.process_batch(run.node, (row,))
                task.commit()
                marks.append(len(task.outputs))
        elif self._writer.forwards:
            task.process_batch(run.node, marking(rows, task.outputs, marks))
        else:
            task.process_batch(run.node, rows)

    def punctuate(self, now_ms: int) -> Iterator[pa.RecordBatch]:
        self._task.advance_wall_clock(now_ms)
        yield from self._writer.write(self._task.drain(), self._origin, None)

    def commit(self) -> Iterator[pa.RecordBatch]:
        self._task.commit()
        yield from self._writer.write(self._task.drain(), self._origin, None)


def marking(rows: Iterator[Any], outputs: list[OutputRow], marks: list[int]) -> Iterator[Any]:
    """Append the number of outputs to `marks` after each record: the task requests the next one when it is done."""
    for row in rows:
        yield row
        marks.append(len(outputs))


class _Cycle(GroupFlow):
    """Tasks that feed each other: each record is processed by all of them before the next one."""

    def __init__(self, work: StageWork, tasks: Mapping[Unit, Task], writer: BundleWriter) -> None:
        self._work = work
        self._tasks = tasks
        self._writer = writer
        self._origin = Origin.after_all(next(iter(tasks)))
        self._inner = {name.node: work.readers[index][0] for index, name in work.inputs.items() if name.is_repartition}
        self._topics = {name.node: name.topic for name in work.inputs.values()}
        self._queue: deque[tuple[Task, str, tuple[Any, ...]]] = deque()
        self._outputs: list[OutputRow] = []

    def take(self, table: Table, origin: Origin) -> Iterator[pa.RecordBatch]:
        marks = list[int]()
        places = zip(table.numbers("input").tolist(), table.numbers("target").tolist(), strict=True)
        for run in input_runs(table, self._work):
            for row in run.rows():
                self._queue.extend((task, run.node, row) for task in self._readers(*next(places)))
                self._work_off()
                marks.append(len(self._outputs))
        yield from self._write_outputs(origin, marks)

    def punctuate(self, now_ms: int) -> Iterator[pa.RecordBatch]:
        for task in self._tasks.values():
            task.advance_wall_clock(now_ms)
            self._carry(task)
        self._work_off()
        yield from self._write_outputs(self._origin, None)

    def commit(self) -> Iterator[pa.RecordBatch]:
        while True:
            before = len(self._outputs)
            for task in self._tasks.values():
                task.commit()
                self._carry(task)
            if not self._queue and len(self._outputs) == before:
                break
            self._work_off()
        yield from self._write_outputs(self._origin, None)

    def _readers(self, input_index: int, partition: int) -> list[Task]:
        sub_topologies = self._work.readers[input_index]
        if self._work.inputs[input_index].is_global:
            return [task for unit, task in self._tasks.items() if unit.sub_topology in sub_topologies]
        return [self._tasks[Unit(sub_topologies[0], partition)]]

    def _work_off(self) -> None:
        while self._queue:
            task, name, row = self._queue.popleft()
            task.process_batch(name, (row,))
            if self._work.commits_each_record:
                task.commit()
            self._carry(task)

    def _carry(self, task: Task) -> None:
        for output in task.drain():
            name, _, key, value, timestamp, headers, partition = output
            if name not in self._inner:
                self._outputs.append(output)
                continue
            assert partition is not None
            target = self._tasks[Unit(self._inner[name], partition)]
            row = (self._topics[name], partition, 0, timestamp, headers, key, value)
            self._queue.append((target, name, row))

    def _write_outputs(self, origin: Origin, marks: list[int] | None) -> Iterator[pa.RecordBatch]:
        outputs, self._outputs = self._outputs, []
        yield from self._writer.write(outputs, origin, marks)
