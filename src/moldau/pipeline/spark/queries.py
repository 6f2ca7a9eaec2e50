"""Streaming queries: started with a function for each batch's rows, watched without knowing Spark's classes.

`pipeline.runtime` decides when to start and stop one, and what becomes of its rows. Start at `start_query`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

__all__ = ["Query", "failure_lines", "start_query", "start_realtime_query"]

OnBatch = Callable[["pa.Table", int], None]
"""Gets a batch's rows and its number; what it raises ends the query."""

REALTIME_BATCH = "5 seconds"


class Query:
    """A running query."""

    def __init__(self, started: StreamingQuery) -> None:
        self._query = started

    @property
    def is_active(self) -> bool:
        return bool(self._query.isActive)

    def failure(self) -> str | None:
        """What ended the query, in Spark's words; None where it runs or was stopped."""
        error = self._query.exception()
        return None if error is None else str(error)

    def wait(self, timeout_s: float) -> bool:
        """Whether the query has ended within this time."""
        try:
            return bool(self._query.awaitTermination(timeout_s))
        except Exception:
            return True

    def stop(self) -> None:
        """End it; a batch under way is given up, and done again by whoever starts the query next."""
        self._query.stop()

    def progress(self) -> Mapping[str, Any] | None:
        """Facts about the last batch, as Spark reports them."""
        last = self._query.lastProgress
        if last is None:
            return None
        return last if isinstance(last, dict) else dict(json.loads(last.json))


def start_query(frame: DataFrame, *, name: str, checkpoint: str, interval_ms: int | None, on_batch: OnBatch) -> Query:
    """Start a query that hands each batch, whole and in order, to `on_batch` on the driver."""

    def deliver(batch: DataFrame, number: int) -> None:
        on_batch(batch.toArrow(), number)

    writer = frame.writeStream.queryName(name).option("checkpointLocation", checkpoint).outputMode("append")
    return Query(writer.foreachBatch(deliver).trigger(processingTime=f"{interval_ms or 0} milliseconds").start())


def start_realtime_query(frame: DataFrame, *, name: str, checkpoint: str, options: Mapping[str, str]) -> Query:
    """Start a query whose records go to Kafka one by one, without waiting for a batch to end."""
    columns = frame.select("topic", "key", "value", "headers", "partition")
    writer = columns.writeStream.queryName(name).option("checkpointLocation", checkpoint).outputMode("update")
    return Query(writer.format("kafka").options(**options).trigger(realTime=REALTIME_BATCH).start())


def failure_lines(text: str) -> list[str]:
    """The lines of a Spark failure that people can use: errors without frames, the innermost last."""
    lines = [line.strip() for line in text.splitlines()]
    kept = [line for line in lines if line and not re.match(r"(at |File \"|\.\.\. \d+ more|===|\^+$|~)", line)]
    return [line.removeprefix("Caused by: ") for line in kept]
