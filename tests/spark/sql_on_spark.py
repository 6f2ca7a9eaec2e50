"""Runs a statement of SQL in memory and on Spark over the same records, for tests that compare the two.

Spark gets the records as a table, not as a stream: what is compared is what becomes of each record. Start at
`QueryOnBoth`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from moldau.formats.registry.topic_schemas import TopicSchemas
from moldau.pipeline.cores.handlers import log_and_continue
from moldau.pipeline.cores.in_memory_run import InMemoryRun
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.ksql.execution.engine import Engine
from moldau.pipeline.ksql.syntax.parser import parse
from moldau.pipeline.ksql.trial.registry import MemoryRegistry
from moldau.pipeline.ksql.trial.topics import MemoryTopics
from moldau.pipeline.spark.compiler import Compiled, TestMode, compile_topology
from moldau.pipeline.spark.job import Job
from moldau.pipeline.spark.rows import HEADERS_DDL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SETTINGS = TaskSettings(
    application_id="test", cache_max_bytes=0, deserialization_handler=log_and_continue, processing_log_topic="log"
)
COLUMNS = (
    f"key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, headers {HEADERS_DDL}"
)


@dataclass(frozen=True)
class Given:
    """A record of the only topic that is read."""

    key: bytes | None
    value: bytes | None
    timestamp: int = 1000


Output = tuple[str, bytes | None, bytes | None, int]


def planned(statements: str) -> Topology:
    """The pipeline of the only query among statements."""
    topics = MemoryTopics()
    topics.create("input", 1, 1, {})
    engine = Engine(topics, TopicSchemas(MemoryRegistry()))
    queries = []
    for statement in parse(statements):
        outcome = engine.execute(statement)
        if outcome.started is not None:
            queries.append(outcome.started)
    (query,) = queries
    return query.topology


class TableReader:
    """Gives records that are all there already."""

    def __init__(self, spark: SparkSession, records: Iterable[Given]) -> None:
        rows = [
            (one.key, one.value, "input", 0, offset, datetime.fromtimestamp(one.timestamp / 1000, UTC), None)
            for offset, one in enumerate(records)
        ]
        self._frame = spark.createDataFrame(rows, COLUMNS).coalesce(1)

    def records(self, topics: Any, pattern: Any, reset: Any, *, is_global: bool) -> DataFrame:
        return self._frame

    def ticks(self) -> DataFrame:
        raise NotImplementedError


@dataclass(frozen=True)
class QueryOnBoth:
    """One query, to be run in two ways."""

    topology: Topology
    settings: TaskSettings = SETTINGS

    def in_memory(self, records: Iterable[Given]) -> list[Output]:
        run = InMemoryRun(self.topology, self.settings, partitions=1)
        try:
            for one in records:
                run.pipe("input", one.key, one.value, one.timestamp, partition=0)
            run.flush()
            return [(one.topic, one.key, one.value, one.timestamp) for one in run.drain()]
        finally:
            run.close()

    def compiled(self, spark: SparkSession, records: Iterable[Given]) -> Compiled:
        mode = TestMode(self.settings, commits_each_record=False, is_native=True)
        job = Job(application_id="test", partition_counts={"input": 1}, settings={})
        return compile_topology(spark, self.topology, job, reader=TableReader(spark, records), test=mode)

    def on_spark(self, spark: SparkSession, records: Iterable[Given]) -> tuple[list[Output], int]:
        """The outputs in order, and how many records Python had to process."""
        compiled = self.compiled(spark, records)
        assert compiled.is_native, compiled.native_refusal
        collected = compiled.frame.toArrow().to_batches()
        odd = sum(sum(number < 0 for number in batch.column("output").to_pylist()) for batch in collected)
        points = compiled.plan.outputs
        outputs: list[Output] = []
        for batch in compiled.output_batches(collected):
            for row in batch.to_pylist():
                topic = row["topic"] or points[row["output"]].topic
                outputs.append((str(topic), row["key"], row["value"], row["timestamp"]))
        return outputs, odd

    def in_real_time(self, spark: SparkSession, records: Iterable[Given]) -> list[Output]:
        """The outputs of the query as it is for real-time mode; of a group the last change alone."""
        job = Job(
            application_id="test",
            partition_counts={"input": 1},
            settings={},
            is_realtime=True,
        )
        mode = TestMode(self.settings, commits_each_record=False, is_native=True)
        compiled = compile_topology(spark, self.topology, job, reader=TableReader(spark, records), test=mode)
        rows = compiled.frame.toArrow().to_pylist()
        return [(row["topic"], row["key"], row["value"], row["timestamp"]) for row in rows]
