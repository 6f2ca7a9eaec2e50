"""Results of a batch into topics: Arrow rows handed to librdkafka, as fast as Python can.

Rows keep their order, and with it each key's order in its partition. A row without a partition goes where Java's
producers would put its key. Whether and when the rows count is decided by the sinks. Start at `Delivery.send`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import repeat
from typing import TYPE_CHECKING, Any

from moldau.client.connection import build
from moldau.client.errors import ClientError, client_error
from moldau.pipeline.runtime.client_log import report_client_log
from moldau.pipeline.runtime.interruptible import InterruptibleProducer
from moldau.pipeline.runtime.results import Results
from moldau.pipeline.runtime.settings import StreamsSettings
from moldau.pipeline.spark.rows import binary_values

if TYPE_CHECKING:
    import pyarrow as pa
    from confluent_kafka import KafkaError, Message, Producer

__all__ = ["Delivery", "producer_for"]

BY_KEY = -1
FIRST_MS = 1
"""In place of 0, by which librdkafka means the present."""
FLUSH_SLICE_S = 0.5
FULL_BUFFER_S = 0.02

_DEFAULTS: Mapping[str, str] = {
    "linger.ms": "5",
    "batch.size": "1000000",
    "buffer.memory": "268435456",
    "acks": "all",
    "enable.idempotence": "true",
}


def producer_for(
    settings: StreamsSettings, extra: Mapping[str, str], failed: Callable[[KafkaError | None, Message], None]
) -> Producer:
    """A producer with the application's properties; `failed` hears of records that cannot be delivered."""
    from confluent_kafka import Producer as RdkafkaProducer

    properties = {**_DEFAULTS, **settings.client_properties("producer"), **extra}
    title = f"Producer clientId={properties['client.id']}"
    # Successes are not reported one by one: a callback for each record would cost more than sending it.
    callbacks = {"delivery.report.only.error": True, "on_delivery": failed}
    producer, _ = build(RdkafkaProducer, "producer", properties, report=report_client_log, title=title, extra=callbacks)
    return producer


class Delivery:
    """One producer, used by one batch at a time."""

    def __init__(self, settings: StreamsSettings, extra: Mapping[str, str]) -> None:
        self._failures: list[ClientError] = []
        self._is_closed = False
        self.producer = producer_for(settings, extra, self._failed)
        self.interruptible = InterruptibleProducer(self.producer)

    def send(self, results: Results) -> int:
        """Hand over all rows that have a topic; returns how many those are."""
        return sum(self._send(batch, results.topics) for batch in results if batch.num_rows)

    def flush(self) -> None:
        """Wait until everything handed over is stored; raises the first failure."""
        while self.producer.flush(FLUSH_SLICE_S):
            self.interruptible.check()
            self._raise_failure()
        self._raise_failure()

    def discard_failures(self) -> None:
        self.producer.poll(0)
        self._failures.clear()

    def close(self) -> None:
        """Let go of what is left; a closed producer's records are nobody's business any more."""
        self._is_closed = True
        with suppress(Exception):
            # In a fenced producer the binding's own calls fail; there is nothing to be done about it.
            self.producer.purge()
            self.producer.flush(1)

    def _send(self, batch: pa.RecordBatch, topics: Sequence[str | None]) -> int:
        produce = self.producer.produce
        sent = 0
        for topic, value, key, partition, timestamp, headers in _records(batch, topics):
            if topic is None:
                continue
            sent += 1
            try:
                if headers:
                    produce(topic, value, key, partition, None, None, timestamp, headers)
                else:
                    produce(topic, value, key, partition, None, None, timestamp)
            except BufferError:
                self._send_patiently(topic, value, key, partition, timestamp, headers)
            except Exception as error:
                raise _refused(error, topic) from None
        return sent

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
                raise _refused(error, topic) from None

    def _failed(self, error: KafkaError | None, message: Message) -> None:
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
        strict=False,  # What is the same for all rows is repeated without end.
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


def _refused(error: Exception, topic: str) -> ClientError:
    from confluent_kafka import KafkaException

    if isinstance(error, KafkaException):
        return client_error(error.args[0], about=f"Topic {topic}")
    return ClientError(f"Topic {topic}: {error}")
