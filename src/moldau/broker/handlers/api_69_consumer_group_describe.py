"""ConsumerGroupDescribe (69), versions 0-1: state, epochs and members of groups of the consumer protocol.

v1 distinguishes members that still use the classic protocol. Start at `handle`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from moldau.broker.context import Broker, RequestContext
from moldau.broker.coordination.consumer_groups import offers_consumer_protocol, topic_partitions
from moldau.broker.metadata.topic_views import GROUP_OPERATIONS, NOT_ASKED
from moldau.controller.image import MetadataImage
from moldau.coordinator.group.consumer.settings import ConsumerSettings
from moldau.coordinator.group.consumer.views import (
    DescribedConsumer,
    DescribedConsumerGroup,
    described_consumer_group,
)
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1

Reply = DescribedConsumerGroup | ErrorCode | None


def handle(request: Message, call: RequestContext, broker: Broker) -> Message | Awaitable[Message]:
    replies = [_ask(group_id, broker) for group_id in request.group_ids]
    if any(isinstance(reply, asyncio.Future) for reply in replies):
        return _answer_later(replies, request, broker)
    return _answer(replies, request, broker)


def _ask(group_id: str, broker: Broker) -> Any:
    if not offers_consumer_protocol(broker):
        return ErrorCode.UNSUPPORTED_VERSION
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    settings = broker.config.section(ConsumerSettings)
    return broker.coordinators.groups.ask(
        group_id,
        lambda core, ticket, now: core.look(
            lambda it: described_consumer_group(it.groups.get(group_id), settings), ticket
        ),
    )


async def _answer_later(replies: list[Any], request: Message, broker: Broker) -> Message:
    known = [await reply if isinstance(reply, asyncio.Future) else reply for reply in replies]
    return _answer(known, request, broker)


def _answer(replies: list[Reply], request: Message, broker: Broker) -> Message:
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    return Message(
        groups=[
            _group(group_id, reply, operations, broker.image)
            for group_id, reply in zip(request.group_ids, replies, strict=True)
        ]
    )


def _group(group_id: str, reply: Reply, operations: int, image: MetadataImage) -> Message:
    error, message = ErrorCode.NONE, None
    if isinstance(reply, ErrorCode):
        error, reply = reply, None
    elif reply is None:
        error, message = ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found."
    found = reply or DescribedConsumerGroup("", 0, 0, "", ())
    return Message(
        error_code=error,
        error_message=message,
        group_id=group_id,
        group_state=found.state,
        group_epoch=found.epoch,
        assignment_epoch=found.assignment_epoch,
        assignor_name=found.assignor,
        members=[_member(one, image) for one in found.members],
        authorized_operations=operations if error is ErrorCode.NONE else NOT_ASKED,
    )


def _member(one: DescribedConsumer, image: MetadataImage) -> Message:
    return Message(
        member_id=one.member_id,
        instance_id=one.instance_id,
        rack_id=one.rack_id,
        member_epoch=one.member_epoch,
        client_id=one.client_id,
        client_host=one.client_host,
        subscribed_topic_names=list(one.subscribed_topic_names),
        subscribed_topic_regex=one.subscribed_topic_regex or "",
        assignment=Message(topic_partitions=topic_partitions(one.assigned, image)),
        target_assignment=Message(topic_partitions=topic_partitions(one.target, image)),
        member_type=CLASSIC_MEMBER if one.uses_classic_protocol else CONSUMER_MEMBER,
    )
