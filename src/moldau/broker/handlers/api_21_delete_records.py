"""DeleteRecords (21): move the start of a log forward and so delete the records below it.

    versions 0 to 2, all alike

Offset -1 means everything up to the high watermark. Segments entirely below the new start are deleted by the next
retention run. Start at `handle`.
"""

from __future__ import annotations

from moldau.broker.context import Broker, RequestContext
from moldau.broker.leaders import leader_error_at
from moldau.core.errors import ErrorCode, MoldauError
from moldau.core.ids import TopicPartition
from moldau.protocol.messages import Message

__all__ = ["handle"]

UP_TO_HIGH_WATERMARK = -1
UNKNOWN_LOW_WATERMARK = -1


async def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    """Delete records after all appends queued before the request, so that the log end is the one at its arrival."""
    return await broker.data_plane.slow_appends.apply(lambda: _delete_all(broker, request))


def _delete_all(broker: Broker, request: Message) -> Message:
    return Message(
        topics=[
            Message(
                name=topic.name,
                partitions=[
                    _delete(broker, TopicPartition(topic.name, one.partition_index), one.offset)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _delete(broker: Broker, topic_partition: TopicPartition, offset: int) -> Message:
    try:
        code, low_watermark = _delete_up_to(broker, topic_partition, offset)
    except MoldauError as error:
        code, low_watermark = error.code, UNKNOWN_LOW_WATERMARK
    return Message(partition_index=topic_partition.partition, low_watermark=low_watermark, error_code=code)


def _delete_up_to(broker: Broker, topic_partition: TopicPartition, offset: int) -> tuple[ErrorCode, int]:
    partition = broker.partitions.get(topic_partition)
    error = leader_error_at(broker.partitions, topic_partition)
    if error is not None or partition is None:
        return error or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_LOW_WATERMARK
    log = partition.log
    log.check_online()
    if not partition.topic.config.is_deleted:
        return ErrorCode.POLICY_VIOLATION, UNKNOWN_LOW_WATERMARK
    target = log.high_watermark if offset == UP_TO_HIGH_WATERMARK else offset
    if target < 0 or target > log.high_watermark:
        return ErrorCode.OFFSET_OUT_OF_RANGE, UNKNOWN_LOW_WATERMARK
    log.advance_log_start(target)
    return ErrorCode.NONE, log.log_start_offset
