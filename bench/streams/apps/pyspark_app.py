"""The jobs as one would write them by hand with PySpark: `python pyspark_app.py JOB BOOTSTRAP FOLDER JARS`.

The session is the tuned one of moldau's, so that the programs are compared and not their settings.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (everybody's name for it)
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from moldau.pipeline.spark.driver.session import spark_session

BUCKETS = 4


def output_of(job: str, records: DataFrame) -> DataFrame:
    if job == "map-filter":
        text = F.col("value").cast("string")
        return records.where(text != "").select("key", F.upper(text).alias("value"))
    if job == "count-cached":
        counts = records.groupBy("key").count()
        return counts.select("key", F.unhex(F.lpad(F.hex("count"), 16, "0")).alias("value"))
    if job == "count":
        buckets = records.selectExpr(f"pmod(hash(key), {BUCKETS}) AS bucket", "key", "partition", "offset")
        return buckets.groupBy("bucket").transformWithStateInPandas(
            RunningCount(), "key binary, value binary", "Append", "None"
        )
    return records.select("key", "value")


class RunningCount(StatefulProcessor):
    """The count after every record; a bucket of keys is one group, and state is written once a batch."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._counts = handle.getMapState("counts", "key binary", "count bigint")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        batch = pd.concat(list(rows)).sort_values(["partition", "offset"])
        counts: dict[bytes, int] = {}
        changes = []
        for record_key in batch["key"].tolist():
            if record_key not in counts:
                known = self._counts.getValue((record_key,))
                counts[record_key] = known[0] if known else 0
            counts[record_key] += 1
            changes.append(counts[record_key].to_bytes(8, "big"))
        for record_key, count in counts.items():
            self._counts.updateValue((record_key,), (count,))
        yield pd.DataFrame({"key": batch["key"], "value": changes})

    def close(self) -> None:
        """Nothing is open."""


def main(job: str, bootstrap: str, folder: str) -> None:
    with spark_session({"application.id": "pyspark"}) as spark:
        run(spark, job, bootstrap, folder)


def run(spark: SparkSession, job: str, bootstrap: str, folder: str) -> None:
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.fetch.max.wait.ms", "10")
        .option("subscribe", "input")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "300000")
        .load()
    )
    query = (
        output_of(job, records)
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", "output")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .outputMode("append" if job == "count" else "update")
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
