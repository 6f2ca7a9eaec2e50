"""Streaming queries: started with a function for each batch's rows, watched without knowing Spark's classes.

`pipeline.runtime` decides when to start and stop one, and what becomes of its rows. Start at `start_query`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["OnBatch", "Query", "start_query", "start_realtime_query"]

OnBatch = Callable[[Iterator["pa.RecordBatch"], int], None]
"""Gets a batch's rows, as tasks end, and its number; what it raises ends the query."""

REALTIME_BATCH = "5 seconds"


class BatchFailedError(Exception):
    """What Spark is told of a failure; `Query.failure` has the failure itself."""


class Query:
    """A running query."""

    def __init__(
        self,
        started: StreamingQuery,
        failures: list[BaseException] | None = None,
        on_batch: list[OnBatch] | None = None,
    ) -> None:
        self._query = started
        self._failures = [] if failures is None else failures
        self._on_batch = [] if on_batch is None else on_batch

    @property
    def is_active(self) -> bool:
        return bool(self._query.isActive)

    def failure(self) -> BaseException | str | None:
        """What ended the query: a batch's own exception, or Spark's words; None where it runs or was stopped."""
        if self._failures:
            return self._failures[0]
        error = self._query.exception()
        return None if error is None else str(error)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Whether the query has ended within this time, to its very last act."""
        try:
            return self._query.awaitTermination(timeout_s) is not False  # type: ignore[arg-type]
        except Exception:
            return True

    def stop(self) -> None:
        """End it; a batch under way is given up, and done again by whoever starts the query next.

        Raises where it has not ended within `spark.sql.streaming.stopTimeout`; it will, in its own time.
        """
        self._query.stop()

    def release(self) -> None:
        """Once it has ended: forget what batches went to and what they failed with. Java keeps the function for batches
        for as long as it likes, and with it all that the function refers to.
        """
        self._failures.clear()
        self._on_batch.clear()

    def progress(self) -> Mapping[str, Any] | None:
        """Facts about the last batch, as Spark reports them."""
        last = self._query.lastProgress
        if last is None:
            return None
        return dict(json.loads(last.json))


def start_query(
    frame: DataFrame, *, name: str, checkpoint: str, mode: str, interval_ms: int | None, on_batch: OnBatch
) -> Query:
    """Start a query that hands each batch to `on_batch` on the driver."""

    failures: list[BaseException] = []
    held = [on_batch]

    def deliver(batch: DataFrame, number: int) -> None:
        try:
            # Whoever fails in the middle leaves rows behind, which Java would wait to get rid of.
            with closing(_arriving(batch)) as rows:
                held[0](rows, number)
        except BaseException as error:
            failures.append(error)
            kind = type(error).__name__
        else:
            return
        # Spark searches the text of what comes back with a pattern that long ones overflow its stack with. Raised out
        # here it has no context: pyspark keeps it, and would keep the frames of the failure with it.
        raise BatchFailedError(f"batch {number}: {kind}")

    writer = frame.writeStream.queryName(name).option("checkpointLocation", checkpoint).outputMode(mode)
    started = writer.foreachBatch(deliver).trigger(processingTime=f"{interval_ms or 0} milliseconds").start()
    return Query(started, failures, held)


def _arriving(batch: DataFrame) -> Generator[pa.RecordBatch]:
    """A batch's rows, those of a task as soon as it has ended, and at least one batch of rows, be it empty.

    `toArrow` would wait for all tasks, ask Java for the schema, parse it and cast to it, 3 ms a batch.
    """
    import pyarrow as pa
    from pyspark.errors.exceptions.captured import unwrap_spark_exception
    from pyspark.sql.pandas.serializers import ArrowCollectSerializer
    from pyspark.util import _load_from_socket

    rows: Any = batch
    serializer: Any = ArrowCollectSerializer
    port, secret, server = rows._jdf.collectAsArrowToPython()
    try:
        with _load_from_socket((port, secret), serializer()) as items:
            # The last item is the order of the tasks, which is nobody's concern.
            yield from (item for item in items if isinstance(item, pa.RecordBatch))
    except Exception:
        with unwrap_spark_exception():
            server.getResult()  # It knows better what has failed.
        raise
    with unwrap_spark_exception():
        server.getResult()


def start_realtime_query(frame: DataFrame, *, name: str, checkpoint: str, options: Mapping[str, str]) -> Query:
    """Start a query whose records go to Kafka one by one, without waiting for a batch to end."""
    columns = frame.select("topic", "key", "value", "headers", "partition")
    writer = columns.writeStream.queryName(name).option("checkpointLocation", checkpoint).outputMode("update")
    to_kafka: Any = writer.format("kafka").options(**options)
    return Query(to_kafka.trigger(realTime=REALTIME_BATCH).start())
