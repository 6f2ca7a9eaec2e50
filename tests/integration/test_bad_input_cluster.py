"""What must not join or change a cluster is refused with a clear line, and nothing is lost."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import NewTopic
from tests.free_ports import free_port
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
