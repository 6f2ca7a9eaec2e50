"""The controller that runs in ZooKeeper's place, started by `zookeeper-server-start`.

It is a controller like any other (`server.cluster.controller_node`), on the port and in the folder of a
zookeeper.properties file. Besides, that port tells clients where brokers are, and answers ZooKeeper's four-letter
words. Start at `ZooKeeperNode.start`.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING

import moldau
from moldau.core.clock import Clock
from moldau.core.config import BrokerConfig
from moldau.core.ids import render_uuid
from moldau.log.directories.meta_properties import load_meta_properties, save_meta_properties
from moldau.log.files import Files
from moldau.server.cluster.controller_node import ControllerNode
from moldau.server.zookeeper.four_letter_words import PointStatus, answer
from moldau.server.zookeeper.properties_file import ZooKeeperFile

if TYPE_CHECKING:
    from moldau.net.server import Server
    from moldau.server.cluster.part import ClusterPart

__all__ = ["ZooKeeperNode"]

_logger = logging.getLogger("moldau.server.ZooKeeperNode")


class _Port:
    """What the port answers besides the requests of a controller (`cluster.part.ZooKeeperPort`)."""

    advice = "is another one running? choose another clientPort or end it with zookeeper-server-stop"

    def __init__(self, file: ZooKeeperFile) -> None:
        self._file = file
        self._part: ClusterPart | None = None
        self._server: Server | None = None

    def serve(self, part: ClusterPart, server: Server) -> None:
        self._part, self._server = part, server

    def answer_text(self, word: bytes) -> bytes | None:
        text = answer(word, self._status())
        return None if text is None else text.encode()

    def _status(self) -> PointStatus:
        assert self._part is not None, "not started"
        assert self._server is not None, "not started"
        quorum, server, file = self._part.quorum, self._server, self._file
        brokers = []
        for broker in quorum.image.alive_brokers():
            at = next(iter(broker.endpoints.values()), None)
            brokers.append(f"{broker.node_id} at {at.host}:{at.port}" if at else str(broker.node_id))
        return PointStatus(
            version=moldau.__version__,
            client_port=next(iter(self._part.ports.values()), file.client_port),
            data_dir=file.data_dir,
            settings=file.given,
            mode=("leader" if quorum.is_active else "follower") if file.voters else "standalone",
            connections=len(server.connections),
            received=server.received_bytes,
            sent=server.sent_bytes,
            offset=quorum.image.offset,
            brokers=tuple(brokers),
            clients=tuple(f"{one.session.client_host}:{one.session.client_port}" for one in server.connections),
        )


class ZooKeeperNode:
    """Created and used on a running event loop; a service for `server.services.run`."""

    def __init__(
        self,
        file: ZooKeeperFile,
        *,
        on_fatal: Callable[[BaseException], None],
        clock: Clock | None = None,
        files: Files | None = None,
    ) -> None:
        self._file, self._files = file, files or Files()
        self._node = ControllerNode(
            BrokerConfig(file.settings()),
            may_format=True,
            on_fatal=on_fatal,
            clock=clock,
            files=self._files,
            zookeeper=_Port(file),
        )

    async def start(self) -> None:
        """Return once brokers can register; raises `StartupError`."""
        if self._file.voters and load_meta_properties(self._files, self._file.data_dir) is None:
            # The members of an ensemble are the same cluster without having met.
            cluster_id = render_uuid(uuid.UUID(bytes=sha256("\n".join(self._file.voters).encode()).digest()[:16]))
            save_meta_properties(self._files, self._file.data_dir, cluster_id, self._file.node_id)
        await self._node.start()
        _logger.info("data in %s", self._file.data_dir)
        _logger.info("brokers find their cluster at port %d", self._node.port_of("CONTROLLER"))

    async def stop(self) -> None:
        await self._node.stop()
