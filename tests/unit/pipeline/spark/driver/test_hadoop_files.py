"""Files elsewhere whose file system says no; what works is tried with a real one in `tests/spark`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("py4j")

from moldau.pipeline.spark.driver.hadoop_files import HadoopFiles, StateUnreachableError


class RefusingSystem:
    """Writes, and answers `false` when it is asked to rename, as Hadoop's file systems do where they cannot."""

    def create(self, place: Any, overwrites: bool) -> Any:
        return SimpleNamespace(write=lambda data: None, close=lambda: None)

    def delete(self, place: Any, is_recursive: bool) -> bool:
        return True

    def rename(self, part: Any, place: Any) -> bool:
        return False


class Place:
    def __init__(self, path: str) -> None:
        self.path = path

    def getFileSystem(self, settings: Any) -> RefusingSystem:  # noqa: N802
        return RefusingSystem()

    def __str__(self) -> str:
        return self.path


def test_a_file_that_is_not_put_in_place_is_an_error() -> None:
    hadoop = SimpleNamespace(
        org=SimpleNamespace(apache=SimpleNamespace(hadoop=SimpleNamespace(fs=SimpleNamespace(Path=Place))))
    )
    spark: Any = SimpleNamespace(
        sparkContext=SimpleNamespace(_jvm=hadoop, _jsc=SimpleNamespace(hadoopConfiguration=lambda: None))
    )
    with pytest.raises(StateUnreachableError, match=r"hdfs://there/layout: .* did not rename hdfs://there/layout.part"):
        HadoopFiles(spark).write("hdfs://there/layout", "text")
