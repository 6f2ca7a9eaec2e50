"""Three brokers, each a process with a controller of its own, to be killed and started again. Start at `Cluster`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from tests.free_ports import free_port
from tests.integration.killable import KillableProcess
from tests.integration.machines import Machines
from tests.integration.raw_client import RawClient

from moldau.cli.storage.command import main as kafka_storage
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

__all__ = ["QUICK", "Cluster", "eventually"]

CLUSTER_ID = "Nk018hRAQFytWskYqtQduw"
TIMEOUT_S = 90.0
QUICK = {
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": "1500",
    "controller.quorum.election.timeout.ms": "300",
    "controller.quorum.election.backoff.max.ms": "200",
    "controller.quorum.fetch.timeout.ms": "1000",
    "replica.lag.time.max.ms": "3000",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}
"""Short times, so that a test does not wait long for what must happen anyway."""


def eventually(condition: Callable[[], object], what: str, timeout_s: float = TIMEOUT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not so within {timeout_s:g} s")
        time.sleep(0.05)


class Cluster:
    """Nodes 1 to `count`, formatted; `start` them, and leave the block to end them."""

    def __init__(
        self,
        folder: Path,
        *,
        count: int = 3,
        settings: Mapping[str, str] | None = None,
        machines: Machines | None = None,
        more_log_dirs: Mapping[int, Path] | None = None,
        modules: Mapping[int, str] | None = None,
    ) -> None:
        """`more_log_dirs` gives a node a second log directory; `modules` are what some nodes run instead of
        `kafka-server-start`, such as a broker whose clock is wrong."""
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.nodes = range(1, count + 1)
        self.hosts = {node: "127.0.0.1" if machines is None else machines.host_of(node) for node in self.nodes}
        self.ports = {node: free_port() for node in self.nodes}
        self.controller_ports = {node: free_port() for node in self.nodes}
        voters = ",".join(f"{node}@{self.hosts[node]}:{port}" for node, port in self.controller_ports.items())
        self._processes: dict[int, KillableProcess] = {}
        for node in self.nodes:
            lines = {
                "process.roles": "broker,controller",
                "node.id": str(node),
                "listeners": f"PLAINTEXT://{self.hosts[node]}:{self.ports[node]},"
                f"CONTROLLER://{self.hosts[node]}:{self.controller_ports[node]}",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": voters,
                "log.dirs": ",".join(
                    str(one) for one in (folder / f"data{node}", (more_log_dirs or {}).get(node)) if one is not None
                ),
                **QUICK,
                **(settings or {}),
            }
            file = self.file_of(node)
            file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
            assert kafka_storage(["format", "-t", CLUSTER_ID, "-c", str(file)]) == 0
            self._processes[node] = KillableProcess(
                (modules or {}).get(node, "moldau.cli.server.start"),
                [str(file)],
                folder / f"output{node}",
                within=() if machines is None else machines.command_of(node),
            )

    def file_of(self, node: int) -> Path:
        return self.folder / f"server{node}.properties"

    def output_of(self, node: int) -> str:
        return (self.folder / f"output{node}").read_text(errors="replace")

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{self.hosts[node]}:{port}" for node, port in self.ports.items())

    def __enter__(self) -> Cluster:
        for node in self.nodes:
            self.spawn(node)
        self.wait_for_brokers(len(self.nodes))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes.values():
            process.kill()

    # --- processes --------------------------------------------------------------------------------------

    def spawn(self, node: int) -> None:
        self._processes[node].spawn()

    def kill(self, node: int) -> None:
        self._processes[node].kill()

    def terminate(self, node: int) -> int:
        return self._processes[node].terminate()

    def process(self, node: int) -> KillableProcess:
        return self._processes[node]

    # --- what it says -----------------------------------------------------------------------------------

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0, "socket.timeout.ms": 10_000})

    def create_topic(self, name: str, partitions: int, factor: int, **config: str) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        eventually(lambda: self._create(NewTopic(name, partitions, factor, config=settings)), f"{name} is created")
        eventually(lambda: len(self.leaders(name)) == partitions, f"leaders of {name}")

    def _create(self, topic: NewTopic) -> bool:
        """Whether the topic exists; a client that has just learnt of new brokers may give up a request."""
        admin = self.admin()
        try:
            admin.create_topics([topic])[topic.topic].result(60)
        except KafkaException as error:
            return bool(error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS)
        return True

    def leaders(self, topic: str) -> dict[int, int]:
        """The leader of each partition that has one."""
        return {number: one.leader for number, one in self._partitions(topic).items() if one.leader >= 0}

    def isrs(self, topic: str) -> dict[int, list[int]]:
        return {number: sorted(one.isrs) for number, one in self._partitions(topic).items()}

    def active_controller(self) -> int:
        """The node that leads the quorum, by the word of a broker that answers; -1 if none does."""
        asked = [Message(topic_name="__cluster_metadata", partitions=[Message(partition_index=0)])]
        for node, port in self.ports.items():
            try:
                with RawClient(port, host=self.hosts[node]) as client:
                    reply = client.ask(ApiKey.DESCRIBE_QUORUM, 1, Message(topics=asked))
                leader: int = reply.topics[0].partitions[0].leader_id
                return leader
            except (OSError, IndexError):
                continue
        return -1

    def _partitions(self, topic: str) -> dict[int, Any]:
        try:
            found = self.admin().list_topics(topic, timeout=10).topics.get(topic)
        except KafkaException:
            return {}
        return {} if found is None else dict(found.partitions)

    def brokers(self) -> set[int]:
        try:
            return set(self.admin().list_topics(timeout=5).brokers)
        except KafkaException:
            return set()

    def wait_for_brokers(self, count: int) -> None:
        eventually(lambda: len(self.brokers()) == count, f"{count} brokers")

    def wait_until_in_sync(self, topic: str) -> None:
        """Until every partition has a leader, and every replica is in sync."""
        wanted = list(self.nodes)
        eventually(
            lambda: (isrs := self.isrs(topic)) and all(isr == wanted for isr in isrs.values()),
            f"all replicas of {topic} in sync",
        )
