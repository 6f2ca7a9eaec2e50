"""How topics and brokers appear to clients in Metadata and similar responses.

Shared by the handlers of Metadata, DescribeTopicPartitions and DescribeCluster. Pure. Start at `partition_view`.
"""

from __future__ import annotations

import socket
from collections.abc import Collection, Iterable
from typing import NamedTuple

from moldau.broker.context import Broker, RequestContext
from moldau.controller.image import NO_LEADER, BrokerImage, Endpoint, MetadataImage, PartitionImage
from moldau.core.acls import ResourceType, operations_bitfield
from moldau.core.errors import ErrorCode

__all__ = [
    "CLUSTER_OPERATIONS",
    "GROUP_OPERATIONS",
    "NOT_ASKED",
    "TOPIC_OPERATIONS",
    "PartitionView",
    "alive_broker",
    "partition_view",
    "reachable_brokers",
]

NOT_ASKED = -(2**31)
"""The bitfield of operations if the request did not ask for it."""

TOPIC_OPERATIONS = operations_bitfield(ResourceType.TOPIC)
"""Without an authorizer every client may perform every topic operation."""
CLUSTER_OPERATIONS = operations_bitfield(ResourceType.CLUSTER)
GROUP_OPERATIONS = operations_bitfield(ResourceType.GROUP)


class PartitionView(NamedTuple):
    error: ErrorCode
    leader: int
    offline_replicas: list[int]


def partition_view(
    image: MetadataImage, partition: PartitionImage, listener: str, lost: Collection[int] = ()
) -> PartitionView:
    """The leader that a client on this listener can reach; `lost` are brokers whose replica cannot be used."""
    offline = [node_id for node_id in partition.replicas if node_id in lost or not image.is_alive(node_id)]
    if partition.leader == NO_LEADER or partition.leader in lost or not image.is_alive(partition.leader):
        return PartitionView(ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER, offline)
    if listener not in image.brokers[partition.leader].endpoints:
        return PartitionView(ErrorCode.LISTENER_NOT_FOUND, NO_LEADER, offline)
    return PartitionView(ErrorCode.NONE, partition.leader, offline)


def reachable_brokers(
    brokers: Iterable[BrokerImage], call: RequestContext, this_broker: Broker
) -> list[tuple[BrokerImage, Endpoint]]:
    """Return the brokers that have the caller's listener, with their address on it.

    A listener without an advertised host is advertised under the address by which the caller reached this broker, which
    works through loopback and through the network. The same holds for other brokers of this machine: each must tell
    the same addresses, or clients would leave a connection with every answer.
    """
    name = call.listener_name
    own = this_broker.listeners.get(name)
    here = socket.gethostname() if own is not None and not own.advertised_host else None
    return [
        (one, one.endpoints[name]._replace(host=call.local_host))
        if here is not None and (one.node_id == this_broker.node_id or one.endpoints[name].host == here)
        else (one, one.endpoints[name])
        for one in brokers
        if name in one.endpoints
    ]


def alive_broker(image: MetadataImage, own_id: int) -> int:
    """The controller id for clients: a live broker, since all forward admin requests, and this one if it can be: the
    client has reached it."""
    if image.is_alive(own_id):
        return own_id
    return next((one.node_id for one in image.alive_brokers()), -1)
