"""What clients are told of partitions whose leader or replicas are away."""

from __future__ import annotations

import uuid

import pytest

from moldau.broker.metadata.topic_answers import Form, told_partition
from moldau.broker.metadata.topic_views import alive_broker, partition_view
from moldau.controller.image import BrokerImage, Endpoint, MetadataImage, PartitionImage, TopicImage
from moldau.core.errors import ErrorCode


def broker(node_id: int, listener: str = "PLAINTEXT", *, fenced: bool = False) -> BrokerImage:
    return BrokerImage(node_id, 1, None, {listener: Endpoint(listener, "h", 9092)}, is_fenced=fenced)


def image(*brokers: BrokerImage, leader: int = 1) -> MetadataImage:
    topic = TopicImage("t", uuid.uuid4(), {0: PartitionImage((1, 2), (1,), leader)})
    return MetadataImage(brokers={one.node_id: one for one in brokers}, topics={"t": topic})


def seen(version: int, cluster: MetadataImage, lost: tuple[int, ...] = ()) -> tuple[int, int, list[int]]:
    form = Form(version, "PLAINTEXT", has_operations=False)
    partition = told_partition(cluster, form, 0, cluster.topics["t"].partitions[0], lost)
    return partition.error_code, partition.leader_id, list(partition.offline_replicas)


def test_a_reachable_leader_is_told() -> None:
    cluster = image(broker(1), broker(2))
    assert partition_view(cluster, cluster.topics["t"].partitions[0], "PLAINTEXT") == (ErrorCode.NONE, 1, [])


@pytest.mark.parametrize(
    "cluster", [image(broker(1), broker(2), leader=-1), image(broker(1, fenced=True), broker(2)), image(broker(2))]
)
def test_without_a_leader_clients_are_asked_to_wait(cluster: MetadataImage) -> None:
    assert seen(12, cluster)[:2] == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


def test_a_leader_whose_log_cannot_be_used_is_no_leader() -> None:
    cluster = image(broker(1), broker(2))
    assert seen(12, cluster, lost=(1,)) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [1])
    assert seen(12, cluster, lost=(2,)) == (ErrorCode.NONE, 1, [2])


def test_a_leader_without_the_clients_listener_is_told_from_version_6_on() -> None:
    cluster = image(broker(1, "INSIDE"), broker(2))
    assert seen(6, cluster)[0] == ErrorCode.LISTENER_NOT_FOUND
    assert seen(5, cluster)[0] == ErrorCode.LEADER_NOT_AVAILABLE


def test_a_missing_replica_is_an_error_in_version_0_only() -> None:
    cluster = image(broker(1), broker(2, fenced=True))
    assert seen(0, cluster) == (ErrorCode.REPLICA_NOT_AVAILABLE, 1, [2])
    assert seen(5, cluster) == (ErrorCode.NONE, 1, [2])


def test_a_cluster_without_brokers_has_no_controller_to_name() -> None:
    assert alive_broker(image(broker(1, fenced=True)), 1) == -1
    assert alive_broker(image(broker(1), broker(2, fenced=True)), 2) == 1
