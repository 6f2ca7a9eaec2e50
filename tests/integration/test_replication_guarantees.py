"""What replication promises, scenario by scenario, on three processes; the numbers are those of docs/operations.md.

Kills of leaders under load, a double of a broker and moves under load are in `test_cluster` and `test_reassignment`;
cuts between controllers, and voters that come and go, in `test_controller_quorum` and the simulation.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from tests.integration.cluster import CLUSTER_ID, Cluster, eventually
from tests.integration.test_cluster import produce, read
from tests.integration.test_reassignment import Load, reassign, replicas

from moldau.cli.storage.command import main as kafka_storage
from moldau.core.errors import ErrorCode

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("promises")) as started:
        yield started


def contents(cluster: Cluster, topic: str) -> dict[int, str]:
    """A digest of the partition's files on each broker that has them."""
    found = {}
    for node in cluster.nodes:
        files = sorted((cluster.folder / f"data{node}" / f"{topic}-0").glob("*.log"))
        if files:
            found[node] = hashlib.sha256(b"".join(one.read_bytes() for one in files)).hexdigest()
    return found


def end_offset(cluster: Cluster, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "ends", "log_level": 0})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)[1])
    finally:
        consumer.close()


def allow_loss(cluster: Cluster, topic: str) -> None:
    entry = ConfigEntry("unclean.leader.election.enable", "true", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = cluster.admin()
    admin.incremental_alter_configs([resource])[resource].result(30)


def test_2_with_acks_1_replicas_are_the_same_after_a_leader_was_killed(cluster: Cluster) -> None:
    cluster.create_topic("ones", 1, 3)
    cluster.wait_until_in_sync("ones")
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": 1, "retries": 0, "log_level": 0})
    for number in range(3000):
        producer.produce("ones", str(number))
        producer.poll(0)
    victim = cluster.leaders("ones")[0]
    cluster.kill(victim)
    producer.flush(30)
    eventually(lambda: cluster.leaders("ones").get(0, victim) != victim, "another leader")
    assert produce(cluster, "ones", range(5000, 5100)) == [None] * 100
    cluster.spawn(victim)
    cluster.wait_until_in_sync("ones")
    assert produce(cluster, "ones", range(6000, 6010)) == [None] * 10
    eventually(
        lambda: len(contents(cluster, "ones")) == 3 and len(set(contents(cluster, "ones").values())) == 1,
        "three equal logs",
    )
    cluster.wait_for_brokers(3)


def test_3_with_too_few_in_sync_acks_1_is_taken_and_shown_when_there_are_enough(cluster: Cluster) -> None:
    cluster.create_topic("hidden", 1, 2, min_insync_replicas="2")
    assert produce(cluster, "hidden", range(10)) == [None] * 10
    leader = cluster.leaders("hidden")[0]
    follower = next(one for one in cluster.isrs("hidden")[0] if one != leader)
    cluster.kill(follower)
    eventually(lambda: cluster.isrs("hidden").get(0) == [leader], "the ISR shrinks")
    assert produce(cluster, "hidden", range(10, 20), acks=1) == [None] * 10
    assert end_offset(cluster, "hidden") == 10
    cluster.spawn(follower)
    eventually(lambda: end_offset(cluster, "hidden") == 20, "what was hidden is shown")
    assert read(cluster, "hidden", 1, 20) == list(range(20))
    cluster.wait_for_brokers(3)


def test_4_a_paused_follower_leaves_the_isr_and_returns(cluster: Cluster) -> None:
    cluster.create_topic("paused", 1, 3)
    cluster.wait_until_in_sync("paused")
    leader = cluster.leaders("paused")[0]
    follower = next(one for one in cluster.nodes if one != leader)
    cluster.process(follower).freeze()
    try:
        eventually(lambda: follower not in cluster.isrs("paused").get(0, [follower]), "it leaves the ISR")
        assert produce(cluster, "paused", range(100)) == [None] * 100
    finally:
        cluster.process(follower).thaw()
    cluster.wait_until_in_sync("paused")
    assert len(set(contents(cluster, "paused").values())) == 1


def test_6_without_those_in_sync_a_topic_waits_and_goes_on_with_loss_when_told_to(cluster: Cluster) -> None:
    cluster.create_topic("waits", 1, 2)
    first, last = cluster.isrs("waits")[0]
    assert produce(cluster, "waits", range(10)) == [None] * 10
    cluster.kill(first)
    eventually(lambda: cluster.isrs("waits").get(0) == [last], "the ISR shrinks")
    assert produce(cluster, "waits", range(10, 20)) == [None] * 10
    cluster.kill(last)
    cluster.spawn(first)
    eventually(lambda: cluster.brokers() == {*cluster.nodes} - {last}, "the broker that was not in sync is back")
    eventually(lambda: not cluster.leaders("waits"), "nobody leads")

    allow_loss(cluster, "waits")
    eventually(lambda: cluster.leaders("waits") == {0: first}, "who has the topic leads, with loss")
    assert produce(cluster, "waits", range(100, 110)) == [None] * 10
    cluster.spawn(last)
    eventually(lambda: cluster.isrs("waits").get(0) == sorted([first, last]), "both are in sync")
    assert read(cluster, "waits", 1, 20) == [*range(10), *range(100, 110)]
    eventually(lambda: len(set(contents(cluster, "waits").values())) == 1, "two equal logs")
    cluster.wait_for_brokers(3)


def test_11_a_rolling_restart_fails_no_write_and_leadership_comes_back(cluster: Cluster) -> None:
    cluster.create_topic("rolled", 3, 3, min_insync_replicas="2")
    cluster.wait_until_in_sync("rolled")
    outcomes = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "log_level": 0})
    sent = 0
    for node in cluster.nodes:
        assert cluster.terminate(node) == 0
        for _ in range(100):
            producer.produce("rolled", str(sent), on_delivery=lambda error, _: outcomes.append(error))
            producer.poll(0)
            sent += 1
        assert producer.flush(60) == 0
        cluster.spawn(node)
        cluster.wait_until_in_sync("rolled")
    assert outcomes == [None] * sent
    assert sorted(read(cluster, "rolled", 3, sent)) == list(range(sent))


def test_12_a_move_is_cancelled_half_way_under_load(cluster: Cluster) -> None:
    cluster.create_topic("undecided", 1, 1)
    home = cluster.leaders("undecided")[0]
    other, away = (one for one in cluster.nodes if one != home)
    cluster.process(away).freeze()
    try:
        with Load(cluster, "undecided") as load:
            eventually(lambda: load.count > 100, "load")
            assert reassign(cluster, "undecided", [other, away], node=home) is ErrorCode.NONE
            eventually(lambda: other in cluster.isrs("undecided").get(0, []), "one of two has arrived")
            assert reassign(cluster, "undecided", None, node=home) is ErrorCode.NONE
            eventually(lambda: replicas(cluster, "undecided") == [home], "the replicas are as before")
            so_far = load.count
            eventually(lambda: load.count > so_far + 100, "writes go on")
    finally:
        cluster.process(away).thaw()
    assert load.failures == []
    assert read(cluster, "undecided", 1, load.count) == list(range(load.count))
    cluster.wait_for_brokers(3)


def test_a_replaced_disk_is_refilled_and_its_broker_leads_again(cluster: Cluster) -> None:
    cluster.create_topic("refilled", 1, 3)
    cluster.wait_until_in_sync("refilled")
    assert produce(cluster, "refilled", range(500)) == [None] * 500
    victim = cluster.leaders("refilled")[0]
    cluster.kill(victim)
    eventually(lambda: victim not in cluster.isrs("refilled").get(0, [victim]), "it leaves the ISR")
    shutil.rmtree(cluster.folder / f"data{victim}")
    assert kafka_storage(["format", "-t", CLUSTER_ID, "-c", str(cluster.file_of(victim))]) == 0
    cluster.spawn(victim)
    cluster.wait_until_in_sync("refilled")
    eventually(lambda: len(set(contents(cluster, "refilled").values())) == 1, "three equal logs")
    assert reassign(cluster, "refilled", [victim], node=victim) is ErrorCode.NONE
    eventually(lambda: cluster.leaders("refilled") == {0: victim}, "it leads from its new disk")
    assert read(cluster, "refilled", 1, 500) == list(range(500))


def test_a_damaged_replica_is_refilled_from_its_leader(cluster: Cluster) -> None:
    cluster.create_topic("damaged", 1, 3)
    cluster.wait_until_in_sync("damaged")
    assert produce(cluster, "damaged", range(500)) == [None] * 500
    follower = next(one for one in cluster.nodes if one != cluster.leaders("damaged")[0])
    cluster.kill(follower)
    (file,) = _segments(cluster, follower, "damaged")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)
    cluster.spawn(follower)
    cluster.wait_until_in_sync("damaged")
    eventually(lambda: len(set(contents(cluster, "damaged").values())) == 1, "three equal logs")
    assert read(cluster, "damaged", 1, 500) == list(range(500))


def _segments(cluster: Cluster, node: int, topic: str) -> list[Path]:
    return sorted((cluster.folder / f"data{node}" / f"{topic}-0").glob("*.log"))


def test_14_of_two_disks_one_fails_and_only_its_partitions_fail_over(tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    with Cluster(tmp_path / "cluster", more_log_dirs={1: bad}) as cluster:
        cluster.create_topic("split", 4, 3)
        cluster.wait_until_in_sync("split")
        assert produce(cluster, "split", range(100)) == [None] * 100
        there = {int(one.name.rpartition("-")[2]): one for one in bad.glob("split-*")}
        assert 0 < len(there) < 4
        cluster.kill(1)
        for folder in there.values():
            folder.rename(f"{folder}.away")
            folder.write_bytes(b"no folder any more")
        cluster.spawn(1)

        def is_apart() -> bool:
            isrs = cluster.isrs("split")
            return len(isrs) == 4 and all((1 in isrs[number]) is (number not in there) for number in range(4))

        eventually(is_apart, "broker 1 is in sync on its good disk only")
        eventually(lambda: "others are to lead it" in cluster.output_of(1), "it has told the controller")
        assert produce(cluster, "split", range(100, 200)) == [None] * 100

        for folder in there.values():
            folder.unlink()
            folder.with_name(f"{folder.name}.away").rename(folder)
        cluster.wait_until_in_sync("split")
        assert sorted(read(cluster, "split", 4, 200)) == list(range(200))
