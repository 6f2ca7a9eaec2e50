"""A complete worker: topics, group, engine and HTTP, started and stopped in order. Start at `ConnectInstance`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from moldau.client.admin import Admin
from moldau.client.connection import normalize_servers
from moldau.client.coordination.membership import Membership
from moldau.client.coordination.state_topic import StateTopic
from moldau.connect.worker.app import HOP, build_app
from moldau.connect.worker.group import WorkerProtocol
from moldau.connect.worker.herder import Herder, Stores
from moldau.connect.worker.operations import Operations
from moldau.connect.worker.settings import WorkerSettings
from moldau.connect.worker.stores import FileOffsets, MemoryRecords, TopicOffsets, TopicRecords
from moldau.core.errors import StartupError
from moldau.http.errors import HttpError
from moldau.http.forwarding import Forwarding
from moldau.http.serving import HttpServer
from moldau.http.tls import listener_context, peer_context
from moldau.pipeline.runtime.hosting.engine_link import PipelineLink

__all__ = ["ConnectInstance"]

CLIENT_ID = "connect-worker"
WRITE_MS = 20_000
QUESTION_MS = 5000
DRAIN_S = 1
REQUEST_MS = 90_000

_logger = logging.getLogger("moldau.connect")


class ConnectInstance:
    """`connectors` are those of the command line: they are made at the start, and the worker's limits do not hold."""

    def __init__(
        self, settings: WorkerSettings, link: PipelineLink, connectors: Sequence[Mapping[str, str]] = ()
    ) -> None:
        self.settings = settings
        self._link = link
        self._connectors = connectors
        listener = settings.listener
        tls = listener_context(listener, settings.listener_tls)
        self._server = HttpServer(host=listener.host, port=listener.port, drain_s=DRAIN_S, tls=tls)
        self.herder: Herder | None = None

    @property
    def port(self) -> int:
        return self._server.port

    @property
    def url(self) -> str:
        """The URL of this worker, as seen from the same machine."""
        return self.settings.listener.url(self.port)

    async def start(self) -> None:
        """Start, and return once requests are taken; raises `StartupError`."""
        self._server.bind()
        worker_id = self.settings.worker_id(self.port)
        herder = self.herder = Herder(
            self.settings,
            self._link,
            self._stores,
            worker_id=worker_id,
            url=f"{self.settings.listener.scheme}://{worker_id}",
            new_membership=None if self.settings.is_standalone else self._membership,
        )
        await herder.start()
        await herder.wait_until_ready(self.settings["moldau.init.timeout.ms"] / 1000)
        await self._server.start(build_app(herder, self._forwarding()))
        reach = self.settings.listener.reach("listeners")
        kind = "standalone" if self.settings.is_standalone else "distributed"
        _logger.info("Kafka Connect (%s worker) started: %s (%s)", kind, self.url, reach)
        await self._make_connectors(herder)

    async def stop(self) -> None:
        """Stop taking requests, then the tasks."""
        await self._server.stop()
        if self.herder is not None:
            await self.herder.stop()
        _logger.info("Kafka Connect stopped")

    async def _make_connectors(self, herder: Herder) -> None:
        operations = Operations(herder)
        for config in self._connectors:
            name = config.get("name", "")
            if not name:
                raise StartupError("a connector's file has no name: add name=…")
            herder.unlimited.add(name)
            try:
                await operations.put_config(name, config)
            except HttpError as error:
                raise StartupError(f"the connector {name} cannot be made: {error}") from None
            _logger.info("Created connector %s", name)

    def _stores(self, herder: Herder) -> Stores:
        settings = self.settings
        if settings.is_standalone:
            return Stores(
                MemoryRecords(herder.apply_config),
                MemoryRecords(herder.apply_status),
                FileOffsets(settings["offset.storage.file.filename"]),
            )
        return Stores(
            TopicRecords(self._topic("config", partitions=1), herder.apply_config, timeout_ms=WRITE_MS),
            TopicRecords(
                self._topic("status", partitions=settings["status.storage.partitions"]),
                herder.apply_status,
                timeout_ms=WRITE_MS,
            ),
            TopicOffsets(
                self._topic("offset", partitions=settings["offset.storage.partitions"], holds_transactions=True),
                timeout_ms=WRITE_MS,
            ),
        )

    def _topic(self, kind: str, *, partitions: int, holds_transactions: bool = False) -> StateTopic:
        settings = self.settings
        replicas = settings[f"{kind}.storage.replication.factor"]
        return StateTopic(
            name=settings[f"{kind}.storage.topic"],
            servers=normalize_servers(settings["bootstrap.servers"]),
            client_id=CLIENT_ID,
            logger=_logger,
            timeout_ms=WRITE_MS,
            partitions=partitions,
            replication_factor=replicas if replicas > 0 else 1,
            properties=dict(settings.security),
            holds_transactions=holds_transactions,
        )

    def _membership(self, protocol: WorkerProtocol, herder: Herder) -> Membership:
        settings = self.settings
        return Membership(
            self._open_admin,
            settings.group_id,
            protocol,
            herder,
            session_timeout_ms=settings["session.timeout.ms"],
            heartbeat_interval_ms=settings["heartbeat.interval.ms"],
            logger=_logger,
        )

    def _open_admin(self) -> Admin:
        properties = {**self.settings.security, "client.id": CLIENT_ID}
        timeout_ms = max(QUESTION_MS, 2 * self.settings["session.timeout.ms"])
        return Admin(normalize_servers(self.settings["bootstrap.servers"]), properties, timeout_ms=timeout_ms)

    def _forwarding(self) -> Forwarding:
        return Forwarding(
            hop_header=HOP,
            connect_timeout_ms=QUESTION_MS,
            read_timeout_ms=REQUEST_MS,
            headers=["Authorization"],
            answer_headers=["location"],
            tls=peer_context(self.settings.listener_tls) if self.settings.listener.is_tls else None,
        )
