"""Controllers whose voters are in the log, in one process, with real disks and sockets. Start at `dynamic_cluster`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tests.free_ports import free_port

from moldau.controller.quorum.replicated import ReplicatedQuorum
from moldau.core.config import BrokerConfig
from moldau.core.errors import ErrorCode
from moldau.net.broker_client import BrokerClient
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message
from moldau.server.cluster.controller_node import ControllerNode
from moldau.server.directories import FormatPlan, format_directories

CLUSTER_ID = "Nk018hRAQFytWskYqtQduw"


class DynamicCluster:
    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self.folder = folder
        self.ports = {node_id: free_port() for node_id in (1, 2, 3, 4)}
        self.nodes: dict[int, ControllerNode] = {}
        self.failures: list[BaseException] = []
        self._settings = settings

    def config(self, node_id: int, **more: str) -> BrokerConfig:
        servers = ",".join(f"127.0.0.1:{self.ports[one]}" for one in (1, 2))
        return BrokerConfig(
            {
                "process.roles": "controller",
                "node.id": str(node_id),
                "log.dirs": str(self.folder / str(node_id)),
                "listeners": f"CONTROLLER://127.0.0.1:{self.ports[node_id]}",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.bootstrap.servers": servers,
                "controller.quorum.election.timeout.ms": "150",
                "controller.quorum.election.backoff.max.ms": "100",
                "controller.quorum.fetch.timeout.ms": "3000",
                **self._settings,
                **more,
            }
        )

    def format(self, node_id: int, *, is_standalone: bool = False, initial_controllers: str | None = None) -> None:
        plan = FormatPlan(
            cluster_id=CLUSTER_ID,
            is_dynamic=is_standalone or initial_controllers is not None,
            initial_controllers=initial_controllers,
        )
        format_directories(self.config(node_id), plan)

    async def start(self, node_id: int) -> ReplicatedQuorum:
        node = ControllerNode(self.config(node_id), may_format=False, on_fatal=self.failures.append)
        await node.start()
        self.nodes[node_id] = node
        assert node.quorum is not None
        return node.quorum

    async def stop(self, node_id: int) -> None:
        await self.nodes.pop(node_id).stop()

    def quorum(self, node_id: int) -> ReplicatedQuorum:
        quorum = self.nodes[node_id].quorum
        assert quorum is not None
        return quorum

    async def leader(self) -> int:
        found: list[int] = []

        def is_ready() -> bool:
            found[:] = [one for one in self.nodes if self.quorum(one).is_active and self.quorum(one).image.features]
            return bool(found)

        await until(is_ready)
        return found[0]

    def voters(self) -> list[list[int]]:
        return [sorted(self.quorum(one).voters().by_id) for one in self.nodes]

    async def ask(self, api_key: ApiKey, node_id: int) -> int:
        """Ask the leader to add or remove a voter until it has had time for it; returns the error code."""
        me = self.quorum(node_id).me
        listeners = [Message(name=one.listener, host=one.host, port=one.port) for one in me.endpoints]
        request = Message(
            cluster_id=CLUSTER_ID,
            timeout_ms=10_000,
            voter_id=node_id,
            voter_directory_id=me.key.directory_id,
            listeners=listeners,
            ack_when_committed=True,
        )
        while True:
            client = BrokerClient("127.0.0.1", self.ports[await self.leader()], client_id="t")
            try:
                error: int = (await client.send(api_key, request)).error_code
            finally:
                client.close()
            if error not in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER):
                return error
            await asyncio.sleep(0.02)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def dynamic_cluster(folder: Path, **settings: str) -> AsyncIterator[DynamicCluster]:
    cluster = DynamicCluster(folder, {name.replace("_", "."): value for name, value in settings.items()})
    try:
        yield cluster
        assert cluster.failures == []
    finally:
        for node_id in list(cluster.nodes):
            await cluster.stop(node_id)
