"""The tasks of one group of rows, cached between batches in the worker that last ran them.

Creating a task and reading its state for every batch would cost more than the batch. So a worker caches its tasks, and
reuses them only if Spark's state contains the mark that they wrote with their last batch: another worker may have run
the group since then, or Spark may have gone back to an older state. The mark, the group's cells and the names of the
stores in use are one entry of Spark's state (`GroupRecord`): opening another map for them would take as long as all the
worker does for one record. Start at `GroupRun`.
"""

from __future__ import annotations

import gc
import logging
import os
import pickle
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from moldau.pipeline.cores.context import CELLS
from moldau.pipeline.cores.stores.backends import MemoryBackend, StateBackend
from moldau.pipeline.cores.task import Task
from moldau.pipeline.spark.hosted.group_flow import flow_of
from moldau.pipeline.spark.hosted.state import Backend, GroupState
from moldau.pipeline.spark.hosted.state_access import StateAccess
from moldau.pipeline.spark.hosted.task_rows import BundleWriter, Origin, rows_in_order
from moldau.pipeline.spark.hosted.work import StageWork
from moldau.pipeline.spark.plan import Unit
from moldau.pipeline.spark.rows import TICK, Table

__all__ = ["RECORD_KEY", "STORE_PREFIX", "GroupRecord", "GroupRun", "without_garbage_collection"]

RECORD_KEY = b"r"
STORE_PREFIX = b"s"
"""The prefix of all store keys, which may be any bytes, to distinguish them from other keys."""

_MARK_SIZE = 16


class GroupRecord(NamedTuple):
    """The state of a group after a batch."""

    mark: bytes
    """A new random value after each batch."""
    filled: frozenset[bytes]
    """The stores that were ever written to; new tasks need not read the others."""
    cells: Mapping[Unit, Mapping[bytes, bytes]]

    @classmethod
    def of(cls, backends: Iterable[Backend], cells: Mapping[Unit, MemoryBackend]) -> GroupRecord:
        """The record of a batch that has just been processed."""
        filled = frozenset(backend.identity for backend in backends if not backend.is_new)
        return cls(os.urandom(_MARK_SIZE), filled, {unit: backend.entries for unit, backend in cells.items()})

    @classmethod
    def decode(cls, data: bytes | None) -> GroupRecord:
        """The record of the last batch; an empty one if there was none."""
        if data is None:
            return cls(b"", frozenset(), {})
        mark, filled, cells = pickle.loads(data)
        return cls(mark, frozenset(filled), {Unit(*unit): entries for unit, entries in cells.items()})

    def encode(self) -> bytes:
        cells = {(unit.sub_topology, unit.partition): dict(entries) for unit, entries in self.cells.items()}
        return pickle.dumps((self.mark, sorted(self.filled), cells))


_IDLE_S = 600

logger = logging.getLogger(__name__)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Disable garbage collection: a batch makes many tuples but no cycles, and GC takes up to 40 % of its time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class LiveTasks(NamedTuple):
    """Tasks with their cached state, and the backends it was read from."""

    tasks: dict[Unit, Task]
    backends: list[tuple[Unit, Backend]]
    cells: dict[Unit, MemoryBackend]

    def close(self) -> None:
        """Close the processors of tasks that are not run again; their state is in Spark."""
        for unit, task in self.tasks.items():
            try:
                task.close()
            except Exception:
                # The failure does not concern the next run of the group, which gets its own tasks.
                logger.warning("a processor of sub-topology %s failed to close", unit, exc_info=True)


class _Kept(NamedTuple):
    """Live tasks between two batches, and the mark of the state that they wrote."""

    mark: bytes
    live: LiveTasks
    used: float


_kept: dict[tuple[str, int], _Kept] = {}


class GroupRun:
    """One group in one batch."""

    def __init__(self, work: StageWork, slot: int, state: StateAccess) -> None:
        self._work = work
        self._slot = slot
        self._channel = state
        self._units = work.units[slot]

    def run(self, table: Table) -> Iterator[pa.RecordBatch]:
        """Process the rows of the group and yield the outputs; state is written at the end."""
        inputs = table.numbers("input")
        is_mine, is_tick = np.isin(inputs, list(self._work.inputs)), inputs == TICK
        if not (is_mine | is_tick).all():
            yield from table.where(~(is_mine | is_tick)).bundles()
        now_ms = int(table.numbers("offset")[is_tick].max()) if is_tick.any() else None
        records, origin = rows_in_order(table.where(is_mine).records(), self._work.global_inputs)
        group = GroupState(self._channel, lambda: [key for key in records.values("key") if key is not None])
        live = self._live_tasks(group, now_ms)
        writer = BundleWriter(self._work, self._slot)
        try:
            with without_garbage_collection():
                yield from self._process(live, records, origin, now_ms, writer)
                yield from self._write_state(live, writer)
        except BaseException:
            live.close()
            raise

    def _process(
        self, live: LiveTasks, table: Table, origin: Origin, now_ms: int | None, writer: BundleWriter
    ) -> Iterator[pa.RecordBatch]:
        flow = flow_of(self._work, self._slot, live.tasks, writer)
        from_records = origin.count_from_records
        yield from flow.take_in_steps(table, origin, 0, from_records)
        if now_ms is not None:
            yield from flow.punctuate(now_ms)
        yield from flow.take_in_steps(table, origin, from_records, table.count)
        yield from flow.commit()
        for unit, task in live.tasks.items():
            task.flush()
            yield from writer.changes(task.changes, unit.partition)

    def _live_tasks(self, group: GroupState, now_ms: int | None) -> LiveTasks:
        """The tasks of the last batch if Spark's state is unchanged since then, else new ones; all get the time."""
        record = GroupRecord.decode(self._channel.get(self._work.states[0], RECORD_KEY))
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
        of_unit = f"{unit.sub_topology}/{unit.partition}/".encode() if self._slot in self._work.cycles else b""
        backend = Backend(name, STORE_PREFIX + of_unit, filled=record.filled)
        backend.attach(group)
        live.backends.append((unit, backend))
        return backend

    def _write_state(self, live: LiveTasks, writer: BundleWriter) -> Iterator[pa.RecordBatch]:
        changed = [(unit, backend, backend.drain_changes()) for unit, backend in live.backends]
        record = GroupRecord.of((backend for _, backend in live.backends), live.cells)
        entries = chain.from_iterable(backend.entries(changes) for _, backend, changes in changed)
        self._channel.write(chain(entries, [(self._work.states[0], RECORD_KEY, record.encode())]))
        if self._work.exports_state:
            yield from (writer.state(unit, backend.state, changes) for unit, backend, changes in changed if changes)
            yield from (writer.state(unit, CELLS, cells.entries) for unit, cells in live.cells.items() if cells.entries)
        now = time.monotonic()
        _kept[self._work.identity, self._slot] = _Kept(record.mark, live, now)
        for key in [key for key, one in _kept.items() if one.used < now - _IDLE_S]:
            _kept.pop(key).live.close()
