"""Results of a batch into topics: Arrow rows handed to librdkafka, as fast as Python can.

Rows keep their order, and with it each key's order in its partition. A row without a partition goes where Java's
producers would put its key. Whether and when the rows count is decided by the sinks. Start at `Delivery.send`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from moldau.client.connection import build
from moldau.client.errors import ClientError, client_error
from moldau.pipeline.runtime.client_log import report_sparingly
from moldau.pipeline.runtime.interruptible import InterruptibleProducer
from moldau.pipeline.runtime.settings import StreamsSettings

if TYPE_CHECKING:
    import pyarrow as pa
    from confluent_kafka import KafkaError, Message, Producer

__all__ = ["OUTPUT_COLUMNS", "Delivery", "producer_for"]

OUTPUT_COLUMNS = ("output", "topic", "key", "value", "timestamp", "headers", "partition")
"""What a row of results consists of."""

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
    producer, _ = build(RdkafkaProducer, "producer", properties, report=report_sparingly, title=title, extra=callbacks)
    return producer


class Delivery:
    """One producer, used by one batch at a time."""

    def __init__(self, settings: StreamsSettings, extra: Mapping[str, str]) -> None:
        self._failures: list[ClientError] = []
        self._is_closed = False
        self.producer = producer_for(settings, extra, self._failed)
        self.interruptible = InterruptibleProducer(self.producer)

    def send(self, rows: pa.Table) -> int:
        """Hand over all rows that have a topic; returns how many those are."""
        sent = 0
        for batch in rows.to_batches():
            sent += self._send(batch)
        return sent

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

    def _send(self, batch: pa.RecordBatch) -> int:
        produce = self.producer.produce
        sent = 0
        for topic, value, key, partition, timestamp, headers in _records(batch):
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


def _records(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    partitions = columns["partition"].fill_null(BY_KEY).to_pylist()
    headers = columns["headers"]
    no_headers = headers.null_count == len(headers)
    return zip(
        columns["topic"].to_pylist(),
        columns["value"].to_pylist(),
        columns["key"].to_pylist(),
        partitions,
        [time or FIRST_MS for time in columns["timestamp"].to_pylist()],
        [None] * len(headers) if no_headers else [_pairs(one) for one in headers.to_pylist()],
        strict=True,
    )


def _pairs(headers: Any) -> list[tuple[str, bytes | None]] | None:
    return [(one["key"], one["value"]) for one in headers] if headers else None


def _refused(error: Exception, topic: str) -> ClientError:
    from confluent_kafka import KafkaException

    if isinstance(error, KafkaException):
        return client_error(error.args[0], about=f"Topic {topic}")
    return ClientError(f"Topic {topic}: {error}")
