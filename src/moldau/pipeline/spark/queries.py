"""Streaming queries: started with a function for each batch's rows, and watched without using Spark's classes.

`pipeline.runtime` decides when to start and stop a query, and what to do with its rows. Start at `start_query`.
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
"""Called with a batch's rows, as tasks end, and its number; an exception ends the query."""

REALTIME_BATCH_MS, SHORTEST_REALTIME_BATCH_MS = 30_000, 5_000
"""How long a real-time batch is by default, and at the least. At its end the query pauses for a moment to note where it
is; after a failure it goes on from there.
"""


class BatchFailedError(Exception):
    """The exception that Spark gets for a failure; `Query.failure` returns the failure itself."""


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
        """Why the query ended: a batch's own exception, or Spark's message; None if it runs or was stopped."""
        if self._failures:
            return self._failures[0]
        error = self._query.exception()
        return None if error is None else str(error)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the query to end completely; returns whether it has ended within this time."""
        try:
            return self._query.awaitTermination(timeout_s) is not False  # type: ignore[arg-type]
        except Exception:
            return True

    def stop(self) -> None:
        """Stop the query; the current batch is aborted, and the next start repeats it.

        Raises if it has not ended within `spark.sql.streaming.stopTimeout`; it still ends later.
        """
        self._query.stop()

    def release(self) -> None:
        """Drop the batch function and the failures, once the query has ended. Java keeps a reference to the batch
        function for an unknown time, and with it everything that the function refers to.
        """
        self._failures.clear()
        self._on_batch.clear()

    def progress(self) -> Mapping[str, Any] | None:
        """Spark's report of the last batch."""
        last = self._query.lastProgress
        if last is None:
            return None
        return dict(json.loads(last.json))


def start_query(
    frame: DataFrame, *, name: str, checkpoint: str, mode: str, interval_ms: int | None, on_batch: OnBatch
) -> Query:
    """Start a query that passes each batch to `on_batch` on the driver."""

    failures: list[BaseException] = []
    held = [on_batch]

    def deliver(batch: DataFrame, number: int) -> None:
        try:
            # If `on_batch` fails, unread rows are left, and Java would wait until they are read.
            with closing(_arriving(batch)) as rows:
                held[0](rows, number)
        except BaseException as error:
            failures.append(error)
            kind = type(error).__name__
        else:
            return
        # The text is short because Spark searches it with a regular expression that overflows its stack on long texts.
        # Raised outside the `except` block it has no context: pyspark keeps the exception, and with a context would
        # keep the frames of the failure.
        raise BatchFailedError(f"batch {number}: {kind}")

    writer = frame.writeStream.queryName(name).option("checkpointLocation", checkpoint).outputMode(mode)
    started = writer.foreachBatch(deliver).trigger(processingTime=f"{interval_ms or 0} milliseconds").start()
    return Query(started, failures, held)


def _arriving(batch: DataFrame) -> Generator[pa.RecordBatch]:
    """A batch's rows, those of a task as soon as it has ended.

    `toArrow` would wait for all tasks, ask Java for the schema, parse it and cast to it: 3 ms per batch.
    """
    try:
        from pyspark.errors.exceptions.captured import unwrap_spark_exception
        from pyspark.util import _load_from_socket

        collect = batch._jdf.collectAsArrowToPython
    except (ImportError, AttributeError):
        yield from _all_at_once(batch)
        return
    reader: Any = _AsTheyArrive()
    port, secret, server = collect()
    try:
        with _load_from_socket((port, secret), reader) as rows:
            yield from rows
    except Exception:
        with unwrap_spark_exception():
            server.getResult()  # Raises Spark's own error, which is more precise.
        raise
    with unwrap_spark_exception():
        server.getResult()


class _AsTheyArrive:
    """Reads batches one by one; PySpark's own reader waits for all of them to put those of the tasks into order."""

    def load_stream(self, stream: Any) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        yield from pa.ipc.open_stream(stream)
        # Java ends with the order of the batches, and would fail if nobody read it.
        stream.read()


def _all_at_once(batch: DataFrame) -> Iterator[pa.RecordBatch]:
    """A batch's rows by PySpark's public API."""
    yield from batch.toArrow().to_batches()


def start_realtime_query(
    frame: DataFrame, *, name: str, checkpoint: str, options: Mapping[str, str], batch_ms: int | None = None
) -> Query:
    """Start a query whose records go to Kafka one by one, without waiting for a batch to end."""
    length_ms = max(SHORTEST_REALTIME_BATCH_MS, batch_ms or REALTIME_BATCH_MS)
    columns = frame.select("topic", "key", "value", "headers", "partition")
    writer = columns.writeStream.queryName(name).option("checkpointLocation", checkpoint).outputMode("update")
    to_kafka: Any = writer.format("kafka").options(**options)
    return Query(to_kafka.trigger(realTime=f"{length_ms} milliseconds").start())
