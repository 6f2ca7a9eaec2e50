"""Storage of the registry's records: the topic `_schemas`, or memory for tests and `mock://`.

The topic is a `client.coordination.topic_log.TopicLog`: a write succeeds when it has been read back. Start at `Store`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from moldau.client.coordination.compacted_topic import CompactedTopic
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
    """All on the event loop's thread."""

    @property
    def state(self) -> State: ...

    @property
    def is_ready(self) -> bool:
        """Whether all that was in the topic at the start has been read."""
        ...

    @property
    def applied_offset(self) -> int: ...

    def frozen(self) -> AbstractContextManager[None]:
        """Keep the state as it is for as long as another thread looks at it."""
        ...

    async def catch_up(self) -> None:
        """Return when nothing is in the topic that the state does not know."""
        ...

    async def append(self, records: Sequence[Record]) -> None:
        """Write and read back; raises `StoreError`, `StoreTimeoutError` or `SchemaTooLargeError`."""
        ...

    async def wait_until_applied(self, offset: int) -> None:
        """Return when the state knows the record at an offset."""
        ...


class TopicStore:
    def __init__(self, topic: CompactedTopic, *, names_avro: bool = True) -> None:
        """`names_avro` is false where registries before 8.0 are to read the records too."""
        self.state = State()
        self.may_write: Callable[[], bool] = lambda: False
        """Whether this instance leads; set once the election exists."""
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
        """Read all that is there; raises `StartupError` and `StoreTimeoutError`."""
        with _store_errors():
            await self._log.start(timeout_s)

    async def stop(self, timeout_s: float) -> None:
        await self._log.stop(timeout_s)

    def forget_end(self) -> None:
        """Somebody else may have written: the leader before this one."""
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
            _logger.warning("record %s cannot be understood and is passed over: %r", read.offset, read.key)
            return
        refusal = self.state.apply(record)
        if refusal is not None:
            self._refuse(refusal)

    def _refuse(self, refusal: Refusal) -> None:
        """Another writer gave an id away twice; the leader puts back what the key meant before."""
        _logger.error("%s re-uses an id of another schema and is not counted", refusal.record.key)
        if not self.is_ready or not self.may_write():
            return
        repair = asyncio.ensure_future(self._repair(Record(refusal.record.key, refusal.instead)))
        self._repairs.add(repair)
        repair.add_done_callback(self._repairs.discard)

    async def _repair(self, record: Record) -> None:
        try:
            await self.append([record])
        except RegistryError as error:
            _logger.error("%s could not be put back: %s", record.key, error)


class MemoryStore:
    """Records become true at once, after a trip through their bytes."""

    is_ready = True

    def __init__(self, clock: Clock | None = None) -> None:
        self.state = State()
        self.log: list[tuple[bytes, bytes | None]] = []
        """What a topic would hold."""
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
    """What the topic refuses, as clients of the registry know it."""
    try:
        yield
    except RecordTooLargeError as error:
        raise SchemaTooLargeError(str(error)) from None
    except TopicLogTimeoutError as error:
        raise StoreTimeoutError(str(error)) from None
    except ClientError as error:
        raise StoreError(str(error)) from None
