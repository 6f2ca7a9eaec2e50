"""A real schema registry inside the test process, on a free port, over any brokers.

It is the same instance that `moldau registry` runs, on an event loop in its own thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from moldau.testing.in_thread import InThread

if TYPE_CHECKING:
    from moldau.registry.instance import RegistryInstance

__all__ = ["SchemaRegistry"]


class SchemaRegistry(InThread):
    """A registry for tests.

        with Broker() as broker, SchemaRegistry(broker.bootstrap_servers) as registry:
            client = SchemaRegistryClient({"url": registry.url})

    `settings` are the registry's keys (`{"schema.compatibility.level": "full"}`). `restart()` shuts down cleanly and
    starts again on the same port.
    """

    what = "registry"

    def __init__(self, bootstrap_servers: str, settings: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._servers = bootstrap_servers
        self._settings = dict(settings or {})
        self._port = 0
        self.instance: RegistryInstance | None = None

    @property
    def url(self) -> str:
        scheme = "http" if self.instance is None else self.instance.settings.listener.scheme
        return f"{scheme}://127.0.0.1:{self._port}"

    @property
    def is_leader(self) -> bool:
        return self.instance is not None and self.instance.is_leader

    async def serve(self, ready: Callable[[], None], stopping: asyncio.Event) -> None:
        from moldau.registry.instance import RegistryInstance
        from moldau.registry.settings import RegistrySettings

        instance = RegistryInstance(RegistrySettings.of(self._effective_settings()))
        try:
            await instance.start()
            self.instance, self._port = instance, instance.port
            ready()
            await stopping.wait()
        finally:
            await instance.stop()

    def _effective_settings(self) -> dict[str, str]:
        return {
            "listeners": f"http://127.0.0.1:{self._port}",
            "kafkastore.bootstrap.servers": self._servers,
            "kafkastore.topic.replication.factor": "1",
        } | self._settings
