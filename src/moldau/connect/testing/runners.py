"""A connector with its tasks, run in the test's own thread: what a worker does, one step at a time.

```python
with SourceRunner(MyConnector, {"file": str(path)}) as source:
    records = source.poll_until(3)
    source.commit()
    source.restart()                       # as after a crash: goes on from the committed offsets
```

Start at `SourceRunner` and `SinkRunner`.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from moldau.connect.api.config_def import errors_of
from moldau.connect.api.connector import Connector, SinkTask, SourceTask
from moldau.connect.api.errors import ConfigError
from moldau.connect.api.limits import OPEN, Limits
from moldau.connect.api.plugins import Plugins
from moldau.connect.api.records import SinkRecord, SourceRecord
from moldau.connect.testing.contexts import (
    MemoryConnectorContext,
    MemoryOffsets,
    MemoryReporter,
    MemorySinkContext,
    MemorySourceContext,
)
from moldau.connect.transforms.chain import Failure, TransformationChain
from moldau.core.ids import TopicPartition

__all__ = ["SinkRunner", "SourceRunner"]

Task = TypeVar("Task", SourceTask, SinkTask)
LONGEST_SECONDS = 60.0


class _Runner(Generic[Task]):
    """Validates the configuration, starts the connector, makes its tasks."""

    def __init__(
        self,
        connector: type[Connector] | str,
        settings: Mapping[str, str],
        *,
        max_tasks: int = 1,
        limits: Limits = OPEN,
        offsets: MemoryOffsets | None = None,
    ) -> None:
        self._plugins = Plugins()
        self._class = (
            self._plugins.find(connector, "source", "sink").load() if isinstance(connector, str) else connector
        )
        self._settings = {"name": "test", **settings}
        self._max_tasks = max_tasks
        self._limits = limits
        self.offsets = offsets or MemoryOffsets()
        self.connector: Connector
        self.connector_context: MemoryConnectorContext
        self.tasks: list[Task] = []
        self._chain = TransformationChain.of(self._settings, self._plugins)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Validate, start the connector and its tasks; raises `ConfigError` with all problems."""
        self.connector = self._class()
        problems = errors_of(self.connector.validate(self._settings))
        if problems:
            raise ConfigError(problems)
        self.connector_context = MemoryConnectorContext(self.offsets, self._limits)
        self.connector.context = self.connector_context
        self.connector.start(self._settings)
        self.start_tasks()

    def start_tasks(self) -> None:
        """Make the tasks that the connector now wants."""
        for settings in self.connector.task_configs(self._max_tasks):
            task: Any = self.connector.task_class()()
            task.context = self._task_context(settings)
            self.tasks.append(task)
            task.start(settings)

    def stop_tasks(self) -> None:
        """Stop the tasks."""
        for task in self.tasks:
            task.context.stop_requested.set()
            task.stop()
        self.tasks = []

    def stop(self) -> None:
        """Stop the tasks and the connector."""
        self.stop_tasks()
        if hasattr(self, "connector_context"):
            self.connector_context.stop_requested.set()
            self.connector.stop()

    def _task_context(self, settings: Mapping[str, str]) -> Any:
        raise NotImplementedError


class SourceRunner(_Runner[SourceTask]):
    """Runs a source connector."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._uncommitted: list[SourceRecord] = []

    def _task_context(self, settings: Mapping[str, str]) -> MemorySourceContext:
        return MemorySourceContext(settings, self.offsets, self._limits)

    def poll(self) -> list[SourceRecord]:
        """One `poll` of each task, after the transforms; raises what a transform raised."""
        polled = [record for task in self.tasks for record in task.poll() or ()]
        self._uncommitted += polled
        kept: list[SourceRecord] = []
        for one in self._chain.apply(polled):
            if isinstance(one, Failure):
                raise one.error
            if isinstance(one, SourceRecord):
                kept.append(one)
        return kept

    def poll_until(self, count: int, seconds: float = LONGEST_SECONDS) -> list[SourceRecord]:
        """Poll until there are so many records; fails if they do not come."""
        found: list[SourceRecord] = []
        deadline = time.monotonic() + seconds
        while len(found) < count:
            found += self.poll()
            if time.monotonic() > deadline:
                raise AssertionError(f"{len(found)} records came within {seconds} s, and {count} were expected")
        return found

    def commit(self) -> None:
        """Store the offsets of what was polled, and tell the tasks."""
        for record in self._uncommitted:
            if record.source_offset is not None:
                self.offsets.store(record.source_partition, record.source_offset)
        self._uncommitted = []
        for task in self.tasks:
            task.commit()

    def restart(self) -> None:
        """Stop and start; what was not committed is forgotten, as after a crash."""
        self.stop()
        self._uncommitted = []
        self.start()


class SinkRunner(_Runner[SinkTask]):
    """Runs a sink connector; each topic partition belongs to one task."""

    def __init__(self, *arguments: Any, has_reporter: bool = False, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.reporter = MemoryReporter() if has_reporter else None
        self.committed: dict[TopicPartition, int] = {}
        """What the consumer group would hold."""

        self._delivered: dict[TopicPartition, int] = {}

    def _task_context(self, settings: Mapping[str, str]) -> MemorySinkContext:
        return MemorySinkContext(settings, self._limits, self.reporter)

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Deliver records, after the transforms; partitions are opened as they come."""
        batches: dict[int, list[SinkRecord]] = defaultdict(list)
        for record in records:
            self._delivered[record.topic_partition] = record.offset + 1
        for one in self._chain.apply(list(records)):
            if isinstance(one, Failure):
                raise one.error
            if isinstance(one, SinkRecord):
                batches[self._task_of(one.topic_partition)].append(one)
        for number, batch in batches.items():
            self._open(number, {record.topic_partition for record in batch})
            self.tasks[number].put(batch)
        if not batches:
            for task in self.tasks:
                task.put([])

    def commit(self) -> dict[TopicPartition, int]:
        """Let the tasks store everything; the offsets that a worker would commit."""
        for number, task in enumerate(self.tasks):
            offsets = {one: end for one, end in self._delivered.items() if self._task_of(one) == number}
            self.committed.update(task.pre_commit(offsets))
        return dict(self.committed)

    def rewound(self) -> dict[TopicPartition, int]:
        """Where tasks asked to go on."""
        return {one: offset for task in self.tasks for one, offset in task.context.rewound.items()}  # type: ignore[attr-defined]

    def open(self, *partitions: TopicPartition) -> None:
        """Assign partitions before their first record."""
        for partition in partitions:
            self._open(self._task_of(partition), {partition})

    def close(self) -> None:
        """Take all partitions away."""
        for task in self.tasks:
            context: Any = task.context
            task.close(context.assigned)
            context.assigned = set()

    def restart(self) -> None:
        """Stop without a commit, and start again, as after a crash; deliver again from `committed`."""
        self.stop()
        self._delivered = {}
        self.start()

    def _task_of(self, partition: TopicPartition) -> int:
        return partition.partition % max(1, len(self.tasks))

    def _open(self, number: int, partitions: set[TopicPartition]) -> None:
        context: Any = self.tasks[number].context
        new = partitions - context.assigned
        if new:
            context.assigned |= new
            self.tasks[number].open(sorted(new))
