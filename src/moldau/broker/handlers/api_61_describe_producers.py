"""DescribeProducers (61), version 0: the idempotent and transactional producers in a partition's state.

Start at `handle`.
"""

from __future__ import annotations

from moldau.broker.context import Broker, RequestContext
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.log.partition_log import PartitionLog
from moldau.protocol.messages import Message

__all__ = ["handle"]

NO_TRANSACTION = -1


def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    return Message(
        topics=[
            Message(
                name=topic.name,
                partitions=[_partition(TopicPartition(topic.name, one), broker) for one in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _partition(topic_partition: TopicPartition, broker: Broker) -> Message:
    error, log = _led_log(topic_partition, broker)
    return Message(
        partition_index=topic_partition.partition,
        error_code=error,
        error_message=None,
        active_producers=_producers(log) if log is not None else [],
    )


def _led_log(topic_partition: TopicPartition, broker: Broker) -> tuple[ErrorCode, PartitionLog | None]:
    partition = broker.partitions.get(topic_partition)
    if partition is None:
        known = broker.image.partition(*topic_partition) is not None
        return (ErrorCode.NOT_LEADER_OR_FOLLOWER if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), None
    if not partition.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER, None
    if partition.log.offline_error is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR, None
    return ErrorCode.NONE, partition.log


def _producers(log: PartitionLog) -> list[Message]:
    return [
        Message(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.batches[-1].timestamp if producer.batches else producer.last_append_ms,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=NO_TRANSACTION if producer.txn_first_offset is None else producer.txn_first_offset,
        )
        for producer in log.producers
    ]
