"""The tasks of one group of rows, kept alive between batches in the worker that ran them last.

To build a task anew and read its state for every batch would cost more than the batch. So a worker keeps its tasks, and
trusts them only if Spark's state holds the very stamp that they wrote with their last batch: another worker may have
run the group meanwhile, or Spark may have gone back to an older state. Start at `GroupRun`.
"""

from __future__ import annotations

import gc
import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from moldau.pipeline.cores.backends import StateBackend
from moldau.pipeline.cores.records import OutputRow
from moldau.pipeline.cores.task import Task
from moldau.pipeline.spark.plan import Unit
from moldau.pipeline.spark.rows import TICK, Table
from moldau.pipeline.spark.state import Backend, GroupState
from moldau.pipeline.spark.state_channel import StateChannel
from moldau.pipeline.spark.task_rows import BundleWriter, Origin, named_rows, ordered
from moldau.pipeline.spark.work import StageWork

__all__ = ["STAMP_STATE", "GroupRun", "marking", "without_garbage_collection"]

STAMP_STATE = "moldau-stamp"
"""The map in Spark's state that holds nothing but the stamp."""

_STAMP_KEY = b"stamp"
_ROWS_AT_ONCE = 20_000
_IDLE_S = 600


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """A batch makes many short-lived tuples and no circles: looking for circles takes up to 40 % of its time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class LiveTasks(NamedTuple):
    """Tasks with all they know, and the stamp of the state they know it from."""

    tasks: dict[Unit, Task]
    backends: list[tuple[Unit, Backend]]


class _Kept(NamedTuple):
    stamp: bytes
    live: LiveTasks
    used: float


_kept: dict[tuple[str, int], _Kept] = {}


class GroupRun:
    """One group in one batch."""

    def __init__(self, work: StageWork, slot: int, client: Any) -> None:
        self._work = work
        self._slot = slot
        self._channel = StateChannel(client)
        self._units = work.units[slot]

    def run(self, batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Process the rows of the group and give what comes of them; state is written at the end."""
        table = Table(batches)
        inputs = table.numbers("input")
        is_mine, is_tick = np.isin(inputs, list(self._work.inputs)), inputs == TICK
        if not (is_mine | is_tick).all():
            yield from table.where(~(is_mine | is_tick)).bundles()
        now_ms = int(table.numbers("timestamp")[is_tick].max()) if is_tick.any() else None
        records, origin = ordered(table.where(is_mine).records(), self._work.global_inputs)
        group = GroupState(self._channel, lambda: [key for key in records.values("key") if key is not None])
        live = self._live_tasks(group)
        writer = BundleWriter(self._work, self._slot)
        with without_garbage_collection():
            yield from self._processed(live, records, origin, now_ms, writer)
            yield from self._written(live, writer)

    def _processed(
        self, live: LiveTasks, table: Table, origin: Origin, now_ms: int | None, writer: BundleWriter
    ) -> Iterator[pa.RecordBatch]:
        if self._slot in self._work.circles:
            run: _Solo | _Circle = _Circle(self._work, live.tasks, writer)
        else:
            run = _Solo(self._work, self._units[0], live.tasks[self._units[0]], writer)
        from_records = origin.caused_by_records
        yield from _taken(run, table, origin, 0, from_records)
        if now_ms is not None:
            yield from run.punctuate(now_ms)
        yield from _taken(run, table, origin, from_records, table.count)
        yield from run.commit()
        for unit, task in live.tasks.items():
            task.flush()
            yield from writer.changes(task.changes, unit.partition)

    def _live_tasks(self, group: GroupState) -> LiveTasks:
        stamp = self._channel.get(STAMP_STATE, _STAMP_KEY)
        kept = _kept.pop((self._work.identity, self._slot), None)
        if kept is not None and kept.stamp == stamp:
            for _, backend in kept.live.backends:
                backend.attach(group)
            return kept.live
        live = LiveTasks({}, [])
        for unit in self._units:
            live.tasks[unit] = self._work.task(unit, lambda name, unit=unit: self._backend(live, group, name, unit))
        return live

    def _backend(self, live: LiveTasks, group: GroupState, name: str, unit: Unit) -> StateBackend:
        prefix = f"{unit.piece}/{unit.partition}/".encode() if self._slot in self._work.circles else b""
        backend = Backend(name, prefix)
        backend.attach(group)
        live.backends.append((unit, backend))
        return backend

    def _written(self, live: LiveTasks, writer: BundleWriter) -> Iterator[pa.RecordBatch]:
        for unit, backend in live.backends:
            changes = backend.write()
            if changes and self._work.exports_state:
                yield writer.state(unit, backend.state, changes)
        stamp = os.urandom(16)
        self._channel.write(STAMP_STATE, [(_STAMP_KEY, stamp)])
        now = time.monotonic()
        _kept[self._work.identity, self._slot] = _Kept(stamp, live, now)
        for key in [key for key, one in _kept.items() if one.used < now - _IDLE_S]:
            del _kept[key]


def _taken(run: _Solo | _Circle, table: Table, origin: Origin, start: int, end: int) -> Iterator[pa.RecordBatch]:
    for at in range(start, end, _ROWS_AT_ONCE):
        count = min(_ROWS_AT_ONCE, end - at)
        yield from run.take(table.slice(at, count), origin.slice(at, at + count))


class _Solo:
    """A group of one task: records go in by the thousand."""

    def __init__(self, work: StageWork, unit: Unit, task: Task, writer: BundleWriter) -> None:
        self._work = work
        self._origin = Origin.after_all(unit)
        self._task = task
        self._writer = writer

    def take(self, table: Table, origin: Origin) -> Iterator[pa.RecordBatch]:
        task, marks = self._task, list[int]()
        for name, rows in named_rows(table, self._work):
            if self._work.commits_each_record:
                for row in rows:
                    task.process_batch(name, (row,))
                    task.commit()
                    marks.append(len(task.outputs))
            elif self._writer.forwards:
                task.process_batch(name, marking(rows, task.outputs, marks))
            else:
                task.process_batch(name, rows)
        yield from self._writer.written(task.drain(), origin, marks)

    def punctuate(self, now_ms: int) -> Iterator[pa.RecordBatch]:
        self._task.advance_wall_clock(now_ms)
        yield from self._writer.written(self._task.drain(), self._origin, None)

    def commit(self) -> Iterator[pa.RecordBatch]:
        self._task.commit()
        yield from self._writer.written(self._task.drain(), self._origin, None)


def marking(rows: Iterator[Any], outputs: list[OutputRow], marks: list[int]) -> Iterator[Any]:
    """Note after each record how many outputs there are: a task asks for the next when it is done with the last."""
    for row in rows:
        yield row
        marks.append(len(outputs))


class _Circle:
    """Tasks that feed each other: each record is finished everywhere before the next begins."""

    def __init__(self, work: StageWork, tasks: dict[Unit, Task], writer: BundleWriter) -> None:
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
        for name, rows in named_rows(table, self._work):
            for row in rows:
                self._queue.extend((task, name, row) for task in self._readers(*next(places)))
                self._work_off()
                marks.append(len(self._outputs))
        yield from self._drained(origin, marks)

    def punctuate(self, now_ms: int) -> Iterator[pa.RecordBatch]:
        for task in self._tasks.values():
            task.advance_wall_clock(now_ms)
            self._carry(task)
        self._work_off()
        yield from self._drained(self._origin, None)

    def commit(self) -> Iterator[pa.RecordBatch]:
        while True:
            before = len(self._outputs)
            for task in self._tasks.values():
                task.commit()
                self._carry(task)
            if not self._queue and len(self._outputs) == before:
                break
            self._work_off()
        yield from self._drained(self._origin, None)

    def _readers(self, input_index: int, partition: int) -> list[Task]:
        pieces = self._work.readers[input_index]
        if self._work.inputs[input_index].is_global:
            return [task for unit, task in self._tasks.items() if unit.piece in pieces]
        return [self._tasks[Unit(pieces[0], partition)]]

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

    def _drained(self, origin: Origin, marks: list[int] | None) -> Iterator[pa.RecordBatch]:
        outputs, self._outputs = self._outputs, []
        yield from self._writer.written(outputs, origin, marks)
