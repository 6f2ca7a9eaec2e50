"""A topology on real Spark, fed by hand: the twin of `pipeline.cores.in_memory_run`, to prove that both agree.

Records lie in Spark's own memory source, so no broker is needed; from there on everything is as in production: the same
plan, the same hosts, the same state. Records wait until outputs are asked for, and then make one batch. Start at
`SparkRun`.
"""

from __future__ import annotations

import base64
import json
import tempfile
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any

from moldau.pipeline.cores.partitioning import partition_hash
from moldau.pipeline.cores.records import Headers, InputRecord, OutputRecord
from moldau.pipeline.ir.nodes import OffsetReset
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.spark.compiler import Compiled, compile_topology
from moldau.pipeline.spark.failures import cause_of
from moldau.pipeline.spark.job import Job
from moldau.pipeline.spark.rows import binary_values, header_tuples

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkRun"]

_TICKS = "\x00ticks"
"""The topic of rows that tell the time; no real one can be called so."""

_LINE = (
    "topic string, partition int, offset bigint, timestamp bigint, key string, value string, "
    "headers array<struct<key:string,value:string>>"
)


class SparkRun:
    """A running query and the records that wait for it; every topic has the same number of partitions."""

    def __init__(
        self,
        topology: Topology,
        config: Mapping[str, Any],
        *,
        spark: SparkSession,
        partitions: int = 1,
        wall_clock_ms: int = 0,
        commits_each_record: bool = True,
    ) -> None:
        self._lines = _Lines(spark)
        self._waiting: list[str] = []
        self._outputs: list[OutputRecord] = []
        self._offsets: Counter[tuple[str, int]] = Counter()
        self._hash = partition_hash()
        self._partitions = partitions
        self._folder = tempfile.TemporaryDirectory(prefix="moldau-spark-run-")
        topics = {topic for source in (*topology.sources, *topology.global_tables) for topic in source.topics}
        job = Job(
            application_id=str(config.get("application.id", "moldau")),
            partition_counts=dict.fromkeys(topics | {s.topic for s in topology.sinks if s.topic}, partitions),
            settings=config,
            source_options=_no_options,
        )
        self.compiled: Compiled = compile_topology(
            spark, topology, job, reader=self._lines, commits_each_record=commits_each_record
        )
        self._query = (
            self.compiled.frame.writeStream.foreachBatch(self._collect)
            .option("checkpointLocation", f"{self._folder.name}/checkpoint")
            .queryName(f"moldau-spark-run-{next(_numbers)}")
            .start()
        )
        self.advance_wall_clock(wall_clock_ms)

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
        self._waiting.append(_line(InputRecord(topic, partition, offset, timestamp, headers, key, value)))

    def advance_wall_clock(self, now_ms: int) -> None:
        """Tell every task the time of day, after all records so far."""
        self.run_batch()
        if self.compiled.plan.needs_ticks:
            self._waiting.append(_line(InputRecord(_TICKS, 0, 0, now_ms, (), None, None)))
            self.run_batch()

    def run_batch(self) -> None:
        """Process what waits, as one batch."""
        if not self._waiting:
            return
        self._lines.add(self._waiting)
        self._waiting = []
        try:
            self._query.processAllAvailable()
        except Exception as error:
            raise cause_of(error) or error from None

    def drain(self) -> list[OutputRecord]:
        """What was written to topics since the last call; rows of one key are in order."""
        self.run_batch()
        outputs, self._outputs = self._outputs, []
        return outputs

    def close(self) -> None:
        """Stop the query."""
        self._query.stop()
        self._folder.cleanup()

    def _collect(self, frame: DataFrame, batch: int) -> None:
        table = frame.toArrow()
        columns = [binary_values(table.column(name)) for name in ("output", "topic", "key", "value")]
        rows = zip(
            *columns,
            table.column("timestamp").to_pylist(),
            header_tuples(table.column("headers")),
            table.column("partition").to_pylist(),
            strict=True,
        )
        self._outputs.extend(OutputRecord(*row) for row in rows)


class _Lines:
    """A reader of records that lie in memory, one JSON text each."""

    def __init__(self, spark: SparkSession) -> None:
        from pyspark.sql import DataFrame

        jvm: Any = spark.sparkContext._jvm
        streams = jvm.org.apache.spark.sql.execution.streaming.runtime.MemoryStream
        self._stream = streams.apply(jvm.org.apache.spark.sql.Encoders.STRING(), spark._jsparkSession)
        self._jvm = jvm
        lines = DataFrame(self._stream.toDF(), spark)
        self._records = lines.selectExpr(f"from_json(value, '{_LINE}') AS line").select("line.*")

    def add(self, lines: list[str]) -> None:
        """Make these the next batch."""
        entries = self._jvm.PythonUtils.toSeq(lines) if hasattr(self._jvm, "PythonUtils") else lines
        self._stream.addData(entries)

    def records(
        self, topics: tuple[str, ...], pattern: str | None, reset: OffsetReset | None, *, is_global: bool
    ) -> DataFrame:
        from pyspark.sql import functions as f

        wanted = f.col("topic").rlike(f"^(?:{pattern})$") if pattern is not None else f.col("topic").isin(*topics)
        return self._records.where(wanted).selectExpr(
            "unbase64(key) AS key",
            "unbase64(value) AS value",
            "topic",
            "partition",
            "offset",
            "timestamp_millis(timestamp) AS timestamp",
            "transform(headers, h -> named_struct('key', h.key, 'value', unbase64(h.value))) AS headers",
        )

    def ticks(self) -> DataFrame:
        from pyspark.sql import functions as f

        return self._records.where(f.col("topic") == _TICKS).selectExpr("timestamp AS now_ms")


_numbers = count(1)


def _no_options(
    topics: tuple[str, ...] | None, pattern: str | None, reset: OffsetReset | None, *, is_global: bool
) -> dict[str, str]:
    return {}


def _line(record: InputRecord) -> str:
    return json.dumps(
        {
            **record._asdict(),
            "key": _text(record.key),
            "value": _text(record.value),
            "headers": [{"key": name, "value": _text(data)} for name, data in record.headers],
        }
    )


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
