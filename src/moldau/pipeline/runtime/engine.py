"""One Spark driver and the pipelines it hosts. Their batches are scheduled first in, first out.

Starting Spark takes seconds, starting a pipeline on it a fraction of a second, so a process has one engine by default.
A Java process that dies is replaced when the next pipeline needs it. Start at `Engine`.
"""

from __future__ import annotations

import atexit
import logging
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from moldau.pipeline.runtime.errors import StreamsError
from moldau.pipeline.spark.driver.session import (
    close_session,
    is_alive,
    is_local,
    is_submitted,
    open_session,
    session_settings,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["REALTIME_SLOTS", "Engine", "shared_engine"]

REALTIME_SLOTS = 128
"""How many tasks a driver may run at once for real-time pipelines; nearly all of them wait nearly all the time."""

CLEAR_LINE = "\r\x1b[2K"

logger = logging.getLogger("moldau.streams")


class Engine:
    """Owns the Spark session; `settings` are `spark.*` keys, `threads` is the maximum number of concurrent tasks.

    An existing session may be passed in; `close` then does not stop it.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        threads: int | None = None,
        spark: SparkSession | None = None,
        can_grow: bool = False,
    ) -> None:
        """With `can_grow` the first real-time pipeline makes room for itself, if Spark runs with a new start of it."""
        self._can_grow = can_grow and spark is None
        self._settings = session_settings(settings or {}, threads=threads)
        self._spark = spark
        self._is_ours = spark is None
        self._lock = threading.Lock()
        self._reserved: dict[str, int] = {}
        self.is_starting = False
        """Whether Spark is being started, which nothing interrupts; other threads that need it wait."""

    def expect_realtime(self) -> None:
        """Note that a real-time pipeline will come: Spark, if it is not running, starts with room for it."""
        with self._lock:
            if self._can_grow and self._spark is None:
                self._grow()

    def _grow(self) -> None:
        """Take the settings of a driver with many slots; state keeps the number of its parts."""
        self._can_grow = False
        if is_local(self._settings):
            self._settings = {**self._settings, "spark.master": f"local[{REALTIME_SLOTS}]"}

    def reserve_slots(self, pipeline: str, count: int) -> None:
        """Note that a real-time pipeline runs this many tasks all the time; raises if there are not as many left.

        Spark itself would start it and never run the tasks that are too many. On a cluster nothing is checked:
        executors come and go.
        """
        spark = self.session()
        with self._lock:
            taken = sum(slots for name, slots in self._reserved.items() if name != pipeline)
            total = int(spark.sparkContext.defaultParallelism)
            if is_local(self._settings) and taken + count > total and self._can_grow:
                self._grow()
                self._spark = None
                close_session(spark)
                raise StreamsError(
                    f"{pipeline} is the first real-time pipeline of this engine: Spark is started again with "
                    f"{REALTIME_SLOTS} slots instead of {total}, and all pipelines go on"
                )
            if is_local(self._settings) and taken + count > total:
                raise StreamsError(
                    f"moldau.latency=realtime needs {count} Spark task slots for {pipeline}, one for each partition "
                    "that it reads and one for each partition of its state, but "
                    f"{total - taken} of {total} are free. Set num.stream.threads to {taken + count} or more, "
                    "for the first pipeline that the process starts"
                )
            self._reserved[pipeline] = count

    def release_slots(self, pipeline: str) -> None:
        """Note that a real-time pipeline has ended."""
        with self._lock:
            self._reserved.pop(pipeline, None)

    @property
    def settings(self) -> Mapping[str, str]:
        return self._settings

    def session(self) -> SparkSession:
        """The Spark session, started if it is not running. Raises if it cannot be started."""
        with self._lock:
            if self._spark is not None and self._is_ours and not is_alive(self._spark):
                logger.warning("Spark's Java process has ended; starting another")
                close_session(self._spark)
                self._spark = None
            if self._spark is None:
                self.is_starting = True
                try:
                    with _announce_start():
                        self._spark = open_session(self._settings)
                finally:
                    self.is_starting = False
            return self._spark

    def has_lost_spark_for_good(self) -> bool:
        """Whether Spark has ended and cannot be restarted, because `spark-submit` started it."""
        spark = self._spark
        return spark is not None and is_submitted() and not is_alive(spark)

    def close(self) -> None:
        """Stop Spark, if this engine started it."""
        with self._lock:
            spark, self._spark = self._spark, None
            if spark is not None and self._is_ours:
                close_session(spark)


@contextmanager
def _announce_start() -> Iterator[None]:
    """Report that Spark is starting: on a terminal a line that is cleared afterwards, otherwise a log line."""
    text = "starting Spark, which takes some seconds"
    if not sys.stderr.isatty():
        logger.info(text)
        yield
        return
    sys.stderr.write(f"{text} …")
    sys.stderr.flush()
    try:
        yield
    finally:
        sys.stderr.write(CLEAR_LINE)
        sys.stderr.flush()


_shared: Engine | None = None
_shared_lock = threading.Lock()


def shared_engine(settings: Mapping[str, str], threads: int | None) -> Engine:
    """The process's shared engine; the first caller's settings apply."""
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = Engine(settings, threads=threads)
            atexit.register(_shared.close)
        else:
            different = [key for key, value in settings.items() if _shared.settings.get(key) != value]
            fixed = [key for key in different if not key.startswith("spark.sql.")]
            if fixed:
                logger.warning("Spark runs already; these settings come too late: %s", ", ".join(fixed))
        return _shared
