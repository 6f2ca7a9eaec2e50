"""Replicas that move between three brokers under load: new ones fill, old ones leave their brokers' disks."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka import KafkaError, Producer
from tests.integration.cluster import Cluster, eventually
from tests.integration.test_cluster import produce, read

from moldau.client.wire import WireClient
from moldau.core.errors import ErrorCode
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("moving"), settings={"log.segment.delete.delay.ms": "100"}) as started:
        yield started


def reassign(cluster: Cluster, topic: str, target: Sequence[int] | None, *, node: int = 2) -> ErrorCode:
    with WireClient("127.0.0.1", cluster.ports[node]) as client:
        answer = client.send(
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            Message(
                timeout_ms=30_000,
                allow_replication_factor_change=True,
                topics=[
                    Message(
                        name=topic,
                        partitions=[Message(partition_index=0, replicas=None if target is None else list(target))],
                    )
                ],
            ),
        )
        assert answer.error_code == ErrorCode.NONE
        return ErrorCode(answer.responses[0].partitions[0].error_code)


def under_way(cluster: Cluster, topic: str) -> list[tuple[list[int], list[int]]]:
    """What is added and removed, as each broker tells it."""
    found = []
    for port in cluster.ports.values():
        with WireClient("127.0.0.1", port) as client:
            answer = client.send(
                ApiKey.LIST_PARTITION_REASSIGNMENTS,
                Message(timeout_ms=30_000, topics=[Message(name=topic, partition_indexes=[0])]),
            )
            found += [
                (list(one.adding_replicas), list(one.removing_replicas))
                for topic_found in answer.topics
                for one in topic_found.partitions
            ]
    return found


def replicas(cluster: Cluster, topic: str) -> list[int]:
    found = cluster.admin().list_topics(topic, timeout=10).topics[topic].partitions
    return list(found[0].replicas) if found else []


def folders(cluster: Cluster, topic: str) -> set[int]:
    """The brokers that have files of the topic, deleted ones included."""
    return {node for node in cluster.nodes if list((cluster.folder / f"data{node}").glob(f"{topic}-*"))}


class Load:
    """A producer that writes numbers until it is stopped."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.failures: list[KafkaError] = []
        self.count = 0
        self._topic = topic
        self._producer = Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, "log_level": 0}
        )
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._ends.wait(0.002):
            self._producer.produce(self._topic, str(self.count), on_delivery=self._delivered)
            self._producer.poll(0)
            self.count += 1
        self._producer.flush(60)

    def _delivered(self, error: KafkaError | None, _: object) -> None:
        if error is not None:
            self.failures.append(error)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()


def test_a_partition_moves_under_load_and_its_old_broker_forgets_it(cluster: Cluster) -> None:
    cluster.create_topic("moves", 1, 1)
    source = cluster.leaders("moves")[0]
    targets = [one for one in cluster.nodes if one != source]
    assert produce(cluster, "moves", range(-500, 0)) == [None] * 500
    with Load(cluster, "moves") as load:
        eventually(lambda: load.count > 100, "load")
        assert reassign(cluster, "moves", targets) is ErrorCode.NONE
        eventually(lambda: replicas(cluster, "moves") == targets, "the partition has moved")
        eventually(lambda: cluster.isrs("moves")[0] == targets, "both are in sync")
        so_far = load.count
        eventually(lambda: load.count > so_far + 100, "writes go on")
    assert load.failures == []
    assert read(cluster, "moves", 1, 500 + load.count) == list(range(-500, load.count))
    assert under_way(cluster, "moves") == []
    eventually(lambda: folders(cluster, "moves") == set(targets), "the old replica is gone from the disk")


def test_the_replication_factor_is_raised_and_lowered(cluster: Cluster) -> None:
    cluster.create_topic("grows", 1, 1)
    assert produce(cluster, "grows", range(100)) == [None] * 100
    assert reassign(cluster, "grows", [1, 2, 3], node=1) is ErrorCode.NONE
    eventually(lambda: cluster.isrs("grows")[0] == [1, 2, 3], "three replicas")
    assert produce(cluster, "grows", range(100, 200)) == [None] * 100
    assert reassign(cluster, "grows", [3], node=3) is ErrorCode.NONE
    eventually(lambda: cluster.leaders("grows") == {0: 3}, "one replica leads")
    eventually(lambda: folders(cluster, "grows") == {3}, "the others are gone from the disks")
    assert read(cluster, "grows", 1, 200) == list(range(200))
    assert produce(cluster, "grows", range(200, 210)) == [None] * 10


def test_a_reassignment_to_a_broker_that_is_away_waits_and_can_be_cancelled(cluster: Cluster) -> None:
    cluster.create_topic("stays", 1, 1)
    home = cluster.leaders("stays")[0]
    away, other = (one for one in cluster.nodes if one != home)
    assert produce(cluster, "stays", range(50)) == [None] * 50
    cluster.kill(away)
    eventually(lambda: away not in cluster.brokers(), "the broker is fenced")
    try:
        assert reassign(cluster, "stays", [away, other], node=home) is ErrorCode.NONE
        with WireClient("127.0.0.1", cluster.ports[home]) as client:
            answer = client.send(ApiKey.LIST_PARTITION_REASSIGNMENTS, Message(timeout_ms=30_000, topics=None))
        (one,) = answer.topics[0].partitions
        assert (sorted(one.adding_replicas), list(one.removing_replicas)) == (sorted([away, other]), [home])
        assert produce(cluster, "stays", range(50, 100)) == [None] * 50

        assert reassign(cluster, "stays", None, node=home) is ErrorCode.NONE
        eventually(lambda: replicas(cluster, "stays") == [home], "the replicas are as before")
        eventually(lambda: folders(cluster, "stays") == {home}, "the other folder is gone")
        assert reassign(cluster, "stays", None, node=home) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        assert reassign(cluster, "stays", [7], node=home) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    finally:
        cluster.spawn(away)
    cluster.wait_for_brokers(3)
    assert read(cluster, "stays", 1, 100) == list(range(100))


def test_a_throttle_slows_a_move_down_and_not_the_load(cluster: Cluster) -> None:
    cluster.create_topic(
        "slowly",
        1,
        1,
        leader_replication_throttled_replicas="*",
        follower_replication_throttled_replicas="*",
    )
    source = cluster.leaders("slowly")[0]
    target = next(one for one in cluster.nodes if one != source)
    fill(cluster, "slowly", 2_000_000)
    set_rate(cluster, "leader", 400_000)
    began = time.monotonic()
    try:
        assert reassign(cluster, "slowly", [target]) is ErrorCode.NONE
        assert produce(cluster, "slowly", range(10)) == [None] * 10
        assert replicas(cluster, "slowly") != [target], "writes go on meanwhile"
        eventually(lambda: replicas(cluster, "slowly") == [target], "the partition has moved")
    finally:
        set_rate(cluster, "leader", None)
    # The first second's worth, and the batch that uses it up, pass at once.
    assert time.monotonic() - began > 1.5


def fill(cluster: Cluster, topic: str, size: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0, "batch.size": 20_000})
    for number in range(size // 10_000):
        producer.produce(topic, number.to_bytes(4, "big") * 2_500)
    assert producer.flush(60) == 0


def set_rate(cluster: Cluster, side: str, rate: int | None) -> None:
    with WireClient("127.0.0.1", cluster.ports[1]) as client:
        config = Message(
            name=f"{side}.replication.throttled.rate",
            config_operation=0 if rate is not None else 1,
            value=None if rate is None else str(rate),
        )
        answer = client.send(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            Message(resources=[Message(resource_type=4, resource_name="", configs=[config])], validate_only=False),
        )
        assert [one.error_code for one in answer.responses] == [ErrorCode.NONE]
