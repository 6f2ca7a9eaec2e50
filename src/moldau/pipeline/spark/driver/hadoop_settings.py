"""Removes Hadoop's thousand default settings, which Spark serializes twice per batch and every task reads.

Most are about clusters, which a pipeline on one machine does not use, and the code that reads them has the same
defaults built in. So they are removed if the user has set none: this saves a tenth of the time of a small batch. Start
at `leave_defaults_out`.
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
"""Settings without a default in the code."""

FOLDERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
FILES = ("core-site.xml", "hdfs-site.xml")


def leave_defaults_out(spark: SparkSession, given: Iterable[str]) -> None:
    """Remove Hadoop's defaults, unless the session runs on a cluster or the user has configured Hadoop.

    `given` are the names of the session's settings; the few Hadoop settings that Spark itself adds do not count.
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
