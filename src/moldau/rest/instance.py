"""A complete REST proxy: its clients and its HTTP server, started and stopped in the right order.

Runs in the event loop that starts it, which may also run other services. Start at `RestInstance`.
"""

from __future__ import annotations

import logging

from moldau.http.serving import HttpServer
from moldau.http.tls import listener_context
from moldau.rest.app import build_app
from moldau.rest.proxy import Proxy
from moldau.rest.settings import RestSettings

__all__ = ["RestInstance"]

DRAIN_S = 1

_logger = logging.getLogger("moldau.rest")


class RestInstance:
    def __init__(self, settings: RestSettings) -> None:
        self.settings = settings
        self.proxy: Proxy | None = None
        listener = settings.listener
        tls = listener_context(listener, settings.tls)
        self._http = HttpServer(host=listener.host, port=listener.port, drain_s=DRAIN_S, tls=tls)

    @property
    def port(self) -> int:
        """The port that is bound."""
        return self._http.port

    @property
    def url(self) -> str:
        """The URL of this proxy, as seen from the same machine."""
        return self.settings.listener.url(self.port)

    async def start(self) -> None:
        """Start, and return once requests are answered; raises `StartupError`. Does not wait for brokers."""
        self._http.bind()
        self.proxy = Proxy(self.settings)
        self.proxy.start()
        await self._http.start(build_app(self.proxy))
        reach = self.settings.listener.reach("--host 0.0.0.0 or listeners")
        _logger.info("REST proxy started: %s (%s)", self.url, reach)

    async def stop(self) -> None:
        """Stop taking requests, then leave the groups and send what was handed over."""
        await self._http.stop()
        if self.proxy is not None:
            await self.proxy.stop()
        _logger.info("REST proxy stopped")
