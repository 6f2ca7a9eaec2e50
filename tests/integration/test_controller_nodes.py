"""Controllers in one process, with real disks and sockets: what is committed is everywhere, whatever the disks do."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.free_ports import free_port

from moldau.controller.cluster_apis import CLUSTER_APIS
from moldau.controller.controller_apis import CONTROLLER_APIS
from moldau.controller.quorum.replicated import ReplicatedQuorum
from moldau.core.config import BrokerConfig
from moldau.core.errors import ErrorCode
from moldau.log.directories.meta_properties import save_meta_properties
from moldau.log.errors import StorageError
from moldau.log.files import Files
from moldau.net.broker_client import BrokerClient
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message
from moldau.protocol.metadata_records import ConfigRecord
from moldau.raft.core import NotLeaderError
from moldau.server.cluster.controller_node import ControllerNode

CLUSTER_ID = "Nk018hRAQFytWskYqtQduw"
FAST = {
    "controller.quorum.election.timeout.ms": "150",
    "controller.quorum.election.backoff.max.ms": "100",
    "controller.quorum.fetch.timeout.ms": "3000",
}


class FullDisk(Files):
    """A disk on which a log can be full for a while."""

    is_full = False

    def write(self, fd: int, data: Any) -> int:
        if self.is_full and os.readlink(f"/proc/self/fd/{fd}").endswith(".log"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(fd, data)


class Cluster:
    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self.folder = folder
        self.ports = {node_id: free_port() for node_id in (1, 2, 3)}
        self.nodes: dict[int, ControllerNode] = {}
        self.disks = {node_id: FullDisk() for node_id in self.ports}
        self.failures: list[BaseException] = []
        self._settings = settings

    async def start(self, node_id: int) -> None:
        path = self.folder / str(node_id)
        if not path.exists():
            path.mkdir()
            save_meta_properties(Files(), str(path), CLUSTER_ID, node_id)
        config = BrokerConfig(
            {
                "process.roles": "controller",
                "node.id": str(node_id),
                "log.dirs": str(path),
                "listeners": f"CONTROLLER://127.0.0.1:{self.ports[node_id]}",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": ",".join(f"{one}@127.0.0.1:{port}" for one, port in self.ports.items()),
                **FAST,
                **self._settings,
            }
        )
        node = ControllerNode(config, may_format=False, on_fatal=self.failures.append, files=self.disks[node_id])
        await node.start()
        self.nodes[node_id] = node

    async def stop(self, node_id: int) -> None:
        await self.nodes.pop(node_id).stop()

    def quorum(self, node_id: int) -> ReplicatedQuorum:
        quorum = self.nodes[node_id].quorum
        assert quorum is not None
        return quorum

    async def leader(self) -> int:
        """The active controller, once there is one and its first records are committed."""
        found: list[int] = []

        def is_ready() -> bool:
            found[:] = [one for one in self.nodes if self.quorum(one).is_active and self.quorum(one).image.features]
            return bool(found)

        await until(is_ready)
        return found[0]

    async def agree(self) -> None:
        """Wait until all images are the same."""
        await until(lambda: len({self.quorum(one).image.offset for one in self.nodes}) == 1)
        images = [self.quorum(one).image for one in self.nodes]
        assert all(image == images[0] for image in images)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def cluster_of_three(folder: Path, **settings: str) -> AsyncIterator[Cluster]:
    cluster = Cluster(folder, {name.replace("_", "."): value for name, value in settings.items()})
    try:
        for node_id in cluster.ports:
            await cluster.start(node_id)
        yield cluster
        assert cluster.failures == []
    finally:
        for disk in cluster.disks.values():
            disk.is_full = False
        for node_id in list(cluster.nodes):
            await cluster.stop(node_id)


def setting(number: int) -> ConfigRecord:
    return ConfigRecord(resource_type=4, resource_name="", name="num.io.threads", value=str(number))


def test_what_is_committed_is_on_all_controllers_and_survives_restarts(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with cluster_of_three(tmp_path) as cluster:
            leader = await cluster.leader()
            epoch = cluster.quorum(leader).epoch
            offsets = [(await cluster.quorum(leader).append([setting(number)])).offset for number in range(5)]
            assert offsets == list(range(offsets[0], offsets[0] + 5))
            await cluster.agree()
            for follower in cluster.nodes.keys() - {leader}:
                with pytest.raises(NotLeaderError):
                    await cluster.quorum(follower).append([setting(9)])
            await cluster.stop(leader)
            second = await cluster.leader()
            assert cluster.quorum(second).epoch > epoch
            await cluster.quorum(second).append([setting(77)])
            await cluster.start(leader)
            await cluster.agree()
            assert cluster.quorum(leader).image.cluster_config["num.io.threads"] == "77"

    asyncio.run(scenario())


def test_a_controller_with_an_old_log_gets_what_it_lacks_and_takes_nothing_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with cluster_of_three(tmp_path) as cluster:
            leader = await cluster.leader()
            await cluster.quorum(leader).append([setting(1)])
            await cluster.agree()
            restored = next(one for one in cluster.nodes if one != leader)
            folder, copy = tmp_path / str(restored), tmp_path / "copy"
            await cluster.stop(restored)
            shutil.copytree(folder, copy)
            await cluster.start(restored)
            for number in range(2, 8):
                await cluster.quorum(await cluster.leader()).append([setting(number)])
            await cluster.agree()
            await cluster.stop(restored)
            shutil.rmtree(folder)
            shutil.copytree(copy, folder)
            await cluster.start(restored)
            await cluster.agree()
            await cluster.stop(await cluster.leader())
            again = cluster.quorum(await cluster.leader())
            assert again.image.cluster_config["num.io.threads"] == "7"
            await again.append([setting(8)])

    asyncio.run(scenario())


def test_an_empty_controller_gets_a_snapshot_of_a_log_that_was_trimmed(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = {
            "metadata_log_max_record_bytes_between_snapshots": "3000",
            "metadata_log_segment_bytes": "1000",
            "metadata_max_retention_bytes": "1000",
        }
        async with cluster_of_three(tmp_path, **settings) as cluster:
            leader = await cluster.leader()
            for number in range(150):
                await cluster.quorum(leader).append([setting(number)])
            await until(lambda: cluster.quorum(leader).log.partition.log_start_offset > 0)
            lost = next(one for one in cluster.nodes if one != leader)
            await cluster.stop(lost)
            shutil.rmtree(tmp_path / str(lost))
            await cluster.start(lost)
            await cluster.agree()
            assert cluster.quorum(lost).log.partition.log_start_offset > 0
            await cluster.quorum(await cluster.leader()).append([setting(7)])
            await cluster.agree()
            await cluster.stop(lost)
            await cluster.start(lost)
            await cluster.agree()

    asyncio.run(scenario())


def test_a_leader_whose_disk_is_full_refuses_and_hands_over(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with cluster_of_three(tmp_path) as cluster:
            leader = await cluster.leader()
            quorum, epoch = cluster.quorum(leader), cluster.quorum(leader).epoch
            await quorum.append([setting(1)])
            cluster.disks[leader].is_full = True
            refused = await asyncio.gather(
                *(quorum.append([setting(number)]) for number in (2, 3, 4)), return_exceptions=True
            )
            assert [type(one) for one in refused] == [StorageError] * 3
            while (another := await cluster.leader()) == leader:
                await asyncio.sleep(0.01)
            committed = await cluster.quorum(another).append([setting(5)])
            assert committed.epoch > epoch
            cluster.disks[leader].is_full = False
            await cluster.agree()
            assert cluster.quorum(leader).image.cluster_config["num.io.threads"] == "5"

    asyncio.run(scenario())


def test_a_follower_whose_disk_is_full_comes_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with cluster_of_three(tmp_path) as cluster:
            leader = await cluster.leader()
            await cluster.agree()
            follower = next(one for one in cluster.nodes if one != leader)
            cluster.disks[follower].is_full = True
            for number in range(3):
                await cluster.quorum(leader).append([setting(number)])
            end_offset = cluster.quorum(follower).log.end_offset
            assert end_offset < cluster.quorum(leader).log.end_offset
            cluster.disks[follower].is_full = False
            await cluster.agree()

    asyncio.run(scenario())


def test_a_controller_listener_has_its_own_apis(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with cluster_of_three(tmp_path) as cluster:
            leader = await cluster.leader()
            client = BrokerClient("127.0.0.1", cluster.ports[leader], client_id="t")
            try:
                versions = await client.send(
                    ApiKey.API_VERSIONS, Message(client_software_name="t", client_software_version="1")
                )
                told = {one.api_key: (one.min_version, one.max_version) for one in versions.api_keys}
                wanted = {**CONTROLLER_APIS, **CLUSTER_APIS}
                assert told == {int(key): tuple(one) for key, one in wanted.items()}
                other = [Message(topic_name="orders", partitions=[Message(partition_index=0)])]
                reply = await client.send(ApiKey.DESCRIBE_QUORUM, Message(topics=other))
                assert reply.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                vote = await client.send(ApiKey.VOTE, Message(cluster_id=None, voter_id=-1, topics=other))
                assert vote.error_code == ErrorCode.INVALID_REQUEST
                added = await client.send(
                    ApiKey.ADD_RAFT_VOTER,
                    Message(cluster_id=CLUSTER_ID, timeout_ms=1000, voter_id=9, voter_directory_id=None, listeners=[]),
                )
                assert added.error_code == ErrorCode.UNSUPPORTED_VERSION
                assert "controller.quorum.voters" in added.error_message
            finally:
                client.close()

    asyncio.run(scenario())
