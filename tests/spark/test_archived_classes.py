"""The archive of Spark's classes in a real Java process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moldau.pipeline.spark.driver.class_archive import archive_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_java_maps_the_archive(spark: SparkSession) -> None:
    archive = archive_file()
    if not archive.exists():
        pytest.skip("there is no archive; `moldau streams prepare` makes one")
    pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]

    assert archive.name in Path(f"/proc/{pid}/maps").read_text()
