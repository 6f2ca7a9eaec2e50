"""The jobs by hand with PySpark: `python pyspark_app.py JOB BOOTSTRAP FOLDER SOURCE OUTPUT [TABLE ...]`.

The session is moldau's tuned one, so that programs are compared and not settings. They do less than SQL does: a record
that is no JSON becomes nulls, a table is what it was at the start, a count is emitted once a batch, and results
are written at least once.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (everybody's name for it)

from moldau.pipeline.spark.driver.session import spark_session

ORDER = "ITEM string, PRICE int, QUANTITY bigint, NOTE string"
CUSTOMER = "NAME string, LEVEL int"


def output_of(job: str, records: DataFrame, tables: list[DataFrame]) -> DataFrame:
    orders = records.select("key", "timestamp", F.from_json(F.col("value").cast("string"), ORDER).alias("o"))
    if job == "filter":
        return orders.where("o.PRICE < 500").select("key", F.to_json("o").alias("value"))
    if job == "project":
        shown = F.struct(
            F.upper("o.ITEM").alias("ITEM"),
            (F.col("o.PRICE") * F.col("o.QUANTITY")).alias("TOTAL"),
            F.concat("o.ITEM", F.lit("!")).alias("LABEL"),
        )
        return orders.select("key", F.to_json(shown).alias("value"))
    if job in ("count", "count-cached"):
        counts = orders.groupBy("key").count()
        return counts.select("key", F.to_json(F.struct(F.col("count").alias("N"))).alias("value"))
    if job == "tumbling":
        counts = orders.groupBy("key", F.window("timestamp", "1 minute")).count()
        return counts.select("key", F.to_json(F.struct(F.col("count").alias("N"))).alias("value"))
    for number, table in enumerate(tables):
        rows = table.select(F.col("key"), F.from_json(F.col("value").cast("string"), CUSTOMER).alias(f"c{number}"))
        orders = orders.join(rows, "key")
    fields = [F.col("o.ITEM").alias("ITEM"), F.col("c0.NAME").alias("NAME")]
    fields.append(F.col("o.PRICE").alias("PRICE") if job == "join" else F.col("c1.LEVEL").alias("LEVEL"))
    return orders.select("key", F.to_json(F.struct(*fields)).alias("value"))


def main(job: str, bootstrap: str, folder: str, source: str, output: str, *tables: str) -> None:
    with spark_session({"application.id": "pyspark"}) as spark:
        run(spark, job, bootstrap, folder, source, output, list(tables))


def run(  # noqa: PLR0917  (what the command line gives, in its order)
    spark: SparkSession, job: str, bootstrap: str, folder: str, source: str, output: str, tables: list[str]
) -> None:
    options = {"kafka.bootstrap.servers": bootstrap, "kafka.fetch.max.wait.ms": "10"}
    options |= {"kafka.isolation.level": "read_committed", "startingOffsets": "earliest"}
    records = (
        spark.readStream.format("kafka")
        .options(**options, subscribe=source)
        .option("maxOffsetsPerTrigger", "300000")
        .load()
    )
    rows = [spark.read.format("kafka").options(**options, subscribe=table).load().cache() for table in tables]
    query = (
        output_of(job, records, rows)
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", output)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .outputMode("update")
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
