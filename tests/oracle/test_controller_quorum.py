"""A quorum of two controllers of ours and one of Apache Kafka: each votes for, leads and follows the others."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.free_ports import free_port
from tests.integration.dynamic_cluster import DynamicCluster, dynamic_cluster
from tests.oracle.apache_kafka import ApacheKafka, needs_apache_kafka, run_tool

from moldau.controller.quorum.replicated import ReplicatedQuorum
from moldau.core.config import BrokerConfig
from moldau.core.ids import render_uuid
from moldau.log.directories.meta_properties import save_meta_properties
from moldau.log.files import Files
from moldau.protocol.metadata_records import ConfigRecord
from moldau.raft.voters import Voter
from moldau.server.cluster.controller_node import ControllerNode

CLUSTER_ID = "bW9sZGF1LW9yYWNsZS0wMQ"
KAFKA = 3

pytestmark = pytest.mark.java


class MixedQuorum:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kafka = ApacheKafka(folder / "kafka")
        self.ports = {1: free_port(), 2: free_port(), KAFKA: self.kafka.controller_port}
        self.voters = ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in self.ports.items())
        self.nodes: dict[int, ControllerNode] = {}
        listener = f"CONTROLLER://127.0.0.1:{self.ports[KAFKA]}"
        self.kafka._properties |= {
            "process.roles": "controller",
            "node.id": str(KAFKA),
            "controller.quorum.voters": self.voters,
            "listeners": listener,
            "advertised.listeners": listener,
        }

    async def start(self, node_id: int) -> ReplicatedQuorum:
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
                "controller.quorum.voters": self.voters,
            }
        )
        node = self.nodes[node_id] = ControllerNode(config, may_format=False, on_fatal=_fail)
        await node.start()
        assert node.quorum is not None
        return node.quorum

    async def stop(self, node_id: int) -> None:
        await self.nodes.pop(node_id).stop()

    def active(self) -> list[int]:
        return [one for one, node in self.nodes.items() if node.quorum is not None and node.quorum.is_active]


def _fail(error: BaseException) -> None:
    raise AssertionError("a controller cannot go on") from error


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.02)


def setting(value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=4, resource_name="", name="num.io.threads", value=value)


def value_in(quorum: ReplicatedQuorum) -> str | None:
    return next((values.get("num.io.threads") for values in quorum.image.configs.values()), None)


def kafkas_end(quorum: ReplicatedQuorum) -> int:
    return next(one.end_offset for one in quorum.view().voters if one.key.id == KAFKA)


def test_apache_kafka_and_moldau_make_one_quorum(tmp_path: Path) -> None:
    needs_apache_kafka()

    async def scenario() -> None:
        mixed = MixedQuorum(tmp_path)
        in_thread = asyncio.get_running_loop().run_in_executor
        await in_thread(None, mixed.kafka.format)
        quorums = {node_id: await mixed.start(node_id) for node_id in (1, 2)}
        await until(mixed.active)
        (leader,) = mixed.active()
        other = 3 - leader
        try:
            await in_thread(None, mixed.kafka.start)
            await quorums[leader].append([setting("5")])
            await until(lambda: kafkas_end(quorums[leader]) >= quorums[leader].log.end_offset)

            # Apache Kafka has everything, and the only other voter that is left has nothing: Kafka must lead.
            for node_id in (other, leader):
                await mixed.stop(node_id)
            shutil.rmtree(tmp_path / str(other))
            empty = await mixed.start(other)
            await until(lambda: empty.view().leader_id == KAFKA and value_in(empty) == "5")
            epoch = empty.view().epoch
            again = await mixed.start(leader)
            end_offset = empty.image.offset
            await until(lambda: again.view().leader_id == KAFKA and again.image.offset >= end_offset)
            assert value_in(again) == "5"

            # Apache Kafka ends, and one of ours takes over with all that Kafka has written.
            end_offset = min(empty.image.offset, again.image.offset)
            await in_thread(None, mixed.kafka.stop)
            await until(mixed.active)
            (last,) = mixed.active()
            quorum = mixed.nodes[last].quorum
            assert quorum is not None
            assert quorum.epoch > epoch
            assert (await quorum.append([setting("6")])).offset > end_offset
            await until(lambda: value_in(empty) == value_in(again) == "6")
        finally:
            for node_id in list(mixed.nodes):
                await mixed.stop(node_id)
            await in_thread(None, mixed.kafka.stop)

    asyncio.run(scenario())


def test_kafka_metadata_quorum_describes_and_changes_our_voters(tmp_path: Path) -> None:
    needs_apache_kafka()

    async def scenario() -> None:
        async with dynamic_cluster(tmp_path) as cluster:
            cluster.format(1, is_standalone=True)
            cluster.format(2)
            for node_id in (1, 2):
                await cluster.start(node_id)
            await cluster.leader()
            first, second = (cluster.quorum(node_id).me for node_id in (1, 2))

            status = await _tool(cluster, "describe", "--status")
            assert "LeaderId:               1\n" in status
            assert f'CurrentObservers:       [{{"id": 2, "directoryId": "{_id(second)}"}}]' in status

            settings = tmp_path / "second.properties"
            listener = f"CONTROLLER://127.0.0.1:{cluster.ports[2]}"
            settings.write_text(
                f"process.roles=controller\nnode.id=2\nlog.dirs={tmp_path}/2\nlisteners={listener}\n"
                f"advertised.listeners={listener}\ncontroller.listener.names=CONTROLLER\n"
                f"controller.quorum.bootstrap.servers=127.0.0.1:{cluster.ports[1]}\n"
                "listener.security.protocol.map=CONTROLLER:PLAINTEXT\n"
            )
            added = await _tool(cluster, "--command-config", str(settings), "add-controller")
            assert added.startswith(f"Added controller 2 with directory id {_id(second)}")
            await until(lambda: cluster.voters() == [[1, 2], [1, 2]])

            gone = ("remove-controller", "--controller-id", "1", "--controller-directory-id", _id(first))
            assert "Removed" in await _tool(cluster, *gone)
            await until(lambda: cluster.voters() == [[2], [2]] and cluster.quorum(2).is_active)

    asyncio.run(scenario())


def _id(voter: Voter) -> str:
    assert voter.key.directory_id is not None
    return render_uuid(voter.key.directory_id)


async def _tool(cluster: DynamicCluster, *arguments: str) -> str:
    """Run Kafka's own tool against the first controller."""
    command = ["--bootstrap-controller", f"127.0.0.1:{cluster.ports[1]}", *arguments]
    loop = asyncio.get_running_loop()
    done = await loop.run_in_executor(None, run_tool, "org.apache.kafka.tools.MetadataQuorumCommand", command)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
