"""A reader of records in the memory of Spark's driver, with the columns of the Kafka connector.

Each record is one JSON text in Spark's memory source; lines added together are one batch. Start at `MemoryReader`.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from moldau.pipeline.cores.records import InputRecord
from moldau.pipeline.ir.nodes import OffsetReset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["MemoryReader"]

_TICKS = "\x00ticks"
"""The topic of rows that carry the time; not a valid name of a real topic."""

_LINE = (
    "topic string, partition int, offset bigint, timestamp bigint, key string, value string, "
    "headers array<struct<key:string,value:string>>"
)


class MemoryReader:
    """Returns the added records, as a `sources.Reader`."""

    def __init__(self, spark: SparkSession) -> None:
        from pyspark.sql import DataFrame

        jvm: Any = spark.sparkContext._jvm
        streams = jvm.org.apache.spark.sql.execution.streaming.runtime.MemoryStream
        self._stream = streams.apply(jvm.org.apache.spark.sql.Encoders.STRING(), spark._jsparkSession)
        self._jvm = jvm
        lines = DataFrame(self._stream.toDF(), spark)
        self._records = lines.selectExpr(f"from_json(value, '{_LINE}') AS line").select("line.*")

    def add(self, lines: list[str]) -> None:
        """Add lines to the next batch."""
        self._stream.addData(self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(lines))

    def line(self, record: InputRecord) -> str:
        """A record in the form that `add` takes."""
        return json.dumps(
            {
                **record._asdict(),
                "key": _text(record.key),
                "value": _text(record.value),
                "headers": [{"key": name, "value": _text(data)} for name, data in record.headers],
            }
        )

    def tick(self, now_ms: int) -> str:
        """The wall-clock time in the form that `add` takes."""
        return self.line(InputRecord(_TICKS, 0, 0, now_ms, (), None, None))

    def records(
        self, topics: tuple[str, ...], pattern: str | None, reset: OffsetReset | None, *, is_global: bool
    ) -> DataFrame:
        """The records of some topics."""
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
        """The rows that `tick` made."""
        from pyspark.sql import functions as f

        return self._records.where(f.col("topic") == f.lit(_TICKS)).selectExpr("timestamp AS now_ms")


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
