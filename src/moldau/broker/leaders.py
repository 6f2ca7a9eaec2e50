"""Leadership: errors for requests to the wrong broker, and endpoints of leaders. Start at
`leader_error`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from moldau.core.errors import ErrorCode
from moldau.protocol.hot_fields import NodeEndpoint

if TYPE_CHECKING:
    from moldau.broker.partition import Partition
    from moldau.controller.image import MetadataImage

__all__ = ["leader_endpoints", "leader_error"]

ANY_EPOCH = -1


def leader_error(partition: Partition | None, current_leader_epoch: int = ANY_EPOCH) -> ErrorCode | None:
    """Return the error if this broker cannot answer for a partition, given the leader epoch the client sent."""
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition.log.offline_error is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if not partition.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if 0 <= current_leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if current_leader_epoch > partition.leader_epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return None


def leader_endpoints(image: MetadataImage, node_ids: Iterable[int], listener_name: str) -> list[NodeEndpoint]:
    """Return the endpoints of these brokers on the client's listener; unknown brokers are left out."""
    endpoints = []
    for node_id in sorted(node_ids):
        broker = image.brokers.get(node_id)
        endpoint = broker.endpoints.get(listener_name) if broker is not None else None
        if broker is not None and endpoint is not None:
            endpoints.append(NodeEndpoint(node_id, endpoint.host, endpoint.port, broker.rack))
    return endpoints
