"""The tasks of one group of rows, kept alive between batches in the worker that ran them last.

To build a task anew and read its state for every batch would cost more than the batch. So a worker keeps its tasks, and
trusts them only if Spark's state holds the very mark that they wrote with their last batch: another worker may have
run the group meanwhile, or Spark may have gone back to an older state. Start at `GroupRun`.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from moldau.pipeline.cores.context import CELLS
from moldau.pipeline.cores.stores.backends import MemoryBackend, StateBackend
from moldau.pipeline.cores.task import Task
from moldau.pipeline.spark.group_flow import flow_of
from moldau.pipeline.spark.group_record import RECORD_KEY, STORE_PREFIX, GroupRecord
from moldau.pipeline.spark.plan import Unit
from moldau.pipeline.spark.rows import TICK, Table
from moldau.pipeline.spark.state import Backend, GroupState
from moldau.pipeline.spark.state_channel import StateChannel
from moldau.pipeline.spark.task_rows import BundleWriter, Origin, ordered
from moldau.pipeline.spark.work import StageWork

__all__ = ["GroupRun", "without_garbage_collection"]

_IDLE_S = 600

logger = logging.getLogger(__name__)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """A batch makes many short-lived tuples and no circles: looking for circles takes up to 40 % of its time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class LiveTasks(NamedTuple):
    """Tasks with all they know, and the backends they know it from."""

    tasks: dict[Unit, Task]
    backends: list[tuple[Unit, Backend]]
    cells: dict[Unit, MemoryBackend]

    def close(self) -> None:
        """End the processors of tasks that are not run again; what they know is in Spark's state."""
        for unit, task in self.tasks.items():
            try:
                task.close()
            except Exception:
                # Whoever needs the group next is not to blame, and gets tasks of its own.
                logger.warning("a processor of sub-topology %s failed to close", unit, exc_info=True)


class _Kept(NamedTuple):
    """Live tasks between two batches, and the mark of the state that they have left."""

    mark: bytes
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
        live = self._live_tasks(group, now_ms)
        writer = BundleWriter(self._work, self._slot)
        try:
            with without_garbage_collection():
                yield from self._processed(live, records, origin, now_ms, writer)
                yield from self._written(live, writer)
        except BaseException:
            live.close()
            raise

    def _processed(
        self, live: LiveTasks, table: Table, origin: Origin, now_ms: int | None, writer: BundleWriter
    ) -> Iterator[pa.RecordBatch]:
        flow = flow_of(self._work, self._slot, live.tasks, writer)
        from_records = origin.caused_by_records
        yield from flow.taken(table, origin, 0, from_records)
        if now_ms is not None:
            yield from flow.punctuate(now_ms)
        yield from flow.taken(table, origin, from_records, table.count)
        yield from flow.commit()
        for unit, task in live.tasks.items():
            task.flush()
            yield from writer.changes(task.changes, unit.partition)

    def _live_tasks(self, group: GroupState, now_ms: int | None) -> LiveTasks:
        """The tasks of the last batch if Spark's state is as they left it, else new ones; all of them know the time."""
        record = GroupRecord.read(self._channel.get(self._work.states[0], RECORD_KEY))
        kept = _kept.pop((self._work.identity, self._slot), None)
        if kept is None or kept.mark != record.mark:
            if kept is not None:
                kept.live.close()
            return self._new_tasks(group, record, now_ms)
        for _, backend in kept.live.backends:
            backend.attach(group)
        if now_ms is not None:
            for task in kept.live.tasks.values():
                task.tell_wall_clock(now_ms)
        return kept.live

    def _new_tasks(self, group: GroupState, record: GroupRecord, now_ms: int | None) -> LiveTasks:
        live = LiveTasks({}, [], {})
        try:
            for unit in self._units:
                backends = partial(self._backend, live, group, record, unit)
                live.tasks[unit] = self._work.task(unit, backends, wall_clock_ms=now_ms)
        except Exception:
            live.close()
            raise
        return live

    def _backend(self, live: LiveTasks, group: GroupState, record: GroupRecord, unit: Unit, name: str) -> StateBackend:
        if name == CELLS:
            return live.cells.setdefault(unit, MemoryBackend(record.cells.get(unit)))
        of_unit = f"{unit.piece}/{unit.partition}/".encode() if self._slot in self._work.circles else b""
        backend = Backend(name, STORE_PREFIX + of_unit, filled=record.filled)
        backend.attach(group)
        live.backends.append((unit, backend))
        return backend

    def _written(self, live: LiveTasks, writer: BundleWriter) -> Iterator[pa.RecordBatch]:
        changed = [(unit, backend, backend.taken_changes()) for unit, backend in live.backends]
        record = GroupRecord.of((backend for _, backend in live.backends), live.cells)
        entries = chain.from_iterable(backend.entries(changes) for _, backend, changes in changed)
        self._channel.write(chain(entries, [(self._work.states[0], RECORD_KEY, record.written())]))
        if self._work.exports_state:
            yield from (writer.state(unit, backend.state, changes) for unit, backend, changes in changed if changes)
            yield from (writer.state(unit, CELLS, cells.entries) for unit, cells in live.cells.items() if cells.entries)
        now = time.monotonic()
        _kept[self._work.identity, self._slot] = _Kept(record.mark, live, now)
        for key in [key for key, one in _kept.items() if one.used < now - _IDLE_S]:
            _kept.pop(key).live.close()
