"""OffsetForLeaderEpoch (23): the end offset of an epoch, so that a reader can detect that the log was truncated.

    versions 2 to 4: v2 current leader epoch, v3 replica id, v4 flexible

Start at `handle`.
"""

from __future__ import annotations

from moldau.broker.context import Broker, RequestContext
from moldau.broker.leaders import leader_error_at
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.protocol.messages import Message

__all__ = ["handle"]

UNKNOWN = (-1, -1)


def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    return Message(
        topics=[
            Message(
                topic=topic.topic,
                partitions=[
                    _partition(broker, TopicPartition(topic.topic, one.partition), one) for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _partition(broker: Broker, topic_partition: TopicPartition, wanted: Message) -> Message:
    partition = broker.partitions.get(topic_partition)
    error = leader_error_at(broker.partitions, topic_partition, wanted.current_leader_epoch)
    leader_epoch, end_offset = UNKNOWN
    if error is None and partition is not None and wanted.leader_epoch <= partition.leader_epoch:
        leader_epoch, end_offset = partition.log.end_offset_for_epoch(wanted.leader_epoch)
    return Message(
        partition=topic_partition.partition,
        error_code=error or ErrorCode.NONE,
        leader_epoch=leader_epoch,
        end_offset=end_offset,
    )
