"""A real REST proxy inside the test process, on a free port, over any brokers.

It is the same instance that `moldau rest` runs, on an event loop in its own thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from moldau.testing.in_thread import InThread

if TYPE_CHECKING:
    from moldau.rest.instance import RestInstance

__all__ = ["RestProxy"]


class RestProxy(InThread):
    """A proxy for tests.

        with Broker() as broker, RestProxy(broker.bootstrap_servers) as rest:
            requests.get(f"{rest.url}/topics")

    `settings` are the proxy's keys (`{"consumer.request.timeout.ms": "500"}`).
    """

    what = "rest proxy"

    def __init__(self, bootstrap_servers: str, settings: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._settings = {
            "bootstrap.servers": bootstrap_servers,
            "listeners": "http://127.0.0.1:0",
            **(settings or {}),
        }
        self._port = 0
        self.instance: RestInstance | None = None

    @property
    def url(self) -> str:
        scheme = "http" if self.instance is None else self.instance.settings.listener.scheme
        return f"{scheme}://127.0.0.1:{self._port}"

    async def serve(self, ready: Callable[[], None], stopping: asyncio.Event) -> None:
        from moldau.rest.instance import RestInstance
        from moldau.rest.settings import RestSettings

        instance = RestInstance(RestSettings.of(self._settings))
        try:
            await instance.start()
            self.instance, self._port = instance, instance.port
            ready()
            await stopping.wait()
        finally:
            await instance.stop()
