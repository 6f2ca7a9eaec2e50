"""The copies by hand with PySpark: `python pyspark_copy.py JOB BOOTSTRAP FOLDER JDBC_URL USER DRIVER_JAR SCHEMA`.

It says `ready` when the session is there and has made a small copy, then reads lines `TABLE TOPIC` from its input and
answers each with the seconds that copy took. The session is moldau's tuned one, so that programs are compared and not
settings. They do what such a program does: one batch, at least once, no offsets to go on from.
"""

from __future__ import annotations

import sys
import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (everybody's name for it)

from moldau.pipeline.spark.driver.session import spark_session

COLUMNS = "id, customer, item, price, quantity, paid, note"


class Copies:
    def __init__(self, spark: SparkSession, *, bootstrap: str, folder: str, url: str, user: str, schema: str) -> None:
        self._spark, self._bootstrap, self._folder, self._schema = spark, bootstrap, folder, schema
        self._jdbc = {"url": url, "user": user, "driver": "org.postgresql.Driver"}

    def source(self, table: str, topic: str) -> None:
        """A table, read in two ranges, into a topic."""
        bounds = self._spark.read.format("jdbc").options(**self._jdbc)
        low, high = bounds.option("query", f"SELECT min(id), max(id) FROM {table}").load().first() or (0, 0)
        rows = (
            self._spark.read.format("jdbc")
            .options(**self._jdbc, dbtable=table, fetchsize="10000")
            .options(partitionColumn="id", lowerBound=low, upperBound=high, numPartitions="2")
            .load()
        )
        values = rows.select(F.to_json(F.struct("*")).alias("value"))
        values.write.format("kafka").option("kafka.bootstrap.servers", self._bootstrap).option("topic", topic).save()

    def sink(self, table: str, topic: str) -> None:
        """A topic into a table: into a staging table with multi-row inserts, and from there with one upsert."""
        staging = f"{table}_staging"
        (
            self._orders(topic)
            .write.format("jdbc")
            .options(**{**self._jdbc, "url": f"{self._jdbc['url']}?reWriteBatchedInserts=true"})
            .options(dbtable=staging, batchsize="10000")
            .mode("overwrite")
            .save()
        )
        changes = ", ".join(f"{one}=EXCLUDED.{one}" for one in COLUMNS.split(", ")[1:])
        upsert = f"INSERT INTO {table} SELECT {COLUMNS} FROM {staging} ON CONFLICT (id) DO UPDATE SET {changes}"
        jvm = self._spark.sparkContext._jvm
        assert jvm is not None
        connection = jvm.org.postgresql.Driver().connect(f"{self._jdbc['url']}?user={self._jdbc['user']}", None)
        connection.createStatement().executeUpdate(upsert)
        connection.close()

    def parquet(self, table: str, topic: str) -> None:
        """A topic into Parquet files."""
        self._orders(topic).write.mode("overwrite").parquet(f"{self._folder}/{table}")

    def _orders(self, topic: str) -> DataFrame:
        options = {"kafka.bootstrap.servers": self._bootstrap, "kafka.isolation.level": "read_committed"}
        records = self._spark.read.format("kafka").options(**options, subscribe=topic, minPartitions="4").load()
        return records.select(F.from_json(F.col("value").cast("string"), self._schema).alias("o")).select("o.*")


def main(job: str, bootstrap: str, folder: str, url: str, user: str, jar: str, schema: str) -> None:  # noqa: PLR0917
    # The driver's class loader has to know the JDBC driver before Java starts.
    settings = {"application.id": "pyspark", "spark.driver.extraClassPath": jar}
    with spark_session(settings) as spark:
        copies = Copies(spark, bootstrap=bootstrap, folder=folder, url=url, user=user, schema=schema)
        print("ready", flush=True)
        for words in sys.stdin:
            table, topic = words.split()
            began = time.monotonic()
            getattr(copies, job)(table, topic)
            print(f"took {time.monotonic() - began:.3f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
