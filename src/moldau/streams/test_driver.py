"""The test driver: runs a topology on piped input, with results at once, without broker and without Spark.

It runs the same tasks as Spark, but in memory; `engine="spark"`, or MOLDAU_TEST_ENGINE=spark in the environment, runs
the same test on Spark. Start at `TopologyTestDriver`.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from moldau.client.serialization import prepared_serde
from moldau.core.errors import InvalidConfigError, MoldauError
from moldau.pipeline.cores.in_memory_run import InMemoryRun
from moldau.pipeline.cores.records import Headers, OutputRecord
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.cores.stores.store import Store
from moldau.pipeline.dsl.options.given import Duration, check_serdes, milliseconds
from moldau.pipeline.dsl.options.hints import Hinting
from moldau.pipeline.ir.nodes import GlobalTableSource
from moldau.pipeline.ir.topology import Topology
from moldau.serdes.serde import Serde
from moldau.streams.default_serdes import with_serdes_of
from moldau.streams.piped_topics import TestInputTopic, TestOutputTopic
from moldau.streams.store_readers import (
    KeyValueReader,
    SessionReader,
    TimestampedReader,
    VersionedReader,
    WindowReader,
)

__all__ = ["ENGINES", "Run", "TopologyTestDriver"]

ENGINE_VARIABLE = "MOLDAU_TEST_ENGINE"


class UnknownPartitionError(MoldauError):
    """A record was piped into a partition that its topic does not have."""


class Run(Protocol):
    """A running topology, as the driver uses it: records in, records out, state to inspect."""

    def pipe(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        *,
        headers: Headers = (),
        partition: int | None = None,
    ) -> None: ...

    def advance_wall_clock(self, now_ms: int) -> None: ...

    def drain(self) -> list[OutputRecord]: ...

    def stores(self, name: str) -> list[Store]: ...

    def store_names(self) -> set[str]: ...

    def close(self) -> None: ...


Engine = Callable[[Topology, TaskSettings, int, int], Run]
"""(topology, settings, partitions, wall clock in ms) -> a run."""


def in_memory(topology: Topology, settings: TaskSettings, partitions: int, wall_clock_ms: int) -> Run:
    """The default engine of tests: each record is processed at once."""
    return InMemoryRun(topology, settings, partitions=partitions, wall_clock_ms=wall_clock_ms)


def on_spark(topology: Topology, settings: TaskSettings, partitions: int, wall_clock_ms: int) -> Run:
    """The engine that pipelines run on; results are computed when they are read."""
    from moldau.pipeline.spark.spark_run import SparkRun

    run: Run = SparkRun(topology, settings, partitions=partitions, wall_clock_ms=wall_clock_ms)
    return run


ENGINES: dict[str, Engine] = {"memory": in_memory, "spark": on_spark}


class TopologyTestDriver(Hinting):
    """Runs a topology on records that a test pipes in.

        with TopologyTestDriver(builder.build()) as driver:
            words = driver.create_input_topic("words", Serdes.string(), Serdes.string())
            counts = driver.create_output_topic("counts", Serdes.string(), Serdes.long())
            words.pipe_input("a", "hello")
            assert counts.read_key_value() == ("hello", 1)

    `partitions` is the number of partitions of every topic: keys are placed as the Kafka clients place them, and each
    partition has its own task with its own stream time.
    """

    def __init__(
        self,
        topology: Topology,
        config: Mapping[str, Any] | None = None,
        *,
        partitions: int = 1,
        initial_wall_clock_ms: int | None = None,
        engine: str | None = None,
    ) -> None:
        config = dict(config or {})
        self._wall_clock_ms = time.time_ns() // 1_000_000 if initial_wall_clock_ms is None else initial_wall_clock_ms
        run = _engine(engine)
        self._config = config
        self._partitions = partitions
        self._topology = with_serdes_of(topology, config)
        self._run = run(self._topology, TaskSettings.of(config), partitions, self._wall_clock_ms)
        self._produced: dict[str, deque[OutputRecord]] = {}

    # --- topics

    def create_input_topic(
        self,
        name: str,
        key_serde: Serde,
        value_serde: Serde,
        *,
        start_timestamp_ms: int | None = None,
        auto_advance_ms: int = 0,
    ) -> TestInputTopic:
        """A topic to pipe records into; its time starts at `start_timestamp_ms`, by default the driver's wall clock."""
        return TestInputTopic(
            self,
            name,
            serdes=self._configured_serdes(key_serde, value_serde),
            start_timestamp_ms=self._wall_clock_ms if start_timestamp_ms is None else start_timestamp_ms,
            auto_advance_ms=auto_advance_ms,
        )

    def create_output_topic(self, name: str, key_serde: Serde, value_serde: Serde) -> TestOutputTopic:
        """A topic to read results from."""
        return TestOutputTopic(self, name, self._configured_serdes(key_serde, value_serde))

    def _configured_serdes(self, key: Serde, value: Serde) -> tuple[Serde, Serde]:
        check_serdes(key, value)
        return prepared_serde(key, self._config, "key"), prepared_serde(value, self._config, "value")

    def pipe(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        *,
        headers: Headers = (),
        partition: int | None = None,
    ) -> None:
        """Process a record given as bytes; without `partition`, its key determines the partition."""
        if partition is not None and not 0 <= partition < self._partitions:
            raise UnknownPartitionError(
                f"topic {topic} has partitions 0 to {self._partitions - 1} here, and no partition {partition}; "
                f"more are made with TopologyTestDriver(..., partitions={partition + 1})"
            )
        self._run.pipe(topic, key, value, timestamp_ms, headers=headers, partition=partition)

    def unread_records(self, topic: str) -> deque[OutputRecord]:
        """The unread records that were written to a topic."""
        self._collect()
        return self._produced.get(topic) or deque()

    def why_empty(self, topic: str) -> str:
        """The error message for reading an empty topic; it lists the known topics, as the name may be a typo."""
        named = {sink.topic for sink in self._topology.sinks if sink.topic is not None} | set(self._produced)
        slip = "" if topic in named else f"; this topology writes to {', '.join(sorted(named)) or 'no topic by name'}"
        return f"topic {topic} holds no record that was not read yet{slip}"

    def produced_topic_names(self) -> set[str]:
        """The topics to which records were written, whether read or not."""
        self._collect()
        return set(self._produced)

    def _collect(self) -> None:
        for output in self._run.drain():
            self._produced.setdefault(output.topic, deque()).append(output)

    # --- time

    def advance_wall_clock_time(self, advance: Duration) -> None:
        """Advance the wall clock by a timedelta or milliseconds, and call the punctuators that are due."""
        self._wall_clock_ms += milliseconds(advance, "the advance of the wall clock")
        self._run.advance_wall_clock(self._wall_clock_ms)

    @property
    def wall_clock_ms(self) -> int:
        """The wall-clock time of the topology, in ms since 1970."""
        return self._wall_clock_ms

    # --- state

    def get_all_state_stores(self) -> dict[str, list[Store]]:
        """All stores by name, each a list with one store per partition."""
        return {name: self.get_state_store(name) for name in sorted(self._run.store_names())}

    def get_state_store(self, name: str) -> list[Store]:
        """The stores of this name, one per partition; only one for a global table."""
        stores = self._run.stores(name)
        global_stores = {node.table.store for node in self._topology.nodes if isinstance(node, GlobalTableSource)}
        return stores[:1] if name in global_stores else stores

    def get_key_value_store(self, name: str) -> KeyValueReader:
        """A view of a key-value store over all partitions; values without timestamps."""
        return KeyValueReader(name, self.get_state_store(name))

    def get_timestamped_key_value_store(self, name: str) -> TimestampedReader:
        """A view of a key-value store over all partitions; values with timestamps."""
        return TimestampedReader(name, self.get_state_store(name))

    def get_versioned_key_value_store(self, name: str) -> VersionedReader:
        """A view of a versioned store, with past rows, over all partitions."""
        return VersionedReader(name, self.get_state_store(name))

    def get_window_store(self, name: str) -> WindowReader:
        """A view of a window store over all partitions; values without timestamps."""
        return WindowReader(name, self.get_state_store(name))

    def get_session_store(self, name: str) -> SessionReader:
        """A view of a session store over all partitions."""
        return SessionReader(name, self.get_state_store(name))

    # --- end

    def close(self) -> None:
        """Close the topology's processors."""
        self._run.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _engine(name: str | None) -> Engine:
    chosen = name or os.environ.get(ENGINE_VARIABLE) or "memory"
    try:
        return ENGINES[chosen]
    except KeyError:
        raise InvalidConfigError(f"there is no test engine {chosen!r}; the engines are: {', '.join(ENGINES)}") from None
