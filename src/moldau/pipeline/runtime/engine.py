"""One Spark driver and the pipelines it hosts. Batches of all of them take turns: Spark serves the oldest first.

Starting Spark takes seconds, a pipeline on it a fraction of one, so a process has one engine unless it asks for more.
A Java process that dies is replaced when the next pipeline asks for it. Start at `Engine`.
"""

from __future__ import annotations

import atexit
import logging
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from moldau.pipeline.spark.driver.session import close_session, is_alive, is_submitted, open_session, session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Engine", "shared_engine"]

CLEAR_LINE = "\r\x1b[2K"

logger = logging.getLogger("moldau.streams")


class Engine:
    """Keeps Spark; `settings` are `spark.*` keys, `threads` how many tasks may run at once.

    A session that is there already may be given; then it is not stopped here.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        threads: int | None = None,
        spark: SparkSession | None = None,
    ) -> None:
        self._settings = session_settings(settings or {}, threads=threads)
        self._spark = spark
        self._is_ours = spark is None
        self._lock = threading.Lock()

    @property
    def settings(self) -> Mapping[str, str]:
        return self._settings

    def session(self) -> SparkSession:
        """Spark, started where it does not run (any more). Raises where it cannot be started."""
        with self._lock:
            if self._spark is not None and self._is_ours and not is_alive(self._spark):
                logger.warning("Spark's Java process has ended; starting another")
                close_session(self._spark)
                self._spark = None
            if self._spark is None:
                with _announced_start():
                    self._spark = open_session(self._settings)
            return self._spark

    def has_lost_spark_for_good(self) -> bool:
        """Whether Spark has ended and was `spark-submit`'s, which brings no other."""
        spark = self._spark
        return spark is not None and is_submitted() and not is_alive(spark)

    def close(self) -> None:
        """Stop Spark, if it was started here."""
        with self._lock:
            spark, self._spark = self._spark, None
            if spark is not None and self._is_ours:
                close_session(spark)


@contextmanager
def _announced_start() -> Iterator[None]:
    """Say that Spark is being started: on a terminal a line that is cleared afterwards, elsewhere a line of the log."""
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
    """The process's engine; the settings are those of whoever asks first."""
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
