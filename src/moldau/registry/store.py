"""Storage of the registry's records: the topic `_schemas`, or memory for tests and `mock://`.

The topic is a `client.coordination.topic_log.TopicLog`: a write succeeds when it has been read back. Start at `Store`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from moldau.client.coordination.state_topic import StateTopic
from moldau.client.coordination.topic_log import (
    LogRecord,
    LogWrite,
    RecordTooLargeError,
    TopicLog,
    TopicLogTimeoutError,
)
from moldau.client.errors import ClientError
from moldau.core.clock import Clock, SystemClock
from moldau.registry.errors import RegistryError, SchemaTooLargeError, StoreError, StoreTimeoutError
from moldau.registry.records import NoopKey, Record, decode, encode_key, encode_value
from moldau.registry.state import Refusal, State

__all__ = ["MemoryStore", "Store", "TopicStore"]

MAX_RECORD_BYTES = 1024 * 1024

_logger = logging.getLogger("moldau.registry")


class Store(Protocol):
    """Interface of record storage. Called on the event loop's thread only."""

    @property
    def state(self) -> State: ...

    @property
    def is_ready(self) -> bool:
        """Whether all records that were in the topic at startup have been read."""
        ...

    @property
    def applied_offset(self) -> int: ...

    def frozen(self) -> AbstractContextManager[None]:
        """Context manager: the state does not change while another thread reads it."""
        ...

    async def catch_up(self) -> None:
        """Return when all records of the topic have been applied to the state."""
        ...

    async def append(self, records: Sequence[Record]) -> None:
        """Write and read back; raises `StoreError`, `StoreTimeoutError` or `SchemaTooLargeError`."""
        ...

    async def wait_until_applied(self, offset: int) -> None:
        """Return when the record at an offset has been applied to the state."""
        ...


class TopicStore:
    def __init__(self, topic: StateTopic, *, names_avro: bool = True) -> None:
        """`names_avro` is false if registries before 8.0 also read the records."""
        self.state = State()
        self.may_write: Callable[[], bool] = lambda: False
        """Whether this instance is the leader; set once the election exists."""
        self._names_avro = names_avro
        self._repairs: set[asyncio.Task[None]] = set()
        noop = encode_key(NoopKey())
        self._log = TopicLog(topic, self._apply, timeout_ms=topic.timeout_ms, marker=noop, logger=_logger)

    @property
    def is_ready(self) -> bool:
        return self._log.is_ready

    @property
    def applied_offset(self) -> int:
        return self._log.applied_offset

    @property
    def cluster_id(self) -> str:
        return self._log.cluster_id

    async def start(self, timeout_s: float) -> None:
        """Read the whole topic; raises `StartupError` or `StoreTimeoutError`."""
        with _store_errors():
            await self._log.start(timeout_s)

    async def stop(self, timeout_s: float) -> None:
        await self._log.stop(timeout_s)

    def forget_end(self) -> None:
        """Discard the known end of the topic: the previous leader may have written after it."""
        self._log.forget_end()

    def frozen(self) -> AbstractContextManager[None]:
        return self._log.hold_back()

    async def catch_up(self) -> None:
        with _store_errors():
            await self._log.catch_up()

    async def append(self, records: Sequence[Record]) -> None:
        with _store_errors():
            await self._log.append([self._write(record) for record in records])

    async def wait_until_applied(self, offset: int) -> None:
        with _store_errors():
            await self._log.wait_until_applied(offset)

    def _write(self, record: Record) -> LogWrite:
        return LogWrite(encode_key(record.key), encode_value(record, names_avro=self._names_avro))

    def _apply(self, read: LogRecord) -> None:
        record = decode(read.key, read.value, read.timestamp_ms)
        if record is None:
            _logger.warning("skipping record %s, which cannot be parsed: %r", read.offset, read.key)
            return
        refusal = self.state.apply(record)
        if refusal is not None:
            self._refuse(refusal)

    def _refuse(self, refusal: Refusal) -> None:
        """Log a record that reuses the id of another schema; the leader writes the key's previous value back."""
        _logger.error("ignoring %s: its id belongs to another schema", refusal.record.key)
        if not self.is_ready or not self.may_write():
            return
        repair = asyncio.ensure_future(self._repair(Record(refusal.record.key, refusal.instead)))
        self._repairs.add(repair)
        repair.add_done_callback(self._repairs.discard)

    async def _repair(self, record: Record) -> None:
        try:
            await self.append([record])
        except RegistryError as error:
            _logger.error("the earlier value of %s could not be restored: %s", record.key, error)


class MemoryStore:
    """In-memory storage: records are encoded, decoded and applied immediately."""

    is_ready = True

    def __init__(self, clock: Clock | None = None) -> None:
        self.state = State()
        self.log: list[tuple[bytes, bytes | None]] = []
        """Keys and values, as a topic would store them."""
        self._clock = clock or SystemClock()

    @property
    def applied_offset(self) -> int:
        return len(self.log) - 1

    def frozen(self) -> AbstractContextManager[None]:
        return nullcontext()

    async def catch_up(self) -> None:
        return None

    async def append(self, records: Sequence[Record]) -> None:
        written = [(encode_key(record.key), encode_value(record)) for record in records]
        if any(value is not None and len(value) > MAX_RECORD_BYTES for _, value in written):
            raise SchemaTooLargeError("The schema is larger than the topic accepts")
        for key, value in written:
            record = decode(key, value, self._clock.now_ms())
            assert record is not None
            self.log.append((key, value))
            self.state.apply(record)

    async def wait_until_applied(self, offset: int) -> None:
        return None


@contextmanager
def _store_errors() -> Iterator[None]:
    """Context manager: raises errors of the topic as registry errors."""
    try:
        yield
    except RecordTooLargeError as error:
        raise SchemaTooLargeError(str(error)) from None
    except TopicLogTimeoutError as error:
        raise StoreTimeoutError(str(error)) from None
    except ClientError as error:
        raise StoreError(str(error)) from None
