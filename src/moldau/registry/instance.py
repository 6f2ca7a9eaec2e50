"""A registry instance put together: topic, store, election, HTTP; started and stopped in the right order.

Lives in whichever event loop starts it, beside other services if need be. Start at `RegistryInstance`.
"""

from __future__ import annotations

import logging
import threading
import time

from moldau.client.admin import Admin
from moldau.client.connection import normalize_servers
from moldau.client.errors import ClientError
from moldau.core.addresses import is_loopback
from moldau.core.errors import StartupError
from moldau.http.serving import HttpServer
from moldau.registry.app import build_app
from moldau.registry.blocking import in_daemon_thread
from moldau.registry.election import Election
from moldau.registry.errors import RegistryError
from moldau.registry.forwarding import Forwarding
from moldau.registry.identity import InstanceIdentity
from moldau.registry.registry import Registry
from moldau.registry.settings import Dialect, RegistrySettings
from moldau.registry.store import TopicStore
from moldau.registry.topic import ensure_topic
from moldau.registry.waiting import told_while_waiting

__all__ = ["RegistryInstance"]

PATIENCE_MS = 5000
"""How long one question to the brokers may take."""

FINISH_WRITES_S, LEAVE_GROUP_S, CLOSE_STORE_S = 1.0, 1.0, 1.0
DRAIN_S = 1
"""How long each part of stopping may take at most; together less than supervisors wait before they kill."""

_logger = logging.getLogger("moldau.registry")


class RegistryInstance:
    def __init__(self, settings: RegistrySettings) -> None:
        self.settings = settings
        self._server: HttpServer | None = None
        self._store: TopicStore | None = None
        self._election: Election | None = None
        self._registry: Registry | None = None
        self._is_stopping = threading.Event()

    @property
    def url(self) -> str:
        """Where this instance is reached from the same machine."""
        host = self.settings.listener.host
        local = "127.0.0.1" if host in ("", "0.0.0.0", "::") else host
        return f"http://{f'[{local}]' if ':' in local else local}:{self.port}"

    @property
    def reach(self) -> str:
        """Who can connect, for the log."""
        host = self.settings.listener.host
        if host in ("", "0.0.0.0", "::"):
            return "listens on every interface"
        if is_loopback(host):
            return "this machine only; --host 0.0.0.0 or listeners opens it to others"
        return f"listens on {host}"

    @property
    def port(self) -> int:
        return 0 if self._server is None else self._server.port

    @property
    def is_leader(self) -> bool:
        return self._election is not None and self._election.is_leader

    async def start(self) -> None:
        """Return once requests are answered and all that was registered is known; raises `StartupError`."""
        settings = self.settings
        deadline = time.monotonic() + settings["kafkastore.init.timeout.ms"] / 1000
        self._server = HttpServer(host=settings.listener.host, port=settings.listener.port, drain_s=DRAIN_S)
        self._server.bind()
        try:
            async with told_while_waiting(normalize_servers(settings["kafkastore.bootstrap.servers"]), deadline):
                cluster_id = await in_daemon_thread(lambda: self._prepare_topic(deadline), name="registry-topic")
                self._store = store = self._new_store()
                await store.start(max(1.0, deadline - time.monotonic()))
        except RegistryError as error:
            raise StartupError(str(error)) from None
        self._election = election = self._new_election(self._server.port, store)
        election.cluster_id = cluster_id
        store.may_write = lambda: election.is_leader
        self._registry = Registry(settings, store, election)
        election.start()
        await self._server.start(build_app(self._registry, forward=self._forwarding()))
        _logger.info("schema registry started: %s (%s), %d subjects", self.url, self.reach, len(store.state.subjects()))

    async def stop(self) -> None:
        """Leave the election first, so that another instance leads while requests under way are finished.

        Every step has its time: with the brokers gone, most of what it waits for will never come.
        """
        self._is_stopping.set()
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

    def _prepare_topic(self, deadline: float) -> str:
        admin = self._open_admin(timeout_ms=min(PATIENCE_MS, self.settings["kafkastore.init.timeout.ms"]))
        ensure_topic(
            admin,
            self.settings["kafkastore.topic"],
            replication_factor=self.settings["kafkastore.topic.replication.factor"],
            deadline=deadline,
            is_stopping=self._is_stopping.is_set,
        )
        try:
            return admin.describe_cluster().cluster_id
        except ClientError as error:
            raise StartupError(f"the cluster at {admin.servers} cannot be described: {error}") from None

    def _open_admin(self, timeout_ms: int = PATIENCE_MS) -> Admin:
        properties = {**self.settings.client_properties, "client.id": "schema-registry"}
        return Admin(self.settings["kafkastore.bootstrap.servers"], properties, timeout_ms=timeout_ms)

    def _open_group_admin(self) -> Admin:
        """Joining may last as long as a silent member is waited for, and a bit."""
        return self._open_admin(max(PATIENCE_MS, 2 * self.settings["kafkagroup.session.timeout.ms"]))

    def _new_store(self) -> TopicStore:
        settings = self.settings
        return TopicStore(
            normalize_servers(settings["kafkastore.bootstrap.servers"]),
            settings["kafkastore.topic"],
            timeout_ms=settings["kafkastore.timeout.ms"],
            properties=settings.client_properties,
            names_avro=settings.dialect is Dialect.V8,
        )

    def _new_election(self, port: int, store: TopicStore) -> Election:
        settings = self.settings
        return Election(
            self._open_group_admin,
            settings["schema.registry.group.id"],
            InstanceIdentity(settings.host_name, port, settings["leader.eligibility"]),
            session_timeout_ms=settings["kafkagroup.session.timeout.ms"],
            heartbeat_interval_ms=settings["kafkagroup.heartbeat.interval.ms"],
            on_elected=store.forget_end,
        )

    def _forwarding(self) -> Forwarding:
        settings = self.settings
        return Forwarding(
            connect_timeout_ms=settings["leader.connect.timeout.ms"],
            read_timeout_ms=settings["leader.read.timeout.ms"],
            headers=settings["inter.instance.headers.whitelist"],
        )
