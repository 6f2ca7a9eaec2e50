"""A node with the role `controller` alone: a voter of the metadata quorum, with a listener for the other controllers.

It has the same life as `server.node.Node`, without brokers, partitions and clients. The voters are those of
`controller.quorum.voters`, or those in the metadata log, which is found through `controller.quorum.bootstrap.servers`
if this node was formatted without them. Start at `ControllerNode.start`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import replace

from moldau.controller.controller_apis import ControllerApis
from moldau.controller.features import INITIAL_LEVELS
from moldau.controller.metadata_log import METADATA_PARTITION, MetadataLog
from moldau.controller.replicated_quorum import ReplicatedQuorum
from moldau.core.clock import Clock, SystemClock
from moldau.core.config import BrokerConfig
from moldau.core.config.sections import MetadataLogSettings, NodeSettings, QuorumTimes
from moldau.core.errors import MoldauError, StartupError
from moldau.log.directories.log_directory import LogDirectory
from moldau.log.errors import FatalDiskError, StorageError
from moldau.log.files import Files
from moldau.log.log_events import LogEvents
from moldau.net.limits import Limits
from moldau.net.server import Server
from moldau.protocol.metadata_records import FeatureLevelRecord
from moldau.raft.settings import QuorumSettings
from moldau.raft.voters import ReplicaKey, Voter
from moldau.server.controller_start import open_metadata_partition
from moldau.server.controller_voters import bootstrap_addresses, configured_voters, controller_endpoint
from moldau.server.descriptors import current_budget
from moldau.server.directories import adopt, metadata_directory

__all__ = ["ControllerNode"]

_logger = logging.getLogger("moldau.server.ControllerServer")


class ControllerNode:
    """Created and used on a running event loop."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        may_format: bool,
        on_fatal: Callable[[BaseException], None],
        clock: Clock | None = None,
        files: Files | None = None,
    ) -> None:
        self._config = config
        self._may_format = may_format or config.section(NodeSettings).may_format
        self._on_fatal = on_fatal
        self._clock = clock or SystemClock()
        self._files = files or Files()
        self._loop = asyncio.get_running_loop()
        self._directory: LogDirectory | None = None
        self._server: Server | None = None
        self._ports: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._cluster_id = ""
        self.quorum: ReplicatedQuorum | None = None

    def port_of(self, listener_name: str) -> int:
        return self._ports[listener_name]

    def give_up_start(self) -> None:
        """A start waits for nobody: there is nothing to give up."""

    async def start(self) -> None:
        """Start; returns once the other controllers are answered. Raises `StartupError`."""
        try:
            self._start()
        except (OSError, StorageError, FatalDiskError) as error:
            folder = metadata_directory(self._config)
            raise StartupError(f"cannot start on {folder}: {getattr(error, 'strerror', None) or error}") from error

    def _start(self) -> None:
        config = self._config
        voters = configured_voters(config)
        servers = bootstrap_addresses(config)
        if len(voters) and config.node_id not in voters.by_id:
            raise StartupError(
                f"controller.quorum.voters does not name node {config.node_id}; add "
                f"{config.node_id}@host:port there, or use controller.quorum.bootstrap.servers in its place"
            )
        if not len(voters) and not servers:
            raise StartupError(
                "controller.quorum.bootstrap.servers or controller.quorum.voters must say where the controllers are, "
                "for example controller.quorum.bootstrap.servers=localhost:9093"
            )
        path = metadata_directory(config)
        directory = self._directory = LogDirectory(path, self._files)
        directory.lock()
        identity = adopt(self._files, [path], config.node_id, may_format=self._may_format)[path]
        me = Voter(ReplicaKey(config.node_id, identity.directory_id), (controller_endpoint(config),))
        quorum = self.quorum = ReplicatedQuorum(
            self._open_log(path),
            me,
            replace(self._settings(identity.cluster_id), bootstrap_servers=len(servers)),
            voters,
            bootstrap_servers=servers,
            clock=self._clock,
            on_fatal=self._on_fatal,
            on_claim=self._on_claim,
        )
        self._cluster_id = identity.cluster_id
        quorum.start()
        self._listen(quorum)
        listening = ", ".join(f"{name}://:{port}" for name, port in self._ports.items())
        ids = ", ".join(str(one) for one in sorted(quorum.voters().by_id)) or "not known yet"
        _logger.info(
            "[ControllerServer id=%d] started: %s, cluster %s, voters %s",
            config.node_id,
            listening,
            identity.cluster_id,
            ids,
        )

    def _settings(self, cluster_id: str) -> QuorumSettings:
        times = self._config.section(QuorumTimes)
        return QuorumSettings(
            cluster_id,
            election_timeout_ms=times.election_timeout_ms,
            election_backoff_max_ms=times.election_backoff_max_ms,
            fetch_timeout_ms=times.fetch_timeout_ms,
            request_timeout_ms=times.request_timeout_ms,
            retry_backoff_ms=times.retry_backoff_ms,
        )

    def _open_log(self, path: str) -> MetadataLog:
        directory = os.path.join(path, str(METADATA_PARTITION))
        events = LogEvents(on_fatal=self._on_fatal)
        partition = open_metadata_partition(directory, self._config, self._files, self._clock, events)
        if partition.offline_error is not None:
            raise StartupError(f"the metadata log cannot be used: {partition.offline_error}")
        settings = self._config.section(MetadataLogSettings)
        return MetadataLog(
            partition,
            self._clock,
            snapshot_after_bytes=settings.snapshot_after_bytes,
            keep_bytes=settings.retention_bytes,
        )

    def _listen(self, quorum: ReplicatedQuorum) -> None:
        config = self._config
        apis = ControllerApis(
            quorum, lambda: (self._clock.now_ms(), self._clock.monotonic_ms()), cluster_id=self._cluster_id
        )
        server = self._server = Server(
            self._loop, apis.handle, config.section(Limits), descriptors=lambda: current_budget().connections
        )
        for wanted in config.listeners:
            if wanted.name not in config.controller_listener_names:
                continue
            protocol = config.security_protocols.get(wanted.name, "PLAINTEXT")
            if protocol != "PLAINTEXT":
                raise StartupError(f"listeners: {wanted.name} wants {protocol}, and only PLAINTEXT is built so far")
            try:
                self._ports[wanted.name] = server.listen(wanted.name, wanted.host, wanted.port)
            except OSError as error:
                raise StartupError(f"cannot listen on {wanted}: {error.strerror}; choose another port") from None
        if not self._ports:
            raise StartupError("listeners: there is none that controller.listener.names names")

    def _on_claim(self, epoch: int) -> None:
        """The active controller of an empty cluster writes its first records."""
        task = asyncio.ensure_future(self._bootstrap(epoch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _bootstrap(self, epoch: int) -> None:
        quorum = self.quorum
        assert quorum is not None
        if quorum.image.features:
            return
        given = quorum.log.bootstrap_records()
        levels = [FeatureLevelRecord(name=name, feature_level=level) for name, level in INITIAL_LEVELS.items()]
        try:
            await quorum.append(given or levels)
        except MoldauError as error:
            _logger.warning("the first records of the cluster are not committed in epoch %d: %s", epoch, error)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.drain()
        if self.quorum is not None:
            await self.quorum.close()
        for task in list(self._tasks):
            task.cancel()
        if self._server is not None:
            # One iteration of the loop, to send the last replies.
            await asyncio.sleep(0.01)
            self._server.close()
        if self._directory is not None:
            self._directory.unlock()
        _logger.info("[ControllerServer id=%d] shut down completed", self._config.node_id)
