"""A real schema registry inside the test process, on a free port, over any brokers.

It is the same instance that `moldau registry` runs, on an event loop in a thread of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moldau.registry.instance import RegistryInstance

__all__ = ["SchemaRegistry"]

_START_TIMEOUT_S = 60


class SchemaRegistry:
    """A registry for tests.

        with Broker() as broker, SchemaRegistry(broker.bootstrap_servers) as registry:
            client = SchemaRegistryClient({"url": registry.url})

    `settings` are the registry's keys (`{"schema.compatibility.level": "full"}`). `restart()` stops in good order and
    starts again on the same port.
    """

    def __init__(self, bootstrap_servers: str, settings: Mapping[str, str] | None = None) -> None:
        self._servers = bootstrap_servers
        self._settings = dict(settings or {})
        self._port = 0
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self.instance: RegistryInstance | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def is_leader(self) -> bool:
        return self.instance is not None and self.instance.is_leader

    def __enter__(self) -> SchemaRegistry:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start and return once the registry answers; what keeps it from starting is raised here."""
        started = threading.Event()
        failure: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(started, failure), name="moldau-registry", daemon=True)
        self._thread.start()
        if not started.wait(_START_TIMEOUT_S):
            raise TimeoutError(f"the registry did not start within {_START_TIMEOUT_S} s")
        if failure:
            self._thread.join()
            raise failure[0]

    def stop(self) -> None:
        if self._thread is None or self._loop is None or self._stopping is None:
            return
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(_START_TIMEOUT_S)
        self._thread = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def _run(self, started: threading.Event, failure: list[BaseException]) -> None:
        import uvloop

        try:
            uvloop.run(self._serve(started))
        except BaseException as error:
            failure.append(error)
        finally:
            started.set()

    async def _serve(self, started: threading.Event) -> None:
        from moldau.registry.instance import RegistryInstance
        from moldau.registry.settings import RegistrySettings

        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        instance = RegistryInstance(RegistrySettings.of(self._effective_settings()))
        try:
            await instance.start()
            self.instance, self._port = instance, instance.port
            started.set()
            await self._stopping.wait()
        finally:
            await instance.stop()

    def _effective_settings(self) -> dict[str, str]:
        return {
            "listeners": f"http://127.0.0.1:{self._port}",
            "kafkastore.bootstrap.servers": self._servers,
            "kafkastore.topic.replication.factor": "1",
        } | self._settings
