"""The jobs as one would write them by hand with PySpark: `python pyspark_app.py JOB BOOTSTRAP FOLDER JARS`.

The session is the tuned one of moldau's, so that the programs are compared and not their settings.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (everybody's name for it)

from moldau.pipeline.spark.session import spark_session


def output_of(job: str, records: DataFrame) -> DataFrame:
    if job == "map-filter":
        text = F.col("value").cast("string")
        return records.where(text != "").select("key", F.upper(text).alias("value"))
    if job == "count-cached":
        counts = records.groupBy("key").count()
        return counts.select("key", F.unhex(F.lpad(F.hex("count"), 16, "0")).alias("value"))
    return records.select("key", "value")


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
        .outputMode("update")
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
