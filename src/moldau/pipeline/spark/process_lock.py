"""A lock that Spark's Java process holds on a file.

When a driver is killed, its Java process lives on for a moment and may still write to the checkpoint. Whoever starts
next waits for this lock, which is free only when that process is gone. Start at `ProcessLock`.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ProcessLock"]

PAUSE_S = 0.1


class ProcessLock:
    """Held from `acquire` until `release`, or until the Java process ends."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        jvm: Any = spark.sparkContext._jvm
        self._file = jvm.java.io.RandomAccessFile(str(path), "rw")

    def acquire(self, patience_s: float) -> bool:
        """Whether the lock is ours within this time."""
        deadline = time.monotonic() + patience_s
        while not self._try():
            if time.monotonic() > deadline:
                return False
            time.sleep(PAUSE_S)
        return True

    def release(self) -> None:
        try:
            self._file.close()
        except Exception:
            # The process is gone, and its locks with it.
            return

    def _try(self) -> bool:
        try:
            return self._file.getChannel().tryLock() is not None
        except Exception as error:
            if "OverlappingFileLockException" in str(error):
                # This very process holds it: a pipeline that is being restarted.
                return True
            raise
