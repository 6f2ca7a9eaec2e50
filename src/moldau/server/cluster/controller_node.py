"""A node with the role `controller` alone: a voter of the metadata quorum, with a listener for the other controllers.

It has the same life as `server.node.Node`, without brokers, partitions and clients. The voters are those of
`controller.quorum.voters`, or those in the metadata log, which is found through `controller.quorum.bootstrap.servers`
if this node was formatted without them. Start at `ControllerNode.start`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from moldau.controller.errors import RefusedError
from moldau.controller.hand_over import HandedMetadata, check_hand_over
from moldau.controller.quorum.replicated import ReplicatedQuorum
from moldau.core.clock import Clock, SystemClock
from moldau.core.config import BrokerConfig
from moldau.core.config.sections import NodeSettings
from moldau.core.errors import ErrorCode, MoldauError, StartupError
from moldau.log.directories.log_directory import LogDirectory
from moldau.log.directories.meta_properties import load_meta_properties, save_meta_properties
from moldau.log.errors import FatalDiskError, StorageError
from moldau.log.files import Files
from moldau.server.cluster.part import ClusterPart, ZooKeeperPort, check_cluster_settings, open_metadata_log
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
        zookeeper: ZooKeeperPort | None = None,
    ) -> None:
        """`zookeeper` is what it answers besides where it stands in ZooKeeper's place."""
        self._config = config
        self._may_format = may_format or config.section(NodeSettings).may_format
        self._on_fatal = on_fatal
        self._clock = clock or SystemClock()
        self._files = files or Files()
        self._zookeeper = zookeeper
        self._has_taken_over = False
        self._restart: asyncio.Task[None] | None = None
        self._directory: LogDirectory | None = None
        self._part: ClusterPart | None = None

    @property
    def quorum(self) -> ReplicatedQuorum | None:
        return None if self._part is None else self._part.quorum

    def port_of(self, listener_name: str) -> int:
        assert self._part is not None, "not started"
        return self._part.ports[listener_name]

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
        check_cluster_settings(self._config)
        directory = self._directory = LogDirectory(metadata_directory(self._config), self._files)
        directory.lock()
        self._take_part()

    def _take_part(self) -> None:
        config, path = self._config, metadata_directory(self._config)
        identity = adopt(self._files, [path], config.node_id, may_format=self._may_format)[path]
        part = self._part = ClusterPart(
            config,
            identity,
            files=self._files,
            clock=self._clock,
            on_fatal=self._on_fatal,
            zookeeper=self._zookeeper,
            take_over=self._take_over,
            has_taken_over=self._has_taken_over,
        )
        quorum = part.quorum
        part.start()
        listening = ", ".join(f"{name}://:{port}" for name, port in part.ports.items())
        ids = ", ".join(str(one) for one in sorted(quorum.voters().by_id)) or "not known yet"
        _logger.info(
            "[ControllerServer id=%d] started: %s, cluster %s, voters %s",
            config.node_id,
            listening,
            identity.cluster_id,
            ids,
        )

    # --- taking the metadata of a broker that had its own ------------------------------------------------

    async def _take_over(self, handed: HandedMetadata) -> None:
        """Begin anew with a broker's metadata, if there is none here; raises `RefusedError`."""
        assert self._part is not None, "not started"
        quorum = self._part.quorum
        if len(quorum.voters()) != 1 or quorum.kraft_version():
            raise RefusedError(
                ErrorCode.INVALID_REQUEST, "only a controller that is the only voter accepts the metadata of a broker"
            )
        if not quorum.is_active or self._restart is not None:
            raise RefusedError(ErrorCode.NOT_CONTROLLER, "this controller is starting; try again")
        check_hand_over(handed, quorum.image)
        self._restart = asyncio.ensure_future(self._begin_with(handed))

    async def _begin_with(self, handed: HandedMetadata) -> None:
        part = self._part
        assert part is not None, "not started"
        try:
            await part.close()
            await asyncio.get_running_loop().run_in_executor(None, self._save, handed)
            self._has_taken_over = True
            self._take_part()
        except (OSError, MoldauError) as error:
            self._on_fatal(error)
        finally:
            self._restart = None

    def _save(self, handed: HandedMetadata) -> None:
        """The identity first: without the metadata the broker finds its cluster here, and brings it again."""
        config, path = self._config, metadata_directory(self._config)
        known = load_meta_properties(self._files, path)
        directory_id = None if known is None else known.directory_id
        save_meta_properties(self._files, path, handed.cluster_id, config.node_id, directory_id)
        log = open_metadata_log(config, self._files, self._clock, self._on_fatal)
        log.install_snapshot(handed.snapshot, handed.data)
        log.partition.close()
        _logger.info(
            "took over the metadata of cluster %s up to offset %d", handed.cluster_id, handed.snapshot.end_offset
        )

    async def stop(self) -> None:
        if self._restart is not None:
            await self._restart
        if self._part is not None:
            self._part.drain()
            await self._part.close()
        if self._directory is not None:
            self._directory.unlock()
        _logger.info("[ControllerServer id=%d] shut down completed", self._config.node_id)
