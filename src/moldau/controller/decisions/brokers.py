"""Brokers: decides from the image alone which records register and unfence a broker.

A broker registers fenced, and is unfenced when it is ready to serve; only then can it be a leader. Every
unfencing starts a new leader epoch on each partition it leads, so that clients detect records lost in a
crash. Start at `registration` and `unfencing`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from moldau.controller.errors import RefusedError
from moldau.controller.features import SUPPORTED
from moldau.controller.image import NO_LEADER, Endpoint, MetadataImage, PartitionImage
from moldau.core.errors import ErrorCode
from moldau.protocol.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)

__all__ = ["BrokerRegistration", "registration", "unfencing", "unregistration"]

UNFENCED = -1


class BrokerRegistration(NamedTuple):
    """The data that a broker registers at startup."""

    node_id: int
    incarnation_id: uuid.UUID
    endpoints: Sequence[Endpoint]
    rack: str | None = None
    log_dirs: Sequence[uuid.UUID] = ()
    previous_epoch: int = -1
    """The epoch under which it last ended in order; -1 if it ended in another way, or this is its first start."""


def registration(broker: BrokerRegistration, offset: int) -> RegisterBrokerRecord:
    """The registration record to be written at `offset`, which becomes the broker's epoch."""
    return RegisterBrokerRecord(
        broker_id=broker.node_id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=offset,
        end_points=tuple(
            BrokerEndpoint(name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol)
            for one in broker.endpoints
        ),
        features=tuple(
            BrokerFeature(name=name, min_supported_version=level.min, max_supported_version=level.max)
            for name, level in SUPPORTED.items()
        ),
        rack=broker.rack,
        fenced=True,
        log_dirs=tuple(broker.log_dirs),
    )


def unregistration(image: MetadataImage, node_id: int) -> UnregisterBrokerRecord:
    """The record that forgets a broker; raises `RefusedError` if it is not known."""
    broker = image.brokers.get(node_id)
    if broker is None:
        raise RefusedError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {node_id} is not currently registered")
    return UnregisterBrokerRecord(broker_id=node_id, broker_epoch=broker.epoch)


def unfencing(image: MetadataImage, node_id: int, broker_epoch: int) -> Iterator[MetadataRecord]:
    """Unfence a broker, and make it the leader of the partitions that it may lead."""
    yield BrokerRegistrationChangeRecord(broker_id=node_id, broker_epoch=broker_epoch, fenced=UNFENCED)
    for topic in image.topics.values():
        for number, partition in topic.partitions.items():
            if _takes_up(partition, node_id):
                yield _election(topic.topic_id, number, partition, node_id)


def _takes_up(partition: PartitionImage, node_id: int) -> bool:
    """Whether the node is the leader, or there is none and it is in the ISR or, if that is empty, in the eligible
    leader replicas (KIP-966)."""
    if partition.leader != NO_LEADER:
        return partition.leader == node_id
    return node_id in partition.isr or (not partition.isr and node_id in partition.eligible_leader_replicas)


def _election(topic_id: uuid.UUID, number: int, partition: PartitionImage, node_id: int) -> PartitionChangeRecord:
    if node_id in partition.isr:
        return PartitionChangeRecord(partition_id=number, topic_id=topic_id, leader=node_id)
    return PartitionChangeRecord(
        partition_id=number,
        topic_id=topic_id,
        leader=node_id,
        isr=(node_id,),
        eligible_leader_replicas=(),
        last_known_elr=(),
    )
