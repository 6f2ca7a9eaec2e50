"""One consumer instance: what it was created with, what it reads, and its client once it has one.

Start at `ConsumerInstance.read`. Calls of one instance run one after the other, each in a thread; a second read while
one waits is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from moldau.client.waiting import in_daemon_thread
from moldau.core.ids import TopicPartition
from moldau.rest.consumers.reader import Reader, ReadLimits, ReadRecord, Reset
from moldau.rest.errors import RestError, instance_not_found

__all__ = ["ConsumerInstance", "InstanceConfig"]

Answer = TypeVar("Answer")
ILLEGAL_STATE = 40903


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceConfig:
    """What an instance is created with."""

    version: int
    """The API's version, 1 or 2."""
    format: str
    properties: Mapping[str, str] = field(default_factory=dict)
    """Settings of its client."""
    request_timeout_ms: int
    min_bytes: int = -1


class ConsumerInstance:
    def __init__(
        self,
        group: str,
        name: str,
        config: InstanceConfig,
        make_reader: Callable[[], Reader],
        slots: asyncio.Semaphore,
    ) -> None:
        """`slots` bounds the calls of all instances that are in a thread at the same time."""
        self.group, self.name, self.config = group, name, config
        self._make_reader = make_reader
        self._slots = slots
        self._lock = asyncio.Lock()
        self._reader: Reader | None = None
        self._is_reading = False
        self._is_closed = False
        self.subscription: tuple[str, ...] = ()
        self.pattern: str | None = None
        self._assigned: tuple[TopicPartition, ...] = ()
        self.last_used = 0.0
        self.calls = 0
        """Calls under way: an instance in use does not expire."""

    @property
    def has_client(self) -> bool:
        return self._reader is not None

    @property
    def is_subscribed(self) -> bool:
        return bool(self.subscription) or self.pattern is not None

    # What is read

    async def subscribe(self, topics: Sequence[str], pattern: str | None) -> None:
        async with self._lock:
            if self._assigned:
                raise _illegal("Subscription to topics, partitions and pattern are mutually exclusive")
            self.subscription, self.pattern = tuple(dict.fromkeys(topics)), pattern
            if self._reader is not None:
                await self._run(lambda reader: reader.subscribe(self._names()))

    async def unsubscribe(self) -> None:
        async with self._lock:
            self.subscription, self.pattern, self._assigned = (), None, ()
            if self._reader is not None:
                await self._run(lambda reader: reader.unsubscribe())

    async def assign(self, partitions: Sequence[TopicPartition]) -> None:
        async with self._lock:
            if self.is_subscribed:
                raise _illegal("Subscription to topics, partitions and pattern are mutually exclusive")
            self._assigned = tuple(dict.fromkeys(partitions))
            if self._reader is not None:
                await self._run(lambda reader: reader.assign(self._assigned))

    async def assignment(self) -> Sequence[TopicPartition]:
        async with self._lock:
            if self._assigned or self._reader is None:
                return self._assigned
            return await self._run(lambda reader: reader.assignment())

    # Reading

    async def read(self, limits: ReadLimits, convert: Callable[[ReadRecord], Any]) -> list[Any]:
        """Records, converted in the thread; where one cannot be, none counts as read and the next read begins there."""
        if self._is_reading:
            raise _illegal("another read of this instance is under way: one at a time")
        self._is_reading = True
        try:
            async with self._lock:
                if not self.is_subscribed and not self._assigned:
                    raise _illegal("Consumer is not subscribed to any topics or assigned any partitions")
                return await self._run(lambda reader: _read(reader, limits, convert))
        finally:
            self._is_reading = False

    async def seek(self, offsets: Reset, times: Reset, *, join_s: float) -> None:
        """Continue at offsets, or at the first records from given times on."""

        def run(reader: Reader) -> None:
            reader.join(join_s)
            reader.seek(offsets, times)

        async with self._lock:
            if not self.is_subscribed and not self._assigned:
                raise _illegal("no current assignment: subscribe or assign before seeking")
            await self._run(run)

    # Offsets

    async def commit(
        self, offsets: Mapping[TopicPartition, int] | None, *, is_async: bool
    ) -> dict[TopicPartition, int]:
        """Commit offsets, or what was read so far if `None`; returns what was committed."""

        def run(reader: Reader) -> dict[TopicPartition, int]:
            wanted = dict(reader.positions if offsets is None else offsets)
            reader.commit(wanted, is_async=is_async)
            return wanted

        async with self._lock:
            if self._reader is None and offsets is None:
                return {}
            return await self._run(run)

    async def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        async with self._lock:
            return await self._run(lambda reader: reader.committed(partitions))

    async def close(self) -> None:
        """Leave the group; calls that wait are refused."""
        self._is_closed = True
        async with self._lock:
            reader, self._reader = self._reader, None
            if reader is not None:
                await in_daemon_thread(reader.close, name="rest-consumer-close")

    # Internals

    def _names(self) -> list[str]:
        if self.pattern is not None:
            return [self.pattern if self.pattern.startswith("^") else f"^({self.pattern})$"]
        return list(self.subscription)

    async def _run(self, call: Callable[[Reader], Answer]) -> Answer:
        if self._is_closed:
            raise instance_not_found()
        async with self._slots:
            running = asyncio.ensure_future(in_daemon_thread(lambda: call(self._get_reader()), name="rest-consumer"))
            try:
                return await asyncio.shield(running)
            except asyncio.CancelledError:
                # The reader belongs to one thread at a time, so this one is waited for.
                await asyncio.wait((running,))
                raise

    def _get_reader(self) -> Reader:
        if self._reader is None:
            self._reader = self._make_reader()
            if self._assigned:
                self._reader.assign(self._assigned)
            elif self.is_subscribed:
                self._reader.subscribe(self._names())
        return self._reader


def _read(reader: Reader, limits: ReadLimits, convert: Callable[[ReadRecord], Any]) -> list[Any]:
    records = reader.read(limits)
    try:
        converted = [convert(record) for record in records]
    except Exception:
        reader.take_back(records)
        raise
    reader.hand_out(records)
    return converted


def _illegal(message: str) -> RestError:
    return RestError(ILLEGAL_STATE, f"Illegal state: {message}")
