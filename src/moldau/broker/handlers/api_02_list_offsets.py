"""ListOffsets (2): the offset at the start, at the end, or at a timestamp.

    versions 1 to 11: v2 isolation level, v4 leader epochs, v7 newest timestamp, v8 earliest local, v9 latest tiered,
    v10 timeout, v11 earliest pending upload

Timestamps are looked up in a thread, since indexes and batches may have to be read from disk. Start at `handle`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable
from enum import IntEnum

from moldau.broker.context import Broker, RequestContext
from moldau.broker.leaders import leader_error_at
from moldau.broker.partition import Partition
from moldau.core.errors import ErrorCode, MoldauError
from moldau.core.ids import TopicPartition
from moldau.protocol.messages import Message

__all__ = ["handle"]


class Special(IntEnum):
    """Negative timestamps with a special meaning."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


FIRST_VERSION = {
    Special.LATEST: 1,
    Special.EARLIEST: 1,
    Special.MAX_TIMESTAMP: 7,
    Special.EARLIEST_LOCAL: 8,
    Special.LATEST_TIERED: 9,
    Special.EARLIEST_PENDING_UPLOAD: 11,
}
LOOKED_UP_IN_MEMORY = frozenset(Special) - {Special.MAX_TIMESTAMP}
DEBUG_REPLICA_ID = -2


def handle(request: Message, call: RequestContext, broker: Broker) -> Message | Awaitable[Message]:
    asked = Counter((topic.name, one.partition_index) for topic in request.topics for one in topic.partitions)
    is_quick = all(one.timestamp in LOOKED_UP_IN_MEMORY for topic in request.topics for one in topic.partitions)

    def answer() -> Message:
        return Message(
            topics=[
                Message(
                    name=topic.name,
                    partitions=[
                        Message(partition_index=one.partition_index, error_code=ErrorCode.INVALID_REQUEST)
                        if asked[topic.name, one.partition_index] > 1
                        else _partition(request, call, broker, topic.name, one)
                        for one in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return answer() if is_quick else broker.data_plane.cold_reads.run(answer)


def _partition(request: Message, call: RequestContext, broker: Broker, topic: str, wanted: Message) -> Message:
    index = wanted.partition_index
    partition = broker.partitions.get(TopicPartition(topic, index))
    error = leader_error_at(broker.partitions, TopicPartition(topic, index), wanted.current_leader_epoch)
    if error is not None or partition is None:
        return Message(partition_index=index, error_code=error)
    if wanted.timestamp < 0 and call.api_version < FIRST_VERSION.get(wanted.timestamp, 1 << 15):
        return Message(partition_index=index, error_code=ErrorCode.UNSUPPORTED_VERSION)
    try:
        timestamp, offset, leader_epoch = _look_up(partition, wanted.timestamp, _visible_end(partition, request))
    except MoldauError as failure:
        return Message(partition_index=index, error_code=failure.code)
    return Message(partition_index=index, error_code=0, timestamp=timestamp, offset=offset, leader_epoch=leader_epoch)


def _visible_end(partition: Partition, request: Message) -> int:
    """The end offset visible to this reader; brokers and debug consumers see the whole log."""
    if request.replica_id == DEBUG_REPLICA_ID:
        return partition.log.log_end_offset
    return partition.fetchable_end(request.isolation_level, request.replica_id)


def _look_up(partition: Partition, timestamp: int, bound: int) -> tuple[int, int, int]:
    """Timestamp, offset and leader epoch; offset -1 if nothing was found."""
    log = partition.log
    nothing = (-1, -1, -1)
    log.check_online()
    if timestamp == Special.LATEST:
        return -1, bound, partition.leader_epoch
    if timestamp in (Special.EARLIEST, Special.EARLIEST_LOCAL):
        return -1, log.log_start_offset, log.leader_epochs.epoch_of(log.log_start_offset)
    if timestamp in (Special.LATEST_TIERED, Special.EARLIEST_PENDING_UPLOAD):
        return nothing
    found = log.max_timestamp_offset() if timestamp == Special.MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    return nothing if found is None or found.offset >= bound else found
