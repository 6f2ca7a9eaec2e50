"""What must not join or change a cluster is refused with a clear line, and nothing is lost."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import NewTopic
from tests.free_ports import free_port
from tests.integration.cli_commands import run_line
from tests.integration.cluster import Cluster, eventually
from tests.integration.killable import KillableProcess

from moldau.client.replica_admin import describe_quorum
from moldau.client.wire import WireClient
from moldau.core.errors import ErrorCode
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        cluster.create_topic("kept", 2, 3)
        cluster.wait_until_in_sync("kept")
        yield cluster


def test_the_folder_of_another_broker_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    copied = tmp_path / "data"
    shutil.copytree(cluster.folder / "data1", copied)
    voters = ",".join(f"{node}@127.0.0.1:{port}" for node, port in cluster.controller_ports.items())
    file = tmp_path / "server.properties"
    file.write_text(
        f"process.roles=broker\nnode.id=7\nlisteners=PLAINTEXT://127.0.0.1:{free_port()}\n"
        f"controller.listener.names=CONTROLLER\ncontroller.quorum.voters={voters}\nlog.dirs={copied}\n"
    )
    process = KillableProcess("moldau.cli.server.start", [str(file)], tmp_path / "output")
    meta = copied / "meta.properties"
    for words in ("node.id is 1, but the configuration says 7", "or another broker's; do not copy log.dirs"):
        process.spawn()
        eventually(lambda: process.exit_code is not None, "it is refused")
        assert words in process.last_words
        assert "Traceback" not in process.last_words
        meta.write_text(meta.read_text().replace("node.id=1", "node.id=7"))
    assert cluster.brokers() == {1, 2, 3}
    assert not list(copied.glob("*-stray"))


def test_a_change_of_replicas_with_an_old_epoch_is_refused(cluster: Cluster) -> None:
    with WireClient("127.0.0.1", cluster.ports[1], 10) as broker:
        leader = describe_quorum(broker).leader_id
    before = cluster.isrs("kept")
    change = Message(broker_id=2, broker_epoch=0, topics=[])
    with WireClient("127.0.0.1", cluster.controller_ports[leader], 10) as controller:
        assert controller.send(ApiKey.ALTER_PARTITION, change).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert cluster.isrs("kept") == before


@pytest.mark.parametrize(
    ("leader_epoch", "partition_epoch", "refused"),
    [
        (-1, 0, ErrorCode.FENCED_LEADER_EPOCH),
        (99, 0, ErrorCode.NOT_CONTROLLER),
        (0, -1, ErrorCode.INVALID_UPDATE_VERSION),
        (0, 99, ErrorCode.NOT_CONTROLLER),
    ],
)
def test_a_leader_of_another_epoch_changes_no_isr(
    cluster: Cluster, leader_epoch: int, partition_epoch: int, refused: ErrorCode
) -> None:
    cluster.create_topic("epochs", 1, 3)
    cluster.wait_until_in_sync("epochs")
    leader = cluster.leaders("epochs")[0]
    broker_epoch = int(re.findall(r"registered as broker \d with epoch (\d+)", cluster.output_of(leader))[-1])
    with WireClient("127.0.0.1", cluster.ports[leader], 10) as broker:
        topic = broker.send(ApiKey.METADATA, Message(topics=[Message(name="epochs", topic_id=None)])).topics[0]
        active = describe_quorum(broker).leader_id
    change = Message(
        partition_index=0,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        new_isr_with_epochs=[Message(broker_id=leader, broker_epoch=-1)],
        leader_recovery_state=0,
    )
    request = Message(
        broker_id=leader, broker_epoch=broker_epoch, topics=[Message(topic_id=topic.topic_id, partitions=[change])]
    )
    with WireClient("127.0.0.1", cluster.controller_ports[active], 10) as controller:
        answer = controller.send(ApiKey.ALTER_PARTITION, request)
    assert answer.error_code == ErrorCode.NONE
    assert answer.topics[0].partitions[0].error_code == refused
    assert cluster.isrs("epochs") == {0: [1, 2, 3]}


def test_a_broker_whose_clock_is_an_hour_ahead_is_one_like_the_others(tmp_path: Path) -> None:
    with Cluster(tmp_path, modules={3: "tests.integration.hour_ahead"}) as cluster:
        cluster.create_topic("hours", 3, 3, min_insync_replicas="2")
        cluster.wait_until_in_sync("hours")
        write(cluster, "hours", b"before")
        cluster.kill(3)
        eventually(lambda: 3 not in cluster.leaders("hours").values() and len(cluster.leaders("hours")) == 3, "leaders")
        write(cluster, "hours", b"without")
        cluster.spawn(3)
        cluster.wait_for_brokers(3)
        cluster.wait_until_in_sync("hours")
        cluster.kill(1)
        eventually(lambda: 1 not in cluster.leaders("hours").values() and len(cluster.leaders("hours")) == 3, "leaders")
        write(cluster, "hours", b"after")
        read = f"kafka-console-consumer --bootstrap-server {cluster.bootstrap_servers} --topic hours --from-beginning"
        done = run_line(f"{read} --max-messages 9 --timeout-ms 30000")
        assert sorted(done.stdout.split()) == sorted(["before", "without", "after"] * 3)
        assert "broker 3 has sent no heartbeat" not in cluster.output_of(3)


def write(cluster: Cluster, topic: str, value: bytes) -> None:
    """A record to each of three partitions, acknowledged by all in sync."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "log_level": 0})
    outcomes: list[object] = []
    for number in range(3):
        producer.produce(topic, value, partition=number, on_delivery=lambda error, _: outcomes.append(error))
    producer.flush(60)
    assert outcomes == [None] * 3


def test_a_damaged_snapshot_is_passed_over(cluster: Cluster) -> None:
    assert cluster.terminate(2) == 0
    folder = cluster.folder / "data2" / "__cluster_metadata-0"
    (folder / "00000000000000000020-0000000001.checkpoint").write_bytes(b"\x00" * 100)
    cluster.spawn(2)
    cluster.wait_for_brokers(3)
    cluster.wait_until_in_sync("kept")
    assert "Traceback" not in cluster.output_of(2)


def test_a_quorum_of_two_with_one_down_refuses_changes_and_serves_what_it_has(tmp_path: Path) -> None:
    with Cluster(tmp_path, count=2) as cluster:
        cluster.create_topic("two", 1, 2)
        cluster.wait_until_in_sync("two")
        led = cluster.leaders("two")[0]
        cluster.kill(3 - led)
        with pytest.raises(KafkaException):
            cluster.admin().create_topics([NewTopic("never", 1, 1)], request_timeout=3)["never"].result(20)
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "1", "log_level": 0})
        outcomes: list[object] = []
        producer.produce("two", b"x", on_delivery=lambda error, _: outcomes.append(error))
        producer.flush(30)
        assert outcomes == [None]
        cluster.spawn(3 - led)
        cluster.wait_for_brokers(2)
        cluster.wait_until_in_sync("two")
        cluster.create_topic("later", 1, 2)
