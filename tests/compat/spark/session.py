"""One local Spark session with the Kafka connector, small and quick to start.

Stock settings wherever a broker could notice: only memory, start-up time and the cost of checkpoints are tuned.
Start at `spark_session`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from moldau.pipeline.spark.driver.jars import fetch_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["spark_session"]

SETTINGS = {
    "spark.master": "local[4]",
    "spark.driver.memory": "640m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.pollingDelay": "100",
}
"""The checkpoint manager is the one that starts no processes: 60 ms less for each batch."""


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """Start Spark in a Java process of its own; it ends with the block."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("moldau-compat").config("spark.jars", ",".join(map(str, fetch_jars())))
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()
