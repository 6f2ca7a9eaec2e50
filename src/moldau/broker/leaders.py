"""Leadership: errors for requests to the wrong broker, and endpoints of leaders. Start at
`leader_error`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from moldau.core.errors import ErrorCode
from moldau.protocol.hot_fields import NodeEndpoint

if TYPE_CHECKING:
    from moldau.broker.partition import Partition, Topic
    from moldau.broker.partitions import Partitions
    from moldau.controller.image import MetadataImage
    from moldau.core.ids import TopicPartition

__all__ = ["leader_endpoints", "leader_error", "leader_error_at", "missing_error"]

ANY_EPOCH = -1


def leader_error(
    partition: Partition, current_leader_epoch: int = ANY_EPOCH, *, is_follower_enough: bool = False
) -> ErrorCode | None:
    """Return the error if this broker cannot answer for a partition, given the leader epoch the client sent."""
    if partition.log.offline_error is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if not partition.is_leader and not (is_follower_enough and partition.leader_id >= 0):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if 0 <= current_leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if current_leader_epoch > partition.leader_epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return None


def missing_error(topic: Topic | None, number: int) -> ErrorCode:
    """The error for a partition without a replica here: whether it is on other brokers, or nowhere."""
    is_elsewhere = topic is not None and 0 <= number < topic.partition_count
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if is_elsewhere else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def leader_error_at(
    partitions: Partitions, topic_partition: TopicPartition, current_leader_epoch: int = ANY_EPOCH
) -> ErrorCode | None:
    """`leader_error` of a partition by its name."""
    partition = partitions.get(topic_partition)
    if partition is None:
        return missing_error(partitions.topic(topic_partition.topic), topic_partition.partition)
    return leader_error(partition, current_leader_epoch)


def leader_endpoints(image: MetadataImage, node_ids: Iterable[int], listener_name: str) -> list[NodeEndpoint]:
    """Return the endpoints of these brokers on the client's listener; unknown brokers are left out."""
    endpoints = []
    for node_id in sorted(node_ids):
        broker = image.brokers.get(node_id)
        endpoint = broker.endpoints.get(listener_name) if broker is not None else None
        if broker is not None and endpoint is not None:
            endpoints.append(NodeEndpoint(node_id, endpoint.host, endpoint.port, broker.rack))
    return endpoints
