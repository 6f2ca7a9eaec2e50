"""Checkpoint files on any file system that Spark supports, through Spark's Hadoop client. Start at `HadoopFiles`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from moldau.core.errors import MoldauError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["HadoopFiles", "StateUnreachableError"]


class StateUnreachableError(MoldauError):
    """The file system with an application's state does not answer, or denies access."""


class HadoopFiles:
    """Implements `pipeline.runtime.files.Files`, by URI."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark.sparkContext._jvm
        self._settings = spark.sparkContext._jsc.hadoopConfiguration()

    def read(self, path: str) -> str | None:
        """A file's text, or None if it does not exist."""
        with _translate_java_errors(path):
            system, place = self._at(path)
            if not system.exists(place):
                return None
            stream = system.open(place)
            try:
                return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()

    def write(self, path: str, text: str) -> None:
        """Write a file atomically."""
        with _translate_java_errors(path):
            system, place = self._at(path)
            _, part = self._at(f"{path}.part")
            stream = system.create(part, True)
            try:
                stream.write(bytearray(text.encode()))
            finally:
                stream.close()
            system.delete(place, False)
            if not system.rename(part, place):
                raise StateUnreachableError(
                    f"state.dir cannot be used: {path}: the file system did not rename {part} to it; "
                    "check the rights there, or use another file system"
                )

    def names(self, folder: str) -> list[str]:
        """The names in a folder; empty if it does not exist."""
        with _translate_java_errors(folder):
            system, place = self._at(folder)
            if not system.exists(place):
                return []
            return [str(status.getPath().getName()) for status in system.listStatus(place)]

    def delete(self, path: str) -> None:
        """Remove a file, or a folder with its contents, if it exists."""
        with _translate_java_errors(path):
            system, place = self._at(path)
            system.delete(place, True)

    def _at(self, path: str) -> tuple[Any, Any]:
        place = self._jvm.org.apache.hadoop.fs.Path(path)
        return place.getFileSystem(self._settings), place


@contextmanager
def _translate_java_errors(path: str) -> Iterator[None]:
    """Convert Java exceptions to a one-sentence error; the end of the Java process itself is reported elsewhere."""
    from py4j.protocol import Py4JJavaError

    try:
        yield
    except Py4JJavaError as error:
        thrown: Any = error.java_exception
        raise StateUnreachableError(f"state.dir cannot be used: {path}: {_reason(thrown)}") from None


def _reason(thrown: Any) -> str:
    text = str(thrown.getMessage() or thrown.getClass().getSimpleName())
    return text.partition(";")[0].splitlines()[0][:300]
