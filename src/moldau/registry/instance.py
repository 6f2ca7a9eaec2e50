"""A complete registry instance: topic, store, election and HTTP server, started and stopped in the right order.

Runs in the event loop that starts it, which may also run other services. Start at `RegistryInstance`.
"""

from __future__ import annotations

import logging

from moldau.client.admin import Admin
from moldau.client.connection import normalize_servers
from moldau.client.coordination.membership import Election
from moldau.client.coordination.state_topic import StateTopic
from moldau.core.errors import StartupError
from moldau.http.forwarding import Forwarding
from moldau.http.serving import HttpServer
from moldau.http.tls import listener_context, peer_context
from moldau.registry.app import build_app
from moldau.registry.errors import RegistryError
from moldau.registry.leadership import ElectedLeadership, InstanceIdentity, RegistryProtocol
from moldau.registry.registry import Registry
from moldau.registry.routes.resource import FORWARDED, OFFSET_HEADER
from moldau.registry.settings import Dialect, RegistrySettings
from moldau.registry.store import TopicStore

__all__ = ["RegistryInstance"]

CLIENT_ID = "schema-registry"
QUESTION_MS = 5000
"""Timeout of one request to the brokers."""

FINISH_WRITES_S, LEAVE_GROUP_S, CLOSE_STORE_S = 1.0, 1.0, 1.0
DRAIN_S = 1
"""Timeout of each shutdown step; the sum is below the time after which process supervisors kill a process."""

_logger = logging.getLogger("moldau.registry")


class RegistryInstance:
    def __init__(self, settings: RegistrySettings) -> None:
        self.settings = settings
        self._server: HttpServer | None = None
        self._store: TopicStore | None = None
        self._election: Election | None = None
        self._registry: Registry | None = None

    @property
    def url(self) -> str:
        """The URL of this instance, as seen from the same machine."""
        return self.settings.listener.url(self.port)

    @property
    def reach(self) -> str:
        """Description for the log of which machines can connect."""
        return self.settings.listener.reach("--host 0.0.0.0 or listeners")

    @property
    def port(self) -> int:
        return 0 if self._server is None else self._server.port

    @property
    def is_leader(self) -> bool:
        return self._election is not None and self._election.is_leader

    async def start(self) -> None:
        """Start, and return once all schemas are loaded and requests are served; raises `StartupError`."""
        settings = self.settings
        listener = settings.listener
        tls = listener_context(listener, settings.tls)
        self._server = HttpServer(host=listener.host, port=listener.port, drain_s=DRAIN_S, tls=tls)
        self._server.bind()
        self._store = store = self._new_store()
        try:
            await store.start(settings["kafkastore.init.timeout.ms"] / 1000)
        except RegistryError as error:
            raise StartupError(str(error)) from None
        self._election = election = self._new_election(self._server.port, store)
        store.may_write = lambda: election.is_leader
        self._registry = Registry(settings, store, ElectedLeadership(election, store.cluster_id))
        election.start()
        await self._server.start(build_app(self._registry, forward=self._forwarding()))
        _logger.info("schema registry started: %s (%s), %d subjects", self.url, self.reach, len(store.state.subjects()))

    async def stop(self) -> None:
        """Stop. Leaves the election before the server stops, so that another instance leads while open requests finish.

        Every step has a timeout: with the brokers down, most steps would otherwise wait forever.
        """
        if self._registry is not None:
            await self._registry.finish_writes(FINISH_WRITES_S)
        if self._election is not None:
            await self._election.stop(LEAVE_GROUP_S)
        if self._server is not None:
            await self._server.stop()
        if self._registry is not None:
            self._registry.close()
        if self._store is not None:
            await self._store.stop(CLOSE_STORE_S)
        _logger.info("schema registry stopped")

    def _new_store(self) -> TopicStore:
        settings = self.settings
        topic = StateTopic(
            name=settings["kafkastore.topic"],
            servers=normalize_servers(settings["kafkastore.bootstrap.servers"]),
            client_id=CLIENT_ID,
            logger=_logger,
            timeout_ms=settings["kafkastore.timeout.ms"],
            replication_factor=settings["kafkastore.topic.replication.factor"],
            properties=settings.client_properties,
        )
        return TopicStore(topic, names_avro=settings.dialect is Dialect.V8)

    def _new_election(self, port: int, store: TopicStore) -> Election:
        settings = self.settings
        identity = InstanceIdentity(settings.host_name, port, settings["leader.eligibility"], settings.listener.scheme)
        return Election(
            self._open_group_admin,
            settings["schema.registry.group.id"],
            RegistryProtocol(identity),
            own_url=identity.url,
            session_timeout_ms=settings["kafkagroup.session.timeout.ms"],
            heartbeat_interval_ms=settings["kafkagroup.heartbeat.interval.ms"],
            on_elected=store.forget_end,
            logger=_logger,
        )

    def _open_group_admin(self) -> Admin:
        """An admin client for the group. A join can wait for a silent member's session timeout and slightly longer."""
        properties = {**self.settings.client_properties, "client.id": CLIENT_ID}
        timeout_ms = max(QUESTION_MS, 2 * self.settings["kafkagroup.session.timeout.ms"])
        return Admin(self.settings["kafkastore.bootstrap.servers"], properties, timeout_ms=timeout_ms)

    def _forwarding(self) -> Forwarding:
        settings = self.settings
        return Forwarding(
            hop_header=FORWARDED,
            connect_timeout_ms=settings["leader.connect.timeout.ms"],
            read_timeout_ms=settings["leader.read.timeout.ms"],
            headers=settings["inter.instance.headers.whitelist"],
            answer_headers=[OFFSET_HEADER],
            tls=peer_context(settings.tls) if settings.listener.is_tls else None,
        )
