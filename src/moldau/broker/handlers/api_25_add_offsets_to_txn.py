"""AddOffsetsToTxn (25): add a group's partition of `__consumer_offsets` to a transaction.

    versions 0 to 4: v2 returns PRODUCER_FENCED where older versions return INVALID_PRODUCER_EPOCH

The offsets themselves follow in TxnOffsetCommit, which is sent to the group's coordinator. Start at `handle`.
"""

from __future__ import annotations

from moldau.broker.context import Broker, RequestContext
from moldau.broker.coordination.transactions import version_of
from moldau.coordinator.transaction.requests import Owner
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.protocol.messages import Message

__all__ = ["handle"]

FIRST_WITH_FENCED = 2


async def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    code = await _add_group_partition(request, broker)
    if code is ErrorCode.PRODUCER_FENCED and call.api_version < FIRST_WITH_FENCED:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return Message(error_code=code)


async def _add_group_partition(request: Message, broker: Broker) -> ErrorCode:
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    groups = broker.coordinators.groups
    if not await groups.ensure_topic() or (number := groups.partition_of(request.group_id)) is None:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return await broker.coordinators.transactions.add_partitions(
        request.transactional_id,
        Owner(request.producer_id, request.producer_epoch),
        [TopicPartition(groups.topic.name, number)],
        version_of(False),
    )
