"""Spark's Kafka connector as the tests call it: batches in and out, streams with a checkpoint and a file sink.

Options are Spark's own, given as keyword arguments (`startingOffsets="earliest"`); those that belong to the Kafka
client have dots in them and are given as a dict. Start at `Kafka`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from tests.compat.spark.seen import HEADER_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

__all__ = ["Kafka", "batches_of", "cause_of", "end_of", "error_of", "finished", "until"]

WAIT_S = 90
POLL_S = 0.05


class Kafka:
    """The connector bound to one broker; queries begun here are stopped with the test."""

    def __init__(self, spark: SparkSession, bootstrap: str, folder: Path) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self._folder = folder
        self._queries: list[StreamingQuery] = []

    def read(self, client: Mapping[str, str] | None = None, **options: object) -> DataFrame:
        """A batch; from the earliest to the latest offset unless the options say otherwise."""
        return self.spark.read.format("kafka").options(**self._options(client, options)).load()

    def read_stream(self, client: Mapping[str, str] | None = None, **options: object) -> DataFrame:
        wanted = {"startingOffsets": "earliest", **options}
        return self.spark.readStream.format("kafka").options(**self._options(client, wanted)).load()

    def write(self, frame: DataFrame, client: Mapping[str, str] | None = None, **options: object) -> None:
        frame.write.format("kafka").options(**self._options(client, options)).save()

    def to_files(self, frame: DataFrame, name: str = "copy", **trigger: Any) -> StreamingQuery:
        """Begin to copy a stream into files, exactly once; the same name continues where it stopped."""
        columns = [column for column in HEADER_COLUMNS if column in frame.columns or "AS" in column]
        writer = frame.selectExpr(*columns).writeStream.format("parquet")
        return self.begun(writer.option("path", str(self._folder / name / "files")), name, trigger)

    def to_kafka(self, frame: DataFrame, mode: str = "append", **trigger: Any) -> StreamingQuery:
        """Begin to copy a stream of `topic`, `key`, `value` and so on into topics."""
        return self.begun(self.sink(frame).outputMode(mode), "topics", trigger)

    def sink(self, frame: DataFrame) -> DataStreamWriter:
        return frame.writeStream.format("kafka").option("kafka.bootstrap.servers", self.bootstrap)

    def to_memory(self, frame: DataFrame, name: str, mode: str = "append", **trigger: Any) -> StreamingQuery:
        """Begin to keep a stream in a table of the query's name."""
        return self.begun(frame.writeStream.format("memory").queryName(name).outputMode(mode), name, trigger)

    def begun(self, writer: Any, name: str, trigger: Mapping[str, Any]) -> StreamingQuery:
        """Begin a query; the same name continues where it stopped."""
        checkpoint = str(self._folder / name / "checkpoint")
        query: StreamingQuery = (
            writer.option("checkpointLocation", checkpoint)
            .trigger(**(trigger or {"processingTime": "0 seconds"}))
            .start()
        )
        self._queries.append(query)
        return query

    def files(self, name: str = "copy") -> list[Row]:
        """What `to_files` has written so far, by topic, partition and offset."""
        if not any((self._folder / name / "files").glob("*.parquet")):
            return []
        rows = self.spark.read.parquet(str(self._folder / name / "files")).collect()
        return sorted(rows, key=lambda row: (row.topic, row.partition, row.offset))

    def run(self, frame: DataFrame, name: str = "copy") -> tuple[list[Row], list[dict[str, Any]]]:
        """Copy all there is to files, and return everything copied under that name with this run's batches."""
        query = self.to_files(frame, name, availableNow=True)
        finished(query)
        return self.files(name), batches_of(query)

    def stop_all(self) -> None:
        for query in self._queries:
            query.stop()

    def _options(self, client: Mapping[str, str] | None, options: Mapping[str, object]) -> dict[str, str]:
        spoken = {key: one if isinstance(one, str) else json.dumps(one) for key, one in options.items()}
        return {"kafka.bootstrap.servers": self.bootstrap, **spoken, **(client or {})}


def finished(query: StreamingQuery) -> None:
    """Wait for the end of a query that ends by itself; its failure is raised here."""
    assert query.awaitTermination(WAIT_S), "the query did not end in time"


def until(query: StreamingQuery, reached: Callable[[], bool]) -> None:
    """Wait for a running query to bring something about; its failure is raised here."""
    deadline = monotonic() + WAIT_S
    while not reached():
        failure = query.exception()
        if failure is not None:
            raise failure
        assert monotonic() < deadline, f"waited {WAIT_S} s in vain: {query.lastProgress}"
        sleep(POLL_S)


def batches_of(query: StreamingQuery) -> list[dict[str, Any]]:
    """From where to where each batch of a query went that had anything to read."""
    return [
        {"rows": progress.numInputRows, "from": _offsets(source.startOffset), "to": _offsets(source.endOffset)}
        for progress in query.recentProgress
        for source in progress.sources
        if progress.numInputRows
    ]


def error_of(error: Exception) -> dict[str, Any]:
    """What an error says, without the numbers, which partition came first being a matter of luck."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for number, line in enumerate(lines) if number == 0 or line.startswith("Caused by: ")]
    return {"type": type(error).__name__, "says": [_without_numbers(line) for line in causes]}


def cause_of(error: Exception) -> str:
    """The class of the exception at the bottom of an error, for those to which a broker may add its own words."""
    return re.findall(r"Caused by: ([\w.$]+)", str(error))[-1]


def _without_numbers(line: str) -> str:
    return re.sub(r"\d+", "N", re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "ID", line))


def end_of(query: StreamingQuery) -> int:
    """How far a query has come: the sum of all partitions' offsets after its last batch."""
    progress = query.lastProgress
    if progress is None or not progress.sources or not progress.sources[0].endOffset:
        return 0
    return sum(offset for topic in _offsets(progress.sources[0].endOffset).values() for offset in topic.values())


def _offsets(text: str | None) -> Any:
    return json.loads(text) if text else None
