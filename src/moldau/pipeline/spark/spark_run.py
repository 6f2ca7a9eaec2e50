"""Runs a topology on real Spark with piped records: the counterpart of `pipeline.cores.in_memory_run` for comparison.

Records are in Spark's own memory source, so no broker is needed; everything else is as in production: the same plan,
the same hosts, the same state. Records are buffered until results are requested, and then make one batch, or several if
one batch would not process them in the order in which they were piped. Start at `SparkRun`.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from typing import TYPE_CHECKING

from moldau.pipeline.cores.failures import StateError
from moldau.pipeline.cores.partitioning import partition_hash
from moldau.pipeline.cores.records import Headers, InputRecord, OutputRecord
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.cores.stores.backends import Backends, MemoryBackend
from moldau.pipeline.cores.stores.store import Store
from moldau.pipeline.cores.task import Task
from moldau.pipeline.ir.copartitioning import task_count
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.spark.compiler import TestMode, compile_topology
from moldau.pipeline.spark.driver.session import open_session, session_settings
from moldau.pipeline.spark.failures import cause_of
from moldau.pipeline.spark.job import Job
from moldau.pipeline.spark.memory_reader import MemoryReader
from moldau.pipeline.spark.plan import STATE_OUTPUT, Unit, store_output
from moldau.pipeline.spark.rows import binary_values, header_tuples

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkRun"]


class SparkRun:
    """A running query and the buffered records; every topic has the same number of partitions."""

    def __init__(
        self,
        topology: Topology,
        settings: TaskSettings,
        *,
        partitions: int = 1,
        wall_clock_ms: int = 0,
        commits_each_record: bool = True,
        is_native: bool = False,
        public_only: bool = False,
        spark: SparkSession | None = None,
    ) -> None:
        """Uses the process's session if none is passed in, or starts a new one.

        With `is_native` Spark computes natively what it can; that state cannot be inspected. With `public_only` nothing
        is used that PySpark does not promise to keep.
        """
        spark = spark or open_session(session_settings({}, threads=2))
        self._reader = MemoryReader(spark)
        self._waiting: list[InputRecord] = []
        self._order = _PipedOrder(topology)
        self._outputs: list[OutputRecord] = []
        self._offsets: Counter[tuple[str, int]] = Counter()
        self._state: dict[Unit, dict[str, MemoryBackend]] = {}
        self._settings = settings
        self._partitions = partitions
        self._hash = partition_hash()
        mode = TestMode(settings, commits_each_record, is_native, public_only)
        job = _job(topology, settings, partitions)
        self.compiled = compile_topology(spark, topology, job, reader=self._reader, test=mode)
        self._shown = {point.name for point in self.compiled.plan.outputs} - {STATE_OUTPUT}
        self._shown -= {store_output(store) for store in topology.stores}
        with ExitStack() as held:
            self._folder = held.enter_context(tempfile.TemporaryDirectory(prefix="moldau-spark-run-"))
            self._start()
            held.callback(self._stop)
            self.advance_wall_clock(wall_clock_ms)
            self._held = held.pop_all()

    # --- records in and out

    def pipe(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        *,
        headers: Headers = (),
        partition: int | None = None,
    ) -> None:
        """Append a record to a topic; it is processed with the next batch."""
        if partition is None:
            partition = 0 if key is None else self._hash(key, self._partitions)
        offset = self._offsets[topic, partition]
        self._offsets[topic, partition] += 1
        record = InputRecord(topic, partition, offset, timestamp, headers, key, value)
        if not self._order.follows(record):
            self.run_batch()
            self._order.follows(record)
        self._waiting.append(record)

    def advance_wall_clock(self, now_ms: int) -> None:
        """Send the wall-clock time to every task, after all records so far."""
        self.run_batch()
        if self.compiled.plan.needs_ticks:
            self._process([self._reader.tick(now_ms)])

    def run_batch(self) -> None:
        """Process the buffered records as one batch."""
        if self._waiting:
            self._process([self._reader.line(record) for record in self._waiting])
        self._waiting.clear()
        self._order.begin()

    def drain(self) -> list[OutputRecord]:
        """The records written to topics since the last call; those of one key are in order."""
        self.run_batch()
        outputs, self._outputs = self._outputs, []
        return outputs

    # --- state

    def stores(self, name: str) -> list[Store]:
        """The stores of this name with the contents of Spark's state, one per partition."""
        self.run_batch()
        found = [task.context.stores[name] for task in self._tasks() if name in task.context.stores]
        if not found:
            known = ", ".join(sorted(self.store_names())) or "none"
            raise StateError(f"there is no store {name!r}; the stores of this topology are: {known}")
        return found

    def store_names(self) -> set[str]:
        """The names of all stores."""
        return {name for task in self._tasks() for name in task.context.stores}

    def _tasks(self) -> list[Task]:
        """Tasks created here from the contents of Spark's state, to inspect their stores."""
        plan = self.compiled.plan
        units = [
            (sub_topology, Unit(sub_topology.index, partition))
            for sub_topology in plan.topology.subtopologies
            for partition in range(task_count(sub_topology.inputs, plan.counts))
        ]
        return [
            Task(
                sub_topology,
                partition=unit.partition,
                partition_counts=plan.counts,
                backends=self._backends(unit),
                settings=self._settings,
            )
            for sub_topology, unit in units
        ]

    def _backends(self, unit: Unit) -> Backends:
        stores = self._state.setdefault(unit, {})
        return lambda name: stores.setdefault(name, MemoryBackend())

    # --- the query

    def restart(self) -> None:
        """Stop the query and continue from its checkpoint, without relying on what workers have cached."""
        self.run_batch()
        self._stop()
        self._start()

    def close(self) -> None:
        """Stop the query, and remove its files; a failed start does the same."""
        self._held.close()

    def _start(self) -> None:
        self._query = (
            self.compiled.frame.writeStream.outputMode(self.compiled.output_mode)
            .foreachBatch(self._collect)
            .option("checkpointLocation", f"{self._folder}/checkpoint")
            .queryName(f"moldau-spark-run-{next(_numbers)}")
            .start()
        )

    def _stop(self) -> None:
        self._query.stop()

    def _process(self, lines: list[str]) -> None:
        self._reader.add(lines)
        try:
            self._query.processAllAvailable()
        except Exception as error:
            raise cause_of(error) or error from None

    def _collect(self, frame: DataFrame, batch: int) -> None:
        for output in self._records(frame):
            if output.output == STATE_OUTPUT:
                self._note_state(output)
            elif output.output in self._shown:
                self._outputs.append(output)

    def _records(self, frame: DataFrame) -> Iterator[OutputRecord]:
        points = self.compiled.plan.outputs
        for batch in self.compiled.output_batches(frame.toArrow().to_batches()):
            columns = [binary_values(batch.column(name)) for name in ("output", "topic", "key", "value")]
            rest = (batch.column("timestamp").to_pylist(), header_tuples(batch.column("headers")))
            for number, topic, *row in zip(*columns, *rest, batch.column("partition").to_pylist(), strict=True):
                yield OutputRecord(points[number].name, topic or points[number].topic, *row)

    def _note_state(self, output: OutputRecord) -> None:
        sub_topology, _, store = output.topic.partition("/")
        assert output.partition is not None
        assert output.key is not None
        backend = self._backends(Unit(int(sub_topology), output.partition))(store)
        if output.value is None:
            backend.delete(output.key)
        else:
            backend.put(output.key, output.value)


class _PipedOrder:
    """Checks whether records, processed as one batch, would keep the order in which they were piped."""

    def __init__(self, topology: Topology) -> None:
        tables, sources = topology.global_tables, topology.sources
        self._lanes = {topic: lane for lane, node in enumerate((*tables, *sources)) for topic in node.topics}
        self._global = {topic for table in tables for topic in table.topics}
        self.begin()

    def begin(self) -> None:
        self._last: tuple[bool, int, int, int] | None = None
        self._clocks: dict[tuple[str, int], int] = {}

    def follows(self, record: InputRecord) -> bool:
        place = record.topic, record.partition
        clock = max(record.timestamp, self._clocks.get(place, record.timestamp))
        is_global = record.topic in self._global
        taken = not is_global, 0 if is_global else clock, self._lanes.get(record.topic, 0), record.partition
        if self._last is not None and taken < self._last:
            return False
        self._last = taken
        self._clocks[place] = clock
        return True


def _job(topology: Topology, settings: TaskSettings, partitions: int) -> Job:
    sources = (*topology.sources, *topology.global_tables)
    topics = {topic for source in sources for topic in source.topics} | {sink.topic for sink in topology.sinks}
    return Job(
        application_id=settings.application_id,
        partition_counts={topic: partitions for topic in topics if topic is not None},
        settings={},
    )


_numbers = count(1)
