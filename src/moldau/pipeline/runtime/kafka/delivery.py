"""Sends a batch's results to topics: Arrow rows are passed to librdkafka, as fast as Python can.

Rows keep their order, and with it each key's order in its partition. A row without a partition goes to the partition
that Java's producers would choose for its key. The sinks decide whether and when the rows are committed.

A delivery can be interrupted. While no broker answers, the client retries without limit to find out whether a commit
succeeded; a pipeline that must stop then cannot wait for that, and the next start finds out. Start at `Delivery.send`,
then `InterruptibleProducer.interrupt`.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

from moldau.client.errors import ClientError, client_error
from moldau.pipeline.runtime.errors import StreamsError
from moldau.pipeline.runtime.kafka.clients import KafkaClients
from moldau.pipeline.runtime.sink import Results
from moldau.pipeline.spark.rows import binary_values

if TYPE_CHECKING:
    import pyarrow as pa
    from confluent_kafka import KafkaError, Message, Producer

__all__ = ["Delivery", "InterruptedDeliveryError", "InterruptibleProducer"]

logger = logging.getLogger("moldau.streams")

BY_KEY = -1
FIRST_MS = 1
"""Replaces timestamp 0, which librdkafka takes as the current time."""
FLUSH_SLICE_S = 0.5
FULL_BUFFER_S = 0.02
CLOSE_S, CLOSE_POLL_S = 2.0, 0.1


class InterruptedDeliveryError(StreamsError):
    """The pipeline was stopped while it wrote a batch; the next start commits or repeats that batch."""


class InterruptibleProducer:
    """The producer calls that transactions need; each call is refused after `interrupt`."""

    def __init__(self, producer: Producer) -> None:
        self._producer: Producer | None = producer
        self._is_interrupted = False

    @property
    def producer(self) -> Producer:
        """The producer itself, for calls that cannot block."""
        if self._producer is None:
            raise InterruptedDeliveryError("the producer is closed")
        return self._producer

    def release(self) -> None:
        """Drop the reference to the producer."""
        self._producer = None

    def interrupt(self) -> None:
        """Make all later calls fail; may be called by any thread."""
        self._is_interrupted = True

    def check(self) -> None:
        """Raise `InterruptedDeliveryError` if `interrupt` was called."""
        if self._is_interrupted:
            raise InterruptedDeliveryError("ended while a batch was being written; the next start decides about it")

    def __getattr__(self, name: str) -> Any:
        self.check()
        return partial(self._call, name)

    def _call(self, name: str, *arguments: Any) -> Any:
        self.check()
        # Not stored in a variable: the frames of an exception would keep a closed producer alive.
        return getattr(self.producer, name)(*arguments)


class Delivery:
    """One producer, used by one batch at a time."""

    def __init__(self, clients: KafkaClients, extra: Mapping[str, str]) -> None:
        self._failures: list[ClientError] = []
        self._is_closed = False
        self.interruptible = InterruptibleProducer(clients.new_producer(extra, self._note_failure))

    @property
    def producer(self) -> Producer:
        return self.interruptible.producer

    def send(self, results: Results) -> int:
        """Pass all rows that have a topic to the producer; returns their number."""
        return sum(self._send(batch, results.topics) for batch in results if batch.num_rows)

    def flush(self) -> None:
        """Wait until all sent rows are stored; raises the first failure."""
        while self.producer.flush(FLUSH_SLICE_S):
            self.interruptible.check()
            self._raise_failure()
        self._raise_failure()

    def discard_failures(self) -> None:
        self.producer.poll(0)
        self._failures.clear()

    def close(self) -> None:
        """Close the producer, and drop records that are not sent yet. May be called again.

        Each record without a delivery report keeps the binding's object alive, and with it librdkafka's threads. So
        remaining records are purged and their reports are served; then the last reference to the client is dropped,
        which ends it.
        """
        if self._is_closed:
            return
        self._is_closed = True
        deadline = time.monotonic() + CLOSE_S
        self._try(partial(self.producer.purge, blocking=False))
        while len(self.producer) and time.monotonic() < deadline:
            self._try(partial(self.producer.poll, CLOSE_POLL_S))
        self.interruptible.release()

    @staticmethod
    def _try(call: Callable[[], object]) -> None:
        """Call, and log any error: a fenced producer raises once more to report the fencing; the next call works."""
        try:
            call()
        except (KeyboardInterrupt, SystemExit):
            raise
        except:  # noqa: E722, the binding raises its KafkaError, which is no exception
            logger.debug("while closing a producer: %s", sys.exc_info()[1])

    def _send(self, batch: pa.RecordBatch, topics: Sequence[str | None]) -> int:
        produce, count = self.producer.produce, 0
        try:
            for topic, value, key, partition, timestamp, headers in _records(batch, topics):
                if topic is None:
                    continue
                count += 1
                try:
                    if headers:
                        produce(topic, value, key, partition, None, None, timestamp, headers)
                    else:
                        produce(topic, value, key, partition, None, None, timestamp)
                except BufferError:
                    self._send_patiently(topic, value, key, partition, timestamp, headers)
                except Exception as error:
                    raise _send_error(error, topic) from None
        finally:
            del produce  # for the same reason as in `InterruptibleProducer._call`
        return count

    def _send_patiently(  # noqa: PLR0917, in the order of `produce`
        self, topic: str, value: Any, key: Any, partition: int, timestamp: int, headers: Any
    ) -> None:
        while True:
            self.producer.poll(FULL_BUFFER_S)
            self.interruptible.check()
            self._raise_failure()
            try:
                return self.producer.produce(topic, value, key, partition, None, None, timestamp, headers or [])
            except BufferError:
                continue
            except Exception as error:
                raise _send_error(error, topic) from None

    def _note_failure(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and not self._is_closed:
            self._failures.append(client_error(error, about=f"Topic {message.topic()}"))

    def _raise_failure(self) -> None:
        if self._failures:
            failure = self._failures[0]
            self._failures.clear()
            raise failure


def _records(batch: pa.RecordBatch, topics: Sequence[str | None]) -> Iterator[tuple[Any, ...]]:
    import pyarrow.compute as pc

    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    return zip(
        _topics(columns["output"], columns["topic"], topics),
        binary_values(columns["value"]),
        binary_values(columns["key"]),
        _partitions(columns["partition"]),
        pc.max_element_wise(columns["timestamp"], FIRST_MS).to_numpy().tolist(),
        _headers(columns["headers"]),
        strict=False,  # Values that are the same for all rows are repeated without end.
    )


def _topics(outputs: pa.Array, own: pa.Array, topics: Sequence[str | None]) -> Iterable[str | None]:
    """Each row's topic: its own, or that of its output."""
    import pyarrow.compute as pc

    if own.null_count < len(own):
        return [topic or topics[output] for topic, output in zip(own.to_pylist(), outputs.to_pylist(), strict=True)]
    least, most = pc.min_max(outputs).values()
    if least == most:
        return repeat(topics[least.as_py()])
    return [topics[output] for output in outputs.to_pylist()]


def _partitions(column: pa.Array) -> Iterable[int]:
    return repeat(BY_KEY) if column.null_count == len(column) else column.fill_null(BY_KEY).to_pylist()


def _headers(column: pa.Array) -> Iterable[list[tuple[str, bytes | None]] | None]:
    return repeat(None) if column.null_count == len(column) else map(_pairs, column.to_pylist())


def _pairs(headers: Any) -> list[tuple[str, bytes | None]] | None:
    return [(one["key"], one["value"]) for one in headers] if headers else None


def _send_error(error: Exception, topic: str) -> ClientError:
    from confluent_kafka import KafkaException

    if isinstance(error, KafkaException):
        return client_error(error.args[0], about=f"Topic {topic}")
    return ClientError(f"Topic {topic}: {error}")
