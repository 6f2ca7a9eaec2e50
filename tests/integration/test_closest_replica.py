"""Brokers in three racks: replicas are spread over them, and a consumer reads from the replica of its rack."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.integration.cluster import Cluster, eventually
from tests.integration.test_cluster import produce

from moldau.client.wire import WireClient
from moldau.core.errors import ErrorCode
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

pytestmark = pytest.mark.slow

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("racks"), settings={"replica.selector.class": RACK_AWARE})
    for node in made.nodes:
        with made.file_of(node).open("a") as file:
            file.write(f"broker.rack=rack{min(node, 2)}\n")
    with made as started:
        yield started


def fetch(cluster: Cluster, node: int, topic: str, offset: int, rack: str, *, version: int = 12) -> Message:
    """What a consumer of this rack is answered by a broker."""
    asked = Message(
        partition=0,
        current_leader_epoch=-1,
        fetch_offset=offset,
        last_fetched_epoch=-1,
        log_start_offset=-1,
        partition_max_bytes=1_000_000,
    )
    request = Message(
        replica_id=-1,
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=1_000_000,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[Message(topic=topic, partitions=[asked])],
        forgotten_topics_data=[],
        rack_id=rack,
    )
    with WireClient("127.0.0.1", cluster.ports[node]) as client:
        return client.send(ApiKey.FETCH, request, version).responses[0].partitions[0]


def test_replicas_are_spread_over_racks_first(cluster: Cluster) -> None:
    cluster.create_topic("spread", 6, 2)
    assert all(1 in isr for isr in cluster.isrs("spread").values()), "rack1 has one broker only"


def test_a_leader_names_the_replica_of_the_consumers_rack_and_that_one_answers(cluster: Cluster) -> None:
    cluster.create_topic("near", 1, 3)
    cluster.wait_until_in_sync("near")
    assert produce(cluster, "near", range(10)) == [None] * 10
    leader = cluster.leaders("near")[0]
    here, there = ("rack1", "rack2") if leader == 1 else ("rack2", "rack1")
    near = {"rack1": [1], "rack2": [2, 3]}[there]

    assert fetch(cluster, leader, "near", 0, here).preferred_read_replica == -1
    assert fetch(cluster, leader, "near", 0, "rack9").preferred_read_replica == -1
    eventually(lambda: fetch(cluster, leader, "near", 10, there).preferred_read_replica in near, "it is caught up")
    redirected = fetch(cluster, leader, "near", 0, there)
    assert redirected.preferred_read_replica in near
    assert not redirected.records

    eventually(lambda: fetch(cluster, near[0], "near", 0, there).high_watermark == 10, "it knows what is committed")
    answered = fetch(cluster, near[0], "near", 0, there)
    assert answered.error_code == ErrorCode.NONE
    assert len(answered.records) > 0
    assert fetch(cluster, near[0], "near", 0, "", version=10).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_librdkafka_reads_everything_from_its_rack(cluster: Cluster) -> None:
    cluster.create_topic("read", 3, 3)
    cluster.wait_until_in_sync("read")
    assert produce(cluster, "read", range(300)) == [None] * 300
    for rack in ("rack1", "rack2"):
        consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": f"reader-in-{rack}",
                "auto.offset.reset": "earliest",
                "client.rack": rack,
                "log_level": 0,
            }
        )
        consumer.assign([TopicPartition("read", number, 0) for number in range(3)])
        found: list[int] = []
        deadline = time.monotonic() + 60
        try:
            while len(found) < 300 and time.monotonic() < deadline:
                for one in consumer.consume(100, 0.2):
                    assert one.error() is None
                    found.append(int(one.value() or b""))
        finally:
            consumer.close()
        assert sorted(found) == list(range(300))
