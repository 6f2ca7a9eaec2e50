"""What Spark sends to every task is what somebody has set, not a thousand defaults of clusters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moldau.pipeline.spark.driver.hadoop_settings import leave_defaults_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Session:
    """A session with Hadoop settings of its own, so that those of the tests' session stay as they are."""

    def __init__(self, spark: SparkSession, master: str = "local[2]") -> None:
        jvm: Any = spark.sparkContext._jvm
        self.hadoop = jvm.org.apache.hadoop.conf.Configuration()
        self.master = master
        self._jsc = self
        self.sparkContext = self

    def hadoopConfiguration(self) -> Any:  # noqa: N802, Java's name
        return self.hadoop

    def settings_left_by(self, *given: str) -> int:
        leave_defaults_out(self, given)  # type: ignore[arg-type]
        return int(self.hadoop.size())


def test_the_tests_session_has_few(spark: SparkSession) -> None:
    hadoop: Any = spark.sparkContext._jsc.hadoopConfiguration()
    assert hadoop.size() < 50


def test_local_files_are_found_without_defaults(spark: SparkSession, tmp_path: Path) -> None:
    jvm: Any = spark.sparkContext._jvm
    session = Session(spark)
    assert session.settings_left_by("spark.master") == 1

    files = jvm.org.apache.hadoop.fs.FileContext.getFileContext(session.hadoop)
    assert files.util().exists(jvm.org.apache.hadoop.fs.Path(str(tmp_path)))


def test_settings_of_the_users_keep_all_of_them(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Session(spark).settings_left_by("spark.hadoop.fs.defaultFS") > 100
    assert Session(spark, "spark://somewhere:7077").settings_left_by() > 100
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert Session(spark).settings_left_by() > 100
