"""The records of a producer that ends before the broker has acknowledged them: how many, of which topics, and why.

A librdkafka producer is stopped quickly by purging it; each record still queued is then reported as purged. After that
it has to be closed: otherwise its threads keep connecting for as long as anything refers to it, such as a traceback or
a callback that was never called. Start at `end_producer`.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from moldau.client.waiting import close_within, never, served

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

__all__ = ["UnsentRecords", "drop_records", "end_producer", "flush_interruptibly"]

FLUSH_SLICE_S = 0.1
PURGE_S = 2.0
ABORT_S = 0.5
CLOSE_S = 2.0


class UnsentRecords:
    """Counts purged records by topic."""

    def __init__(self) -> None:
        self._in_queue: Counter[str] = Counter()
        self._in_flight: Counter[str] = Counter()

    def notes(self, error: KafkaError, topic: str | None) -> bool:
        """Count a record if its delivery report says that it was purged; returns whether it was."""
        name = error.name()
        if name == "_PURGE_QUEUE":
            self._in_queue[topic or ""] += 1
        elif name == "_PURGE_INFLIGHT":
            self._in_flight[topic or ""] += 1
        else:
            return False
        return True

    def drain_lines(self, servers: str) -> list[str]:
        """Log lines about the records counted since the last call."""
        lines = [
            f"{_records(count)} not sent to topic {topic}: the broker at {servers} did not answer"
            for topic, count in sorted(self._in_queue.items())
        ]
        lines += [
            f"{_records(count)} sent to topic {topic}, but not acknowledged by the broker at {servers}: "
            "whether stored is not known"
            for topic, count in sorted(self._in_flight.items())
        ]
        self.clear()
        return lines

    def clear(self) -> None:
        self._in_queue.clear()
        self._in_flight.clear()


def _records(count: int) -> str:
    return "1 record was" if count == 1 else f"{count} records were"


def flush_interruptibly(producer: Any, *, is_over: Callable[[], bool] = never, timeout_s: float = math.inf) -> bool:
    """Wait until all records are stored or have failed; returns false if `is_over()` or the timeout came first.

    Without a timeout, `delivery.timeout.ms` is what ends the wait.
    """
    deadline = time.monotonic() + timeout_s
    while served(producer.flush, max(0.0, min(FLUSH_SLICE_S, deadline - time.monotonic()))):
        if is_over() or time.monotonic() >= deadline:
            return False
    return True


def drop_records(producer: Any) -> None:
    """Drop the records that are not stored yet; all delivery callbacks have been called when this returns."""
    from confluent_kafka import KafkaException

    # A fenced producer raises its error from whichever call comes next.
    with suppress(KafkaException):
        producer.purge()
    with suppress(KafkaException):
        producer.flush(PURGE_S)


def end_producer(producer: Any, patience_s: float) -> None:
    """Flush for up to `patience_s`, drop the remaining records, and close the producer.

    All delivery callbacks have been called when this returns. An open transaction is aborted. If no broker answers, the
    client is not closed, since closing would wait for the abort; it ends when nothing refers to it any more.
    """
    from confluent_kafka import KafkaException

    is_empty = False
    # A fenced producer raises its error from whichever call comes next, and sends nothing more.
    with suppress(KafkaException):
        is_empty = flush_interruptibly(producer, timeout_s=patience_s)
    if not is_empty:
        drop_records(producer)
    if _abort(producer):
        with suppress(KafkaException), warnings.catch_warnings():
            # The binding warns that a fenced producer could not abort; its successor has aborted already.
            warnings.simplefilter("ignore", RuntimeWarning)
            close_within(producer, CLOSE_S)


def _abort(producer: Any) -> bool:
    """Abort the open transaction, if any; returns whether none is open now."""
    from confluent_kafka import KafkaException

    try:
        producer.abort_transaction(ABORT_S)
    except KafkaException as error:
        return not error.args[0].retriable()
    return True
