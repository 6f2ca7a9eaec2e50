"""TxnOffsetCommit (28): commit offsets as part of a transaction; they take effect when it is committed.

    versions 0 to 5: v3 sends generation and member, which are checked like those of OffsetCommit; v4 supports
    TRANSACTION_ABORTABLE; v5 adds the group's partition to the transaction implicitly (KIP-890)

It is sent to the group's coordinator, which asks the transaction's coordinator. Start at `handle`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from moldau.broker.context import Broker, RequestContext
from moldau.broker.coordination.transaction_checks import Writer
from moldau.coordinator.group.group_core import CommitRequest
from moldau.coordinator.group.offsets import OffsetToCommit
from moldau.coordinator.runtime.outcome import Producer
from moldau.coordinator.runtime.shard import coordinator_error
from moldau.coordinator.transaction.core import TransactionSettings
from moldau.coordinator.transaction.requests import Owner
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.protocol.messages import Message

__all__ = ["handle"]

FIRST_WITH_LOADING = 2
FIRST_WITH_MEMBERS = 3
FIRST_WITH_ABORTABLE = 4
FIRST_THAT_JOINS = 5

Errors = dict[TopicPartition, ErrorCode]


async def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    asked = [TopicPartition(topic.name, one.partition_index) for topic in request.topics for one in topic.partitions]
    errors: Errors = dict.fromkeys(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    offsets = _offsets(request, broker)
    if offsets:
        codes = await _commit(request, call, offsets, broker)
        for place, offset in enumerate(offsets):
            code = codes if isinstance(codes, ErrorCode) else codes[place]
            errors[TopicPartition(offset.topic, offset.partition)] = _code_for_version(code, call.api_version)
    return Message(
        topics=[
            Message(
                name=topic.name,
                partitions=[
                    Message(
                        partition_index=one.partition_index,
                        error_code=errors[TopicPartition(topic.name, one.partition_index)],
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _offsets(request: Message, broker: Broker) -> list[OffsetToCommit]:
    """The offsets of partitions that exist."""
    return [
        OffsetToCommit(
            topic.name,
            one.partition_index,
            one.committed_offset,
            one.committed_leader_epoch,
            one.committed_metadata or "",
        )
        for topic in request.topics
        for one in topic.partitions
        if broker.image.partition(topic.name, one.partition_index) is not None
    ]


async def _commit(
    request: Message, call: RequestContext, offsets: list[OffsetToCommit], broker: Broker
) -> ErrorCode | list[ErrorCode]:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    groups = broker.coordinators.groups
    number = groups.partition_of(request.group_id)
    if number is None:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    code = await _join_or_verify(request, call.api_version, TopicPartition(groups.topic.name, number), broker)
    if code is not ErrorCode.NONE:
        return coordinator_error(code)
    has_member = call.api_version >= FIRST_WITH_MEMBERS
    commit = CommitRequest(
        group_id=request.group_id,
        member_id=request.member_id if has_member else "",
        group_instance_id=request.group_instance_id if has_member else None,
        epoch=request.generation_id if has_member else -1,
        offsets=tuple(offsets),
        api_version=call.api_version,
        producer=Producer(request.producer_id, request.producer_epoch),
    )
    reply: Any = groups.ask(commit.group_id, lambda core, ticket, now: core.commit(commit, ticket, now))
    codes: ErrorCode | list[ErrorCode] = await reply if isinstance(reply, asyncio.Future) else reply
    return codes


async def _join_or_verify(request: Message, version: int, partition: TopicPartition, broker: Broker) -> ErrorCode:
    """Return the error if offsets may not be written to this partition in this transaction now."""
    writer = Writer(
        request.transactional_id,
        Owner(request.producer_id, request.producer_epoch),
        knows_abortable=version >= FIRST_WITH_ABORTABLE,
        joins=version >= FIRST_THAT_JOINS,
    )
    checks = broker.coordinators.transaction_checks
    if writer.joins:
        added: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        checks.join_then(writer, [partition], lambda code: None if added.done() else added.set_result(code))
        code = await added
        if code is not ErrorCode.NONE:
            return code
        if broker.coordinators.transactions.coordinator_elsewhere(writer.transactional_id) is not None:
            return _epoch_error(partition, writer.owner, broker)
    elif not broker.config.section(TransactionSettings).is_verified:
        return _epoch_error(partition, writer.owner, broker)
    elif broker.coordinators.transactions.coordinator_elsewhere(writer.transactional_id) is not None:
        code = await checks.verify_elsewhere(writer, partition)
        return _epoch_error(partition, writer.owner, broker) if code is ErrorCode.NONE else code
    return checks.refusals(writer, [partition]).get(partition, _epoch_error(partition, writer.owner, broker))


def _epoch_error(partition: TopicPartition, owner: Owner, broker: Broker) -> ErrorCode:
    led = broker.partitions.get(partition)
    known = None if led is None else led.log.producers.get(owner.producer_id)
    is_behind = known is not None and owner.producer_epoch < known.producer_epoch
    return ErrorCode.INVALID_PRODUCER_EPOCH if is_behind else ErrorCode.NONE


def _code_for_version(code: ErrorCode, version: int) -> ErrorCode:
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < FIRST_WITH_LOADING:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code
