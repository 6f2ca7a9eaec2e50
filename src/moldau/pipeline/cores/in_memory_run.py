"""Run a whole topology in memory: tasks for every partition, and records passed from one to the next.

One input record is processed in all sub-topologies before the next one, and every task commits after each record, like
Kafka Streams' own test driver. Start at `InMemoryRun.pipe`.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable
from itertools import count

from moldau.core.errors import MoldauError
from moldau.pipeline.cores.failures import StateError
from moldau.pipeline.cores.partitioning import partition_hash
from moldau.pipeline.cores.records import Headers, InputRecord, OutputRecord
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.cores.stores.backends import Backends, MemoryBackend
from moldau.pipeline.cores.stores.store import Store
from moldau.pipeline.cores.task import Task
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.copartitioning import partition_counts, task_count
from moldau.pipeline.ir.rewrites.foreign_key import lower_foreign_key_joins
from moldau.pipeline.ir.subtopologies import SubTopology
from moldau.pipeline.ir.topology import Topology

__all__ = ["InMemoryRun", "UnknownTopicError"]


class UnknownTopicError(MoldauError):
    """A record was piped into a topic that no source reads."""


class InMemoryRun:
    """The tasks of a topology; every topic has the same number of partitions."""

    def __init__(
        self,
        topology: Topology,
        settings: TaskSettings,
        *,
        partitions: int = 1,
        wall_clock_ms: int = 0,
    ) -> None:
        self.topology = topology
        self.backends: dict[tuple[int, int], dict[str, MemoryBackend]] = {}
        self._settings = settings
        self._partitions = partitions
        self._wall_clock_ms = wall_clock_ms
        self._counts = _counts(topology, partitions)
        self._offsets: dict[tuple[str, int], count[int]] = {}
        self._outputs: list[OutputRecord] = []
        self._queue: deque[tuple[Task, str, InputRecord]] = deque()
        self._hash = partition_hash()
        self._tasks: dict[tuple[int, int], Task] = {}
        for sub_topology in topology.subtopologies:
            for partition in range(task_count(sub_topology.inputs, self._counts)):
                self._tasks[sub_topology.index, partition] = self._task(sub_topology, partition)

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
        offset: int | None = None,
    ) -> None:
        """Append a record to a topic, and process it and all records that result from it; offsets count from 0."""
        if not self._append(OutputRecord("", topic, key, value, timestamp, headers, partition), offset):
            raise UnknownTopicError(f"no source of this topology reads the topic {topic}")
        self._work()

    def advance_wall_clock(self, now_ms: int) -> None:
        """Set the wall clock of every task."""
        self._wall_clock_ms = now_ms
        for task in self._tasks.values():
            task.advance_wall_clock(now_ms)
            task.commit()
            self._carry(task)
        self._work()

    def drain(self) -> list[OutputRecord]:
        """What was written to topics since the last call; repartition topics have their full name."""
        outputs, self._outputs = self._outputs, []
        return outputs

    # --- state

    def stores(self, name: str) -> list[Store]:
        """The stores of this name, one for each partition."""
        found = [task.context.stores[name] for task in self._tasks.values() if name in task.context.stores]
        if not found:
            known = ", ".join(sorted(self.store_names())) or "none"
            raise StateError(f"there is no store {name!r}; the stores of this topology are: {known}")
        return found

    def store_names(self) -> set[str]:
        """The names of all stores."""
        return {name for task in self._tasks.values() for name in task.context.stores}

    @property
    def dropped_records(self) -> Counter[tuple[str, str]]:
        """How many records were deliberately skipped, by node and reason."""
        return sum((Counter(task.dropped_records) for task in self._tasks.values()), Counter())

    def flush(self) -> None:
        """Write all state to the backends."""
        for task in self._tasks.values():
            task.flush()

    def rebuild(self) -> None:
        """Replace the tasks by new ones with the same backends, as after a restart."""
        self.flush()
        for (index, partition), task in list(self._tasks.items()):
            task.close()
            self._tasks[index, partition] = self._task(self.topology.subtopologies[index], partition)

    def close(self) -> None:
        """Close all processors."""
        for task in self._tasks.values():
            task.close()

    # --- between tasks

    def _append(self, record: OutputRecord, offset: int | None = None) -> bool:
        """Queue a record for every task that reads it; false where none does."""
        partition = record.partition
        if partition is None:
            partition = (
                0 if record.key is None else self._hash(record.key, self._counts.get(record.topic, self._partitions))
            )
        if offset is None:
            offset = next(self._offsets.setdefault((record.topic, partition), count()))
        row = InputRecord(record.topic, partition, offset, record.timestamp, record.headers, record.key, record.value)
        readers = [(task, node, row) for task, node in self._readers(record, partition)]
        self._queue.extend(readers)
        return bool(readers)

    def _readers(self, record: OutputRecord, partition: int) -> Iterable[tuple[Task, str]]:
        for sub_topology in self.topology.subtopologies:
            for table in sub_topology.global_tables:
                if _reads(table, record):
                    yield from (
                        (task, table.name) for (index, _), task in self._tasks.items() if index == sub_topology.index
                    )
            for source in sub_topology.inputs:
                if _reads(source, record):
                    yield self._tasks[sub_topology.index, partition], source.name

    def _work(self) -> None:
        while self._queue:
            task, node, record = self._queue.popleft()
            task.process(node, record)
            task.commit()
            self._carry(task)

    def _carry(self, task: Task) -> None:
        for row in task.drain():
            output = OutputRecord(*row)
            self._outputs.append(output)
            self._append(output)

    def _task(self, sub_topology: SubTopology, partition: int) -> Task:
        stores = self.backends.setdefault((sub_topology.index, partition), {})
        return Task(
            sub_topology,
            partition=partition,
            partition_counts=self._counts,
            backends=_memory(stores),
            settings=self._settings,
            wall_clock_ms=self._wall_clock_ms,
        )


def _counts(topology: Topology, partitions: int) -> dict[str, int]:
    """The partition counts: the same for all topics, computed for repartitionings."""
    nodes = lower_foreign_key_joins(topology.nodes)
    topics = {topic for node in nodes if isinstance(node, ir.Source) for topic in node.topics}
    topics |= {node.topic for node in nodes if isinstance(node, ir.Sink) and node.topic is not None}
    return partition_counts(nodes, dict.fromkeys(topics, partitions))


def _memory(kept: dict[str, MemoryBackend]) -> Backends:
    return lambda name: kept.setdefault(name, MemoryBackend())


def _reads(node: ir.Source | ir.Repartition, record: OutputRecord) -> bool:
    if isinstance(node, ir.Repartition):
        return node.name == record.output
    if record.topic in node.topics:
        return True
    return node.topic_pattern is not None and re.fullmatch(node.topic_pattern, record.topic) is not None
