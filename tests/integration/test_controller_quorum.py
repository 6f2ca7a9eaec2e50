"""Controllers in processes of their own elect a leader, lose it, and go on."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.free_ports import free_port
from tests.integration.server_process import ServerProcess, wait_until

from moldau.cli.storage.command import main as kafka_storage
from moldau.core.errors import ErrorCode
from moldau.net.broker_client import BrokerClient
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message
from moldau.protocol.records import split_batches

CLUSTER_ID = "Nk018hRAQFytWskYqtQduw"
START = ("-m", "moldau.cli.server.start")


class Controllers:
    """Three property files, formatted folders, and the processes that run."""

    def __init__(self, folder: Path, count: int = 3) -> None:
        self.folder = folder
        self.ports = {node_id: free_port() for node_id in range(1, count + 1)}
        self.running: dict[int, ServerProcess] = {}
        self._stack = ExitStack()
        voters = ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in self.ports.items())
        for node_id, port in self.ports.items():
            self.file_of(node_id).write_text(
                "process.roles=controller\n"
                f"node.id={node_id}\n"
                f"listeners=CONTROLLER://127.0.0.1:{port}\n"
                "controller.listener.names=CONTROLLER\n"
                f"controller.quorum.voters={voters}\n"
                f"log.dirs={folder}/data{node_id}\n"
            )

    def file_of(self, node_id: int) -> Path:
        return self.folder / f"controller{node_id}.properties"

    def log_of(self, node_id: int) -> bytes:
        return (self.folder / f"data{node_id}/__cluster_metadata-0/{0:020d}.log").read_bytes()

    def format(self, node_id: int, cluster_id: str = CLUSTER_ID) -> None:
        assert kafka_storage(["format", "-t", cluster_id, "-c", str(self.file_of(node_id))]) == 0

    def start(self, node_id: int) -> ServerProcess:
        process = ServerProcess([str(self.file_of(node_id))], program=START)
        self.running[node_id] = self._stack.enter_context(process)
        return process

    def kill(self, node_id: int) -> None:
        process = self.running.pop(node_id).process
        assert process is not None
        process.send_signal(signal.SIGKILL)
        process.wait(30)

    def close(self) -> None:
        self._stack.close()

    # --- what they say ----------------------------------------------------------------------------------

    def described(self, node_id: int) -> Message | None:
        """What a controller says of the quorum; `None` if it does not answer."""
        return asyncio.run(_describe(self.ports[node_id]))

    def leader(self, *, but: int = 0) -> Message | None:
        """The answer of the controller that leads."""
        for node_id in self.running:
            one = self.described(node_id)
            if one is not None and one.error_code == ErrorCode.NONE and one.leader_id not in (-1, but):
                return one
        return None

    def wait_for_leader(self, *, but: int = 0, above: int = 0) -> Message:
        """The answer of a leader that has committed something above this offset."""
        found: list[Message] = []

        def is_elected() -> bool:
            one = self.leader(but=but)
            if one is not None and one.high_watermark > above:
                found.append(one)
            return bool(found)

        wait_until(is_elected, what="a leader")
        return found[-1]

    def wait_until_all_have(self, offset: int) -> None:
        def is_there() -> bool:
            one = self.leader()
            ends = [] if one is None else [voter.log_end_offset for voter in one.current_voters]
            return len(ends) == len(self.ports) and min(ends) >= offset

        wait_until(is_there, what=f"{offset} on all controllers")


async def _describe(port: int) -> Message | None:
    client = BrokerClient("127.0.0.1", port, client_id="test", request_timeout_s=2, connect_timeout_s=1)
    topics = [Message(topic_name="__cluster_metadata", partitions=[Message(partition_index=0)])]
    try:
        reply = await client.send(ApiKey.DESCRIBE_QUORUM, Message(topics=topics))
    except OSError:
        return None
    finally:
        client.close()
    partition: Message = reply.topics[0].partitions[0]
    return partition


@pytest.fixture
def controllers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Controllers]:
    with _controllers(tmp_path) as made:
        yield made


@contextmanager
def _controllers(folder: Path) -> Iterator[Controllers]:
    made = Controllers(folder)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.slow
def test_three_controllers_survive_the_death_of_every_leader(controllers: Controllers) -> None:
    for node_id in controllers.ports:
        controllers.format(node_id)
        controllers.start(node_id)
    leader = controllers.wait_for_leader()
    assert {one.replica_id for one in leader.current_voters} == {1, 2, 3}
    epoch, committed = leader.leader_epoch, leader.high_watermark
    for _ in range(3):
        dead = leader.leader_id
        controllers.kill(dead)
        leader = controllers.wait_for_leader(but=dead, above=committed)
        assert leader.leader_epoch > epoch
        epoch, committed = leader.leader_epoch, leader.high_watermark
        controllers.start(dead)
    controllers.wait_until_all_have(committed)
    for process in controllers.running.values():
        assert process.terminate() == 0, process.output
    _check_equal_logs([controllers.log_of(node_id) for node_id in controllers.ports], committed)


def _check_equal_logs(logs: list[bytes], committed: int) -> None:
    """Everything committed is the same on all disks, byte by byte."""
    kept = []
    for data in logs:
        kept.append([bytes(batch) for header, batch in split_batches(data) if header.last_offset < committed])
    assert kept[0] == kept[1] == kept[2]
    assert kept[0]


def test_one_of_three_does_not_lead_and_two_do(controllers: Controllers) -> None:
    for node_id in controllers.ports:
        controllers.format(node_id)
    controllers.start(1)
    wait_until(lambda: controllers.described(1) is not None, what="an answer")
    alone = controllers.described(1)
    assert alone is not None
    assert (alone.error_code, alone.leader_id, alone.leader_epoch) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, 0)
    controllers.start(2)
    leader = controllers.wait_for_leader()
    assert leader.leader_id in (1, 2)
    controllers.running[leader.leader_id].terminate()
    other = controllers.described(3 - leader.leader_id)
    assert other is not None
    assert other.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_controller_of_another_cluster_is_told_so(controllers: Controllers) -> None:
    controllers.format(1)
    controllers.format(2)
    controllers.format(3, "9vBjBHtWSY21OMUKZWjcAA")
    for node_id in controllers.ports:
        controllers.start(node_id)
    leader = controllers.wait_for_leader()
    assert leader.leader_id in (1, 2)
    stranger = controllers.running[3]
    wait_until(lambda: "belongs to another cluster" in stranger.output, what="the message")


def test_a_controller_that_is_no_voter_or_not_formatted_does_not_start(controllers: Controllers) -> None:
    process = controllers.start(1)
    assert process.wait() == 1
    assert "is not formatted; run kafka-storage format" in process.output
    controllers.format(1)
    text = controllers.file_of(1).read_text().replace("controller.quorum.voters=1@", "controller.quorum.voters=7@")
    controllers.file_of(1).write_text(text)
    process = controllers.start(1)
    assert process.wait() == 1
    assert "controller.quorum.voters does not name node 1" in process.output
    assert "Traceback" not in process.output


def test_a_broker_that_is_one_of_several_controllers_does_not_format_itself(controllers: Controllers) -> None:
    """Each of three would be a cluster of its own."""
    file = controllers.file_of(1)
    text = file.read_text().replace(
        "process.roles=controller", "process.roles=broker,controller\nmoldau.auto.format=true"
    )
    file.write_text(text.replace("listeners=CONTROLLER", "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER"))
    process = controllers.start(1)
    assert process.wait() == 1
    assert "is not formatted, and this node is one of a cluster" in process.output
    assert "Traceback" not in process.output
    assert not (controllers.folder / "data1").exists()
