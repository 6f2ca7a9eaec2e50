"""CPU per record of what Python does for the streams jobs, in one process: no Spark, no broker, no other noise.

Drives the code that runs in Spark's Python workers (`pipeline.spark.hosted`) and what the driver does with its rows up
to the producer, with the records of `bench.streams.jobs` as Arrow batches and state in a dictionary. Only CPU time is
measured, so that the figures are worth something on a busy machine too: `python -m bench.streams.python_path`. What
Spark's Java does is not in them. Start at `measured_job`.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import platform
import pstats
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa

from bench.streams.apps.moldau_app import UNCACHED, topology
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.runtime.kafka.delivery import _records
from moldau.pipeline.spark.compiler import work_of
from moldau.pipeline.spark.hosted import task_rows
from moldau.pipeline.spark.hosted.group_run import GroupRun
from moldau.pipeline.spark.hosted.host import StatelessHost
from moldau.pipeline.spark.hosted.state_channel import Entry
from moldau.pipeline.spark.hosted.work import Parcel, StageWork
from moldau.pipeline.spark.plan import Plan, Stage, Unit
from moldau.pipeline.spark.rows import BUNDLES, FINISHED, FROM_SOURCES, Table, binary_values, open_bundles, pack_rows
from moldau.pipeline.spark.sections import cut_topology

__all__ = ["measured_job"]

SHORT_RUN = task_rows.SHORT_RUN

JOBS = ("copy", "mapped-count", "word-count", "count", "windowed-count", "join")
PARTITIONS = 4
KEYS = 10_000
LINES = 50_000
STATELESS_ROWS = 10_000
"""Rows in an Arrow batch of `mapInArrow`."""
GROUP_ROWS = 75_000
"""Rows of one group in a batch of 300,000 records, 4 partitions."""
WORDS = [f"word{number:04}" for number in range(2_000)]


class MemoryState:
    """State in dictionaries; a `StateAccess`."""

    def __init__(self) -> None:
        self._maps: dict[str, dict[bytes, bytes]] = {}

    def get(self, state: str, key: bytes) -> bytes | None:
        return self._maps.setdefault(state, {}).get(key)

    def get_many(self, state: str, keys: Sequence[bytes]) -> list[bytes | None]:
        entries = self._maps.setdefault(state, {})
        return [entries.get(key) for key in keys]

    def write(self, entries: Iterable[Entry]) -> None:
        for state, key, value in entries:
            if value is None:
                self._maps.setdefault(state, {}).pop(key, None)
            else:
                self._maps.setdefault(state, {})[key] = value

    def items(self, state: str) -> Iterator[tuple[bytes, bytes]]:
        return iter(list(self._maps.setdefault(state, {}).items()))


class Input:
    """Makes rows as Spark passes them to Python."""

    def __init__(self) -> None:
        self._random = random.Random(17)
        self._offsets = count()
        self._lines = [" ".join(self._random.choices(WORDS, k=12)).encode() for _ in range(LINES)]
        self._keys = [f"key-{number:010}".encode() for number in range(KEYS)]

    def batch(self, slot: int, partition: int, index: int, rows: int, *, each_key: bool = False) -> pa.RecordBatch:
        """Records of one topic partition; `each_key` for the rows of a table."""
        offsets = [next(self._offsets) for _ in range(rows)]
        columns: dict[str, Any] = {
            "slot": slot,
            "input": index,
            "partition": partition,
            "offset": offsets,
            "timestamp": [1_700_000_000_000 + offset // 20 for offset in offsets],
            "key": self._keys[:rows] if each_key else self._random.choices(self._keys, k=rows),
            "value": self._random.choices(self._lines, k=rows),
        }
        return pack_rows(rows, columns, FROM_SOURCES)


class Clock:
    """CPU seconds of this process within `with` blocks, and a profile of them on demand."""

    def __init__(self, profile: cProfile.Profile | None) -> None:
        self.seconds = 0.0
        self._profile = profile

    def __enter__(self) -> None:
        if self._profile:
            self._profile.enable()
        self._began = time.process_time()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.process_time() - self._began
        if self._profile:
            self._profile.disable()


def measured_job(
    job: str, records: int, *, as_columns: bool = True, profile: cProfile.Profile | None = None
) -> dict[str, float]:
    """CPU in µs per input record: in the worker, and in the driver without the producer.

    Without `as_columns` each record is processed by itself, as it was before `pipeline.cores.fusing`.
    """
    task_rows.SHORT_RUN = SHORT_RUN if as_columns else records
    worker, driver = Clock(profile), Clock(profile)
    part, settings = _python_part(job)
    if part is None:
        for columns in _finished_batches(records, Input()):
            _send(driver, columns)
        return {"worker": 0.0, "driver": driver.seconds / records * 1e6}
    plan = Plan.of(part[0], {"input": PARTITIONS, "table": PARTITIONS, "output": PARTITIONS}, 2)
    stage = plan.stages[0]
    work = work_of(plan, stage, settings)
    if part[1]:
        work = replace(work, feeds_aggregate=True, feeds_count=as_columns)
    run = _stateless_run(work) if stage.is_stateless else _group_run(work)
    for is_warm, batch in _input_batches(plan, stage, records):
        clocks = (worker, driver) if is_warm else (Clock(None), Clock(None))
        with clocks[0]:
            rows = run(batch)
        if not part[1]:
            _send(clocks[1], rows)
    return {"worker": worker.seconds / records * 1e6, "driver": driver.seconds / records * 1e6}


def _python_part(job: str) -> tuple[tuple[Topology, bool] | None, TaskSettings]:
    """The part of a job that runs in Python, and whether it feeds a native aggregation; None if none does."""
    settings = TaskSettings(application_id=job, cache_max_bytes=0 if job in UNCACHED else 1)
    cut = cut_topology(topology(job), settings)
    if cut.hosted is not None:
        return (cut.hosted, False), settings
    before = next((section.before for section in cut.sections if section.before), None)
    return (None if before is None else (before, True)), settings


def _input_batches(plan: Plan, stage: Stage, records: int) -> Iterator[tuple[bool, pa.RecordBatch]]:
    """Batches, the first ones to warm up with: a table's rows, and a batch per partition."""
    rows, places = Input(), {point.topic: point for point in plan.inputs}
    size = STATELESS_ROWS if stage.is_stateless else GROUP_ROWS
    size = min(size, records // PARTITIONS)
    table, stream = places.get("table"), places["input"]
    for warm in (False, *[True] * (records // (size * PARTITIONS))):
        for partition in range(PARTITIONS):
            slot = stage.slot_of.get(Unit(stream.sub_topologies[0], partition), 0)
            if table is not None and not warm:
                yield False, rows.batch(slot, partition, table.index, KEYS, each_key=True)
            yield warm, rows.batch(slot, partition, stream.index, size)


def _stateless_run(work: StageWork) -> Callable[[pa.RecordBatch], list[pa.RecordBatch]]:
    host = StatelessHost(Parcel.of(work, shares_folders=True))
    return lambda batch: list(host(iter([batch])))


def _group_run(work: StageWork) -> Callable[[pa.RecordBatch], list[pa.RecordBatch]]:
    states = {slot: MemoryState() for slot in work.units}

    def run(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        slot = batch.column(0)[0].as_py()
        return list(GroupRun(work, slot, states[slot]).run(Table([batch])))

    return run


def _send(clock: Clock, bundled: Sequence[pa.RecordBatch]) -> None:
    """What `Compiled.output_batches` and `Delivery.send` do, without the call of the producer."""
    with clock:
        for rows in bundled:
            if rows.schema.names == BUNDLES.names:
                records = open_bundles(binary_values(rows.column("bundle")), FINISHED)
                (rows,) = pa.Table.from_batches(records, FINISHED).combine_chunks().to_batches()
            for _ in _records(rows, ["output"] * 8):
                pass


def _finished_batches(records: int, rows: Input) -> Iterator[list[pa.RecordBatch]]:
    size = min(STATELESS_ROWS, records)
    for _ in range(records // size):
        batch = rows.batch(0, 0, 0, size)
        known = {name: batch.column(name) for name in ("key", "value", "timestamp")}
        yield [pack_rows(size, {"output": 0, **known}, FINISHED)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.streams.python_path", description=__doc__)
    parser.add_argument("--only", action="append", choices=JOBS)
    parser.add_argument("--records", type=int, default=600_000)
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many is told")
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    options = parser.parse_args()
    print(f"{platform.machine()}, load {os.getloadavg()[0]:.0f}, {options.records:,} records\n")
    print("| job | µs in the worker, one by one | as columns | | µs in the driver, without the producer |")
    print("| --- | --- | --- | --- | --- |")
    for job in options.only or JOBS:
        profile = cProfile.Profile() if options.profile else None
        # In turn, because a busy machine has better and worse moments.
        runs = [
            (measured_job(job, options.records, as_columns=False), measured_job(job, options.records, profile=profile))
            for _ in range(options.rounds)
        ]
        single, columns = (min(run[way]["worker"] for run in runs) for way in (0, 1))
        driver = min(run[1]["driver"] for run in runs)
        ratio = f"{columns / single:.2f}×" if single else ""
        print(f"| {job} | {single:.2f} | {columns:.2f} | {ratio} | {driver:.2f} |", flush=True)
        if profile:
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
