"""A complete ksql server: command topic, engine process and HTTP, started and stopped in the right order.

Runs in the event loop that starts it. Start at `KsqlInstance`.
"""

from __future__ import annotations

import logging

from moldau.core.addresses import is_loopback
from moldau.http.http2_serving import Http2Server
from moldau.ksql.api.access import authenticator, server_tls
from moldau.ksql.api.app import build_app
from moldau.ksql.server import KsqlServer
from moldau.ksql.settings import KsqlSettings
from moldau.pipeline.runtime.hosting.engine_link import PipelineLink

__all__ = ["KsqlInstance"]

DRAIN_S = 1

_logger = logging.getLogger("moldau.ksql")


class KsqlInstance:
    def __init__(self, settings: KsqlSettings, link: PipelineLink) -> None:
        """`link` leads to the engine that runs the queries."""
        self.settings = settings
        self._link = link
        self._server: KsqlServer | None = None
        listener = settings.listener
        self._authenticate = authenticator(settings)
        self._http = Http2Server(host=listener.host, port=listener.port, drain_s=DRAIN_S, tls=server_tls(settings))

    @property
    def port(self) -> int:
        """The port that is bound."""
        return self._http.port

    @property
    def url(self) -> str:
        """The URL of this server, as seen from the same machine."""
        host = self.settings.listener.host
        local = "127.0.0.1" if host in ("", "0.0.0.0", "::") else host
        return f"{self.settings.listener.scheme}://{f'[{local}]' if ':' in local else local}:{self.port}"

    async def start(self) -> None:
        """Start, and return once statements are taken; raises `StartupError`."""
        self._http.bind()
        self._server = KsqlServer(self.settings, self._link, port=self._http.port)
        await self._server.start()
        await self._http.start(build_app(self._server, self._server.metrics, self._authenticate))
        reach = "this machine only; --host 0.0.0.0 or listeners opens it to others"
        if not is_loopback(self.settings.listener.host):
            reach = f"listens on {self.settings.listener.host or 'every interface'}"
        _logger.info("ksql server started: %s (%s)", self.url, reach)

    async def stop(self) -> None:
        """Stop taking requests, then the queries."""
        await self._http.stop()
        if self._server is not None:
            await self._server.stop()
        _logger.info("ksql server stopped")
