"""A lock that Spark's Java process holds on a file.

When a driver is killed, its Java process runs on for a moment and may still write to the checkpoint. The next start
waits for this lock, which is free only when that process has ended. A query may also outlive the run that has stopped
it in the same process; then the next run waits as well. Start at `ProcessLock`.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ProcessLock"]

PAUSE_S = 0.1

_of_this_process: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)
"""Within one Java process the file lock has no effect, and closing a second handle of the file would release it."""


class ProcessLock:
    """Held from `acquire` until `release`, or until the Java process ends."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self._jvm: Any = spark.sparkContext._jvm
        self._path = path
        self._here = _of_this_process[path]
        self._file: Any = None

    def acquire(self, patience_s: float) -> bool:
        """Wait for the lock; returns whether it was acquired within this time."""
        deadline = time.monotonic() + patience_s
        if not self._here.acquire(timeout=patience_s):
            return False
        is_ours = False
        try:
            self._file = self._jvm.java.io.RandomAccessFile(str(self._path), "rw")
            is_ours = self._is_locked_until(deadline)
        finally:
            if not is_ours:
                self.release()
        return is_ours

    def release(self) -> None:
        """Release the lock; any thread may call this."""
        try:
            self._file.close()
        except Exception:
            # The Java process has ended, and its locks are released.
            return
        finally:
            self._here.release()

    def _is_locked_until(self, deadline: float) -> bool:
        while self._file.getChannel().tryLock() is None:
            if time.monotonic() > deadline:
                return False
            time.sleep(PAUSE_S)
        return True
