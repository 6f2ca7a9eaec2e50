"""The `_schemas` topic: written by a producer, read by a consumer, and true only as far as it was read back.

Two threads serve librdkafka; everything else, the state above all, belongs to the event loop. While brokers are away
the state stays as it was, writes fail in time, and both clients come back by themselves. Making sure that the topic
exists is `registry.topic`. Start at `TopicStore.append`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from moldau.client.connection import build
from moldau.registry.blocking import joined
from moldau.registry.errors import SchemaTooLargeError, StoreError, StoreTimeoutError
from moldau.registry.records import NoopKey, Record, decode, encode_key, encode_value
from moldau.registry.state import Refusal, State

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

__all__ = ["TopicStore"]

PARTITION: Final = 0
POLL_S: Final = 0.2
FLUSH_S: Final = 1.0
"""How long the last writes may take. All that somebody waits for were answered before, or given up."""
BATCH: Final = 500
MAX_RECORD_BYTES: Final = 1024 * 1024
"""What the Java producer sends at most unless told otherwise, and just below what brokers take."""

_logger = logging.getLogger("moldau.registry")


class _Arrived(NamedTuple):
    """Part of the topic, read and understood by the reading thread."""

    records: list[Record]
    last_offset: int
    is_end: bool


class TopicStore:
    def __init__(
        self, servers: str, topic: str, *, timeout_ms: int, properties: Mapping[str, str], names_avro: bool = True
    ) -> None:
        self.state = State()
        self.applied_offset = -1
        self.is_ready = False
        self.may_write: Callable[[], bool] = lambda: False
        """Whether this instance leads; set by whoever knows."""
        self._topic = topic
        self._timeout_s = timeout_ms / 1000
        self._names_avro = names_avro
        self._is_end_known = False
        """Whether nobody else can have written since our last write; otherwise a write of nothing finds the end."""
        self._lookers = 0
        self._held_back: list[_Arrived] = []
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._ready: asyncio.Future[None] | None = None
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        common = {**properties, "bootstrap.servers": servers}
        self._producer_properties = {
            **common,
            "client.id": "schema-registry-writer",
            "acks": "all",
            "linger.ms": "0",
            "max.request.size": str(MAX_RECORD_BYTES),
            "delivery.timeout.ms": str(timeout_ms),
            "request.timeout.ms": str(timeout_ms),
        }
        self._consumer_properties = {
            **common,
            "client.id": "schema-registry-reader",
            "group.id": f"schema-registry-reader-{id(self)}",
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": "true",
            "allow.auto.create.topics": "false",
        }

    # Life

    async def start(self, timeout_s: float) -> None:
        """Read all that is there; raises `StoreTimeoutError` where that does not end in time."""
        self._loop = asyncio.get_running_loop()
        self._ready = self._loop.create_future()
        self._open_clients()
        self._threads = [
            threading.Thread(target=self._read, name="registry-reader", daemon=True),
            threading.Thread(target=self._deliver, name="registry-writer", daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        try:
            await asyncio.wait_for(asyncio.shield(self._ready), timeout_s)
        except TimeoutError:
            raise StoreTimeoutError(f"the topic {self._topic} could not be read within {timeout_s:g} s") from None

    async def stop(self, timeout_s: float) -> None:
        """End both threads; where no broker answers, what they wait for is given up after `timeout_s`."""
        self._stopping.set()
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            await joined(thread, deadline - time.monotonic())
        for _, future in self._waiting:
            future.cancel()
        self._waiting.clear()

    def _open_clients(self) -> None:
        from confluent_kafka import Consumer, Producer, TopicPartition

        self._producer: Producer
        self._consumer: Consumer
        self._producer, _ = build(
            Producer, "producer", self._producer_properties, report=_report, title="schema registry writer"
        )
        self._consumer, _ = build(
            Consumer, "consumer", self._consumer_properties, report=_report, title="schema registry reader"
        )
        self._consumer.assign([TopicPartition(self._topic, PARTITION, 0)])

    # Writing

    def forget_end(self) -> None:
        """Somebody else may have written: another leader, or ourselves in a write whose outcome nobody told."""
        self._is_end_known = False

    async def catch_up(self) -> None:
        if not self._is_end_known:
            await self._written([(encode_key(NoopKey()), None)])
            self._is_end_known = True

    async def append(self, records: Sequence[Record]) -> None:
        written = [(encode_key(record.key), encode_value(record, names_avro=self._names_avro)) for record in records]
        largest = max(len(key) + len(value or b"") for key, value in written)
        if largest > MAX_RECORD_BYTES - 1024:
            raise SchemaTooLargeError(f"The record has {largest} bytes; the topic takes {MAX_RECORD_BYTES - 1024}")
        await self._written(written)

    async def reached(self, offset: int) -> None:
        if self.applied_offset >= offset:
            return
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((offset, future))
        try:
            await asyncio.wait_for(future, self._timeout_s)
        except TimeoutError:
            raise StoreTimeoutError("What was written could not be read back in time; it may or may not hold") from None

    async def _written(self, content: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Produce in order, wait for the brokers' word on all, then for our own reading of the last."""
        from confluent_kafka import KafkaException

        self._is_end_known = False
        futures: list[asyncio.Future[int]] = []
        try:
            for key, value in content:
                future: asyncio.Future[int] = self._loop.create_future()
                futures.append(future)
                self._producer.produce(self._topic, value, key, PARTITION, on_delivery=partial(self._delivered, future))
        except (KafkaException, BufferError) as error:
            for future in futures:
                future.cancel()
            raise _store_error(error.args[0] if isinstance(error, KafkaException) else None) from None
        outcomes = await asyncio.gather(*futures, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        await self.reached(max(offset for offset in outcomes if isinstance(offset, int)))
        self._is_end_known = True

    def _delivered(self, future: asyncio.Future[int], error: Any, message: Any) -> None:
        """In the writing thread: hand the outcome to the loop."""
        failure = None if error is None else _store_error(error)
        offset = -1 if error is not None else message.offset()

        def settle() -> None:
            if future.done():
                return
            if failure is None:
                future.set_result(offset)
            else:
                future.set_exception(failure)

        self._call(settle)

    def _deliver(self) -> None:
        while not self._stopping.is_set():
            self._producer.poll(POLL_S)
        self._producer.flush(FLUSH_S)

    # Reading

    def _read(self) -> None:
        from confluent_kafka import KafkaError

        end = self._first_end()
        if end == 0:
            self._call(partial(self._arrive, _Arrived([], -1, is_end=True)))
        while not self._stopping.is_set():
            first = self._consumer.poll(POLL_S)
            if first is None:
                continue
            records: list[Record] = []
            last_offset, is_end = -1, False
            for message in (first, *self._consumer.consume(BATCH, 0)):
                error = message.error()
                if error is None:
                    last_offset = message.offset() or 0
                    is_end = is_end or last_offset + 1 == end
                    records += _understood(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    is_end = True
                    last_offset = max(last_offset, (message.offset() or 0) - 1)
                else:
                    _logger.warning("reading %s: %s", self._topic, error.str())
            self._call(partial(self._arrive, _Arrived(records, last_offset, is_end)))
        self._consumer.close()

    def _first_end(self) -> int | None:
        """Where the topic ends now, so that its last record is known when it comes, before a fetch finds nothing."""
        from confluent_kafka import KafkaException, TopicPartition

        try:
            offsets = self._consumer.get_watermark_offsets(TopicPartition(self._topic, PARTITION), timeout=5.0)
        except KafkaException:
            return None
        return None if offsets is None else int(offsets[1])

    def _call(self, what: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(what)
        except RuntimeError:
            _logger.debug("the loop is closed; what came too late is dropped")

    def _arrive(self, arrived: _Arrived) -> None:
        if self._lookers:
            self._held_back.append(arrived)
            return
        for refusal in self.state.apply_all(arrived.records):
            self._refuse(refusal)
        self.applied_offset = max(self.applied_offset, arrived.last_offset)
        reached = [future for offset, future in self._waiting if offset <= self.applied_offset]
        self._waiting = [entry for entry in self._waiting if entry[0] > self.applied_offset]
        for future in reached:
            if not future.done():
                future.set_result(None)
        if arrived.is_end:
            self.is_ready = True
            if self._ready is not None and not self._ready.done():
                self._ready.set_result(None)

    def _refuse(self, refusal: Refusal) -> None:
        """Another writer gave an id away twice; the leader puts back what the key meant before."""
        _logger.error("%s re-uses an id of another schema and is not counted", refusal.record.key)
        if not self.is_ready or not self.may_write():
            return
        instead = Record(refusal.record.key, refusal.instead)
        self._producer.produce(
            self._topic,
            encode_value(instead, names_avro=self._names_avro),
            encode_key(instead.key),
            PARTITION,
        )

    @contextmanager
    def frozen(self) -> Iterator[None]:
        self._lookers += 1
        try:
            yield
        finally:
            self._lookers -= 1
            if not self._lookers:
                held_back, self._held_back = self._held_back, []
                for arrived in held_back:
                    self._arrive(arrived)


def _understood(message: Any) -> list[Record]:
    kind, timestamp_ms = message.timestamp()
    record = decode(message.key(), message.value(), timestamp_ms if kind else None)
    if record is None:
        _logger.warning("record %s cannot be understood and is passed over: %r", message.offset(), message.key())
        return []
    return [record]


def _store_error(error: Any) -> StoreError | StoreTimeoutError | SchemaTooLargeError:
    name = error.name() if error is not None else "_QUEUE_FULL"
    text = error.str() if error is not None else "too many writes are waiting"
    if "MSG_SIZE_TOO_LARGE" in name or "RECORD_LIST_TOO_LARGE" in name:
        return SchemaTooLargeError("The schema is larger than the topic accepts")
    if "TIMED_OUT" in name:
        return StoreTimeoutError(f"The topic could not be written in time: {text}")
    return StoreError(f"The topic could not be written: {text}")


def _report(level: str, text: str) -> None:
    _logger.log(logging.ERROR if level == "ERROR" else logging.WARNING, "%s", text)
