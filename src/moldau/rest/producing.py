"""Sends records for all requests with one producer, whose callbacks become futures. Start at `RecordProducer.send`.

librdkafka calls back in the thread that polls; outcomes are handed to the event loop in batches, one wake-up each.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.client.connection import build, log_report
from moldau.client.errors import ClientError, UnreachableError, client_error
from moldau.client.unsent_records import end_producer
from moldau.client.waiting import in_daemon_thread
from moldau.core.errors import ErrorCode
from moldau.rest.records.embedded import OutgoingRecord

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

__all__ = ["Delivered", "Outcome", "RecordProducer"]

POLL_S = 0.5
FULL_WAIT_S = 0.005
FULL_FOR_S = 60.0
FLUSH_S = 1.0
"""Requests that wait for their records have been ended by then, so few records are left."""
DEFAULTS = {
    # Requests wait for their answer, so the pause that waits for more records is short. Without any, records that
    # arrive together leave one by one: half of the rate, at twice the work for the broker, and no lower latency.
    "linger.ms": "0.5",
    # A topic that is not there is reported after this time, instead of half a minute.
    "topic.metadata.propagation.max.ms": "5000",
}

_logger = logging.getLogger("moldau.rest")


class Delivered(NamedTuple):
    """Where a record was stored."""

    partition: int
    offset: int
    timestamp_ms: int


Outcome = Delivered | ClientError


class RecordProducer:
    """Belongs to the event loop that runs when it is made; connects at the first record."""

    def __init__(self, servers: str, properties: Mapping[str, str], client_id: str) -> None:
        self._settings = {**DEFAULTS, "client.id": client_id, **properties, "bootstrap.servers": servers}
        self._client_id = client_id
        self._rdkafka: Producer | None = None
        self._thread: threading.Thread | None = None
        self._loop = asyncio.get_running_loop()
        self._outcomes: deque[tuple[asyncio.Future[Outcome], Outcome]] = deque()
        self._is_woken = False
        self._is_closed = False
        self.sent_records = 0
        self.failed_records = 0

    async def send(self, topic: str, records: Sequence[OutgoingRecord]) -> list[asyncio.Future[Outcome]]:
        """Hand over records; one future each, in order, with where it was stored or why it was not. Never raises for
        a record. Waits only while the buffer is full."""
        futures = []
        for record in records:
            futures.append(self.send_soon(topic, record) or await self._send_when_there_is_room(topic, record))
        return futures

    def send_soon(self, topic: str, record: OutgoingRecord) -> asyncio.Future[Outcome] | None:
        """Hand over one record; `None` if the buffer is full."""
        from confluent_kafka import KafkaException

        future: asyncio.Future[Outcome] = self._loop.create_future()
        fields: dict[str, Any] = {}
        if record.partition is not None:
            fields["partition"] = record.partition
        if record.timestamp_ms is not None:
            fields["timestamp"] = record.timestamp_ms
        if record.headers:
            fields["headers"] = list(record.headers)

        def delivered(error: KafkaError | None, message: Message) -> None:
            self._hand_to_loop(future, _outcome(error, message, topic))

        try:
            self._producer().produce(topic, record.value, record.key, on_delivery=delivered, **fields)
        except BufferError:
            return None
        except KafkaException as error:
            self._settle(future, client_error(error.args[0], about=f"Topic {topic}"))
        except (TypeError, ValueError, RuntimeError) as error:
            self._settle(future, ClientError(f"Topic {topic}: {error}", ErrorCode.INVALID_REQUEST))
        return future

    async def _send_when_there_is_room(self, topic: str, record: OutgoingRecord) -> asyncio.Future[Outcome]:
        deadline = self._loop.time() + FULL_FOR_S
        while self._loop.time() < deadline:
            await asyncio.sleep(FULL_WAIT_S)
            future = self.send_soon(topic, record)
            if future is not None:
                return future
        full: asyncio.Future[Outcome] = self._loop.create_future()
        self._settle(full, UnreachableError(f"Topic {topic}: the producer's buffer stayed full for {FULL_FOR_S:g} s"))
        return full

    async def close(self) -> None:
        """Send what was handed over, within moments; what no broker takes by then is dropped and counted in the log."""
        rdkafka, self._rdkafka, self._is_closed = self._rdkafka, None, True
        if rdkafka is None:
            return
        unsent = await in_daemon_thread(lambda: rdkafka.flush(FLUSH_S), name="rest-producer-close")
        if unsent:
            _logger.warning("%d records were not sent: no broker took them within %g s", unsent, FLUSH_S)
        await in_daemon_thread(lambda: end_producer(rdkafka, 0), name="rest-producer-close")

    def _producer(self) -> Producer:
        return self._rdkafka or self._connect()

    def _connect(self) -> Producer:
        from confluent_kafka import Producer

        if self._is_closed:
            raise RuntimeError("the proxy is being stopped")
        title = f"Producer clientId={self._client_id}"
        rdkafka: Producer
        rdkafka, _ = build(Producer, "producer", self._settings, report=log_report, title=title)
        self._rdkafka = rdkafka
        self._thread = threading.Thread(target=self._poll, args=(rdkafka,), name="rest-producer", daemon=True)
        self._thread.start()
        return rdkafka

    def _poll(self, rdkafka: Producer) -> None:
        while not self._is_closed:
            rdkafka.poll(POLL_S)

    # Outcomes

    def _hand_to_loop(self, future: asyncio.Future[Outcome], outcome: Outcome) -> None:
        """Called in the thread that polls."""
        self._outcomes.append((future, outcome))
        if not self._is_woken:
            self._is_woken = True
            try:
                self._loop.call_soon_threadsafe(self._settle_all)
            except RuntimeError:
                pass  # the loop is closed: nobody waits any more

    def _settle_all(self) -> None:
        # Cleared first: an outcome that arrives from now on asks for another turn.
        self._is_woken = False
        while self._outcomes:
            self._settle(*self._outcomes.popleft())

    def _settle(self, future: asyncio.Future[Outcome], outcome: Outcome) -> None:
        if isinstance(outcome, ClientError):
            self.failed_records += 1
        else:
            self.sent_records += 1
        if not future.done():
            future.set_result(outcome)


def _outcome(error: KafkaError | None, message: Message, topic: str) -> Outcome:
    if error is None:
        return Delivered(message.partition() or 0, message.offset() or 0, message.timestamp()[1])
    translated = client_error(error, about=f"Topic {topic}")
    if error.name() in ("_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"):
        translated.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return translated
