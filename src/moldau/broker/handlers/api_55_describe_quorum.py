"""DescribeQuorum (55), versions 0-2: the voters and the leader of the metadata quorum, and the offset of each.

v1 times of the last fetch, v2 directory ids and addresses. Start at `handle`.
"""

from __future__ import annotations

from moldau.broker.context import Broker, RequestContext
from moldau.controller.metadata_log import METADATA_PARTITION
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]

UNKNOWN_TIME = -1


def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    topics = [
        Message(
            topic_name=topic.topic_name,
            partitions=[
                _partition(topic.topic_name, partition.partition_index, broker) for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return Message(error_code=ErrorCode.NONE, error_message=None, topics=topics, nodes=[_node(broker)])


def _partition(topic: str, number: int, broker: Broker) -> Message:
    if (topic, number) != METADATA_PARTITION:
        return Message(
            partition_index=number,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message="Only the metadata partition has a quorum.",
            leader_id=-1,
            leader_epoch=-1,
            high_watermark=-1,
            current_voters=[],
            observers=[],
        )
    quorum = broker.controller.quorum
    now_ms = broker.clock.now_ms()
    return Message(
        partition_index=number,
        error_code=ErrorCode.NONE,
        error_message=None,
        leader_id=broker.node_id,
        leader_epoch=quorum.epoch,
        high_watermark=broker.image.offset + 1,
        current_voters=[
            Message(
                replica_id=broker.node_id,
                replica_directory_id=None,
                log_end_offset=quorum.next_offset,
                last_fetch_timestamp=now_ms,
                last_caught_up_timestamp=now_ms,
            )
        ],
        observers=[],
    )


def _node(broker: Broker) -> Message:
    """The quorum node, without listeners: a quorum inside the broker has no controller listener."""
    return Message(node_id=broker.node_id, listeners=[])
