"""All consumer instances of this proxy, by group and name; those that nobody uses are removed. Start at `Instances`."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import uuid
from collections.abc import AsyncIterator

from moldau.rest.consumers.instance import ConsumerInstance, InstanceConfig
from moldau.rest.consumers.reader import Reader
from moldau.rest.errors import RestError, instance_not_found
from moldau.rest.settings import RestSettings

__all__ = ["Instances"]

ALREADY_EXISTS = 40902
LONGEST_PAUSE_S, SHORTEST_PAUSE_S = 1.0, 0.05
CLOSED_AT_ONCE = 16
LEAVE_S = 1.0
"""How long instances may take to leave their groups when the proxy stops."""

_logger = logging.getLogger("moldau.rest")


class Instances:
    """Belongs to the event loop."""

    def __init__(self, settings: RestSettings) -> None:
        self._settings = settings
        self._instances: dict[tuple[str, str], ConsumerInstance] = {}
        self._slots = asyncio.Semaphore(settings["consumer.threads"])
        self._closing: set[asyncio.Task[None]] = set()
        self._timeout_s = settings["consumer.instance.timeout.ms"] / 1000
        self._sweeping: asyncio.Task[None] | None = None
        self.expired = 0

    def __len__(self) -> int:
        return len(self._instances)

    @property
    def clients(self) -> int:
        """Instances that have a client of their own."""
        return sum(instance.has_client for instance in self._instances.values())

    @property
    def closing(self) -> int:
        return len(self._closing)

    def start(self) -> None:
        self._sweeping = asyncio.create_task(self._sweep())

    async def stop(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sweeping
        self._closing |= {asyncio.create_task(self.remove(*place)) for place in list(self._instances)}
        if self._closing:
            # A client whose brokers do not answer would wait for them; the process ends without it.
            _, waiting = await asyncio.wait(self._closing, timeout=LEAVE_S)
            for task in waiting:
                task.cancel()

    def create(self, group: str, name: str | None, config: InstanceConfig) -> ConsumerInstance:
        """A new instance; raises 40902 if the group has one of this name."""
        name = name or self._generated_name()
        if (group, name) in self._instances:
            raise RestError(ALREADY_EXISTS, "Consumer instance with the specified ID already exists.")
        instance = ConsumerInstance(group, name, config, lambda: self._reader(group, name, config), self._slots)
        instance.last_used = asyncio.get_running_loop().time()
        self._instances[group, name] = instance
        return instance

    @contextlib.asynccontextmanager
    async def using(self, group: str, name: str) -> AsyncIterator[ConsumerInstance]:
        """An instance, which does not expire meanwhile; raises 40403."""
        instance = self._instances.get((group, name))
        if instance is None:
            raise instance_not_found()
        instance.calls += 1
        try:
            yield instance
        finally:
            instance.calls -= 1
            instance.last_used = asyncio.get_running_loop().time()

    async def remove(self, group: str, name: str) -> None:
        instance = self._instances.pop((group, name), None)
        if instance is None:
            raise instance_not_found()
        await instance.close()

    def _generated_name(self) -> str:
        server = f"{self._settings['id']}-" if self._settings["id"] else ""
        return f"rest-consumer-{server}{uuid.uuid4()}"

    def _reader(self, group: str, name: str, config: InstanceConfig) -> Reader:
        properties = {**self._settings.client_properties("consumer"), **config.properties, "group.id": group}
        return Reader(self._settings["bootstrap.servers"], properties, client_id=name)

    async def _sweep(self) -> None:
        pause_s = max(SHORTEST_PAUSE_S, min(LONGEST_PAUSE_S, self._timeout_s / 4))
        slots = asyncio.Semaphore(CLOSED_AT_ONCE)
        while True:
            await asyncio.sleep(pause_s)
            limit = asyncio.get_running_loop().time() - self._timeout_s
            idle = [at for at, one in self._instances.items() if not one.calls and one.last_used < limit]
            for place in idle:
                self.expired += 1
                closing = asyncio.create_task(self._expire(self._instances.pop(place), slots))
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)
            if idle:
                _logger.info("removed %d consumer instances that were not used for %g s", len(idle), self._timeout_s)

    async def _expire(self, instance: ConsumerInstance, slots: asyncio.Semaphore) -> None:
        had_client = instance.has_client
        try:
            async with slots:
                await instance.close()
        except Exception:
            _logger.exception("closing the consumer instance %s of group %s failed", instance.name, instance.group)
        if had_client and len(self._closing) == 1:
            _return_memory()


def _return_memory() -> None:
    """Give freed memory back to the system: what librdkafka frees otherwise stays with the process."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
