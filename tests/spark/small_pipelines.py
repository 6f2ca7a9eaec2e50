"""Small topologies and one batch at a time, for the tests here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.pipeline.cores.records import InputRecord
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.spark.compiler import Compiled, TestMode, compile_topology
from moldau.pipeline.spark.job import EarlierRun, Job
from moldau.pipeline.spark.memory_reader import MemoryReader
from moldau.pipeline.spark.plan import STATE_OUTPUT
from moldau.streams import Topology

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Output", "compiled_in_memory", "finished_rows", "outputs_of"]


class Output(NamedTuple):
    """A row that left a topology."""

    output: str
    topic: str | None
    key: bytes | None
    value: bytes | None
    timestamp: int | None


def compiled_in_memory(
    spark: SparkSession,
    topology: Topology,
    config: dict[str, Any],
    *,
    is_native: bool,
    reader: MemoryReader | None = None,
    earlier: EarlierRun | None = None,
) -> tuple[Compiled, MemoryReader]:
    """A topology over records in memory, natively where it can or in Python; with a `reader` it goes on from there."""
    settings, reader = TaskSettings.of(config), reader or MemoryReader(spark)
    topics = {topic: 2 for source in topology.sources for topic in source.topics}
    job = Job(application_id="test", partition_counts=topics, settings=config, earlier=earlier)
    mode = TestMode(settings, commits_each_record=False, is_native=is_native)
    return compile_topology(spark, topology, job, reader=reader, test=mode), reader


def finished_rows(compiled: Compiled, frame: DataFrame) -> list[Any]:
    """What a batch gives, with the names of outputs and every record's topic."""
    points = compiled.plan.outputs
    rows = [row for batch in compiled.output_batches(frame.toArrow().to_batches()) for row in batch.to_pylist()]
    return [
        SimpleNamespace(**{**row, "output": points[at].name, "topic": row["topic"] or points[at].topic})
        for row in rows
        for at in [row["output"]]
    ]


def outputs_of(
    compiled: Compiled, reader: MemoryReader, folder: Path, batches: Iterable[Sequence[InputRecord]]
) -> list[list[Output]]:
    """What comes out of each batch, state left out."""
    found: list[list[Output]] = []

    def collect(frame: DataFrame, number: int) -> None:
        rows = [row for row in finished_rows(compiled, frame) if row.output != STATE_OUTPUT]
        found.append([Output(row.output, row.topic, row.key, row.value, row.timestamp) for row in rows])

    writer = compiled.frame.writeStream.outputMode(compiled.output_mode).foreachBatch(collect)
    query = writer.option("checkpointLocation", str(folder)).start()
    try:
        for batch in batches:
            reader.add([reader.line(record) for record in batch])
            query.processAllAvailable()
    finally:
        query.stop()
    return found
