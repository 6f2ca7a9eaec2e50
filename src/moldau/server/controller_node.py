"""A node with the role `controller` alone: a voter of the metadata quorum, with a listener for the other controllers.

It has the same life as `server.node.Node`, without brokers, partitions and clients. The voters are those of
`controller.quorum.voters`, or those in the metadata log, which is found through `controller.quorum.bootstrap.servers`
if this node was formatted without them. Start at `ControllerNode.start`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from moldau.controller.replicated_quorum import ReplicatedQuorum
from moldau.core.clock import Clock, SystemClock
from moldau.core.config import BrokerConfig
from moldau.core.config.sections import NodeSettings
from moldau.core.errors import StartupError
from moldau.log.directories.log_directory import LogDirectory
from moldau.log.errors import FatalDiskError, StorageError
from moldau.log.files import Files
from moldau.server.cluster_part import ClusterPart, check_cluster_settings
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
        config = self._config
        check_cluster_settings(config)
        path = metadata_directory(config)
        directory = self._directory = LogDirectory(path, self._files)
        directory.lock()
        identity = adopt(self._files, [path], config.node_id, may_format=self._may_format)[path]
        part = self._part = ClusterPart(config, identity, files=self._files, clock=self._clock, on_fatal=self._on_fatal)
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

    async def stop(self) -> None:
        if self._part is not None:
            self._part.drain()
            await self._part.close()
        if self._directory is not None:
            self._directory.unlock()
        _logger.info("[ControllerServer id=%d] shut down completed", self._config.node_id)
