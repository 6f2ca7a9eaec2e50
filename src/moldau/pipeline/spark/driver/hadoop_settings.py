"""Hadoop's settings: a thousand defaults, which Spark writes out twice for a batch and every task of it reads.

Most are about clusters that a pipeline on one machine has nothing to do with, and the code that asks for them knows the
same defaults. So where nobody has set anything they are left out: a tenth of the time of a small batch. Start at
`leave_defaults_out`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from moldau.pipeline.spark.driver.masters import is_local_master

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["leave_defaults_out"]

KEPT: Mapping[str, str] = {"fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.LocalFs"}
"""What no code knows by itself."""

FOLDERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
FILES = ("core-site.xml", "hdfs-site.xml")


def leave_defaults_out(spark: SparkSession, given: Iterable[str]) -> None:
    """Forget Hadoop's defaults, unless this is a cluster's session or somebody has settings of their own.

    `given` are the names of the session's settings; Spark itself adds a few for Hadoop, which do not count.
    """
    hadoop: Any = spark.sparkContext._jsc.hadoopConfiguration()
    if not is_local_master(spark.sparkContext.master) or _are_set(hadoop, given):
        return
    hadoop.clear()
    for key, value in KEPT.items():
        hadoop.set(key, value)


def _are_set(hadoop: Any, given: Iterable[str]) -> bool:
    in_spark = any(name.startswith("spark.hadoop.") for name in given)
    in_folders = any(os.environ.get(name) for name in FOLDERS)
    return in_spark or in_folders or any(hadoop.getResource(name) is not None for name in FILES)
