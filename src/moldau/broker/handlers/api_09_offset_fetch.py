"""OffsetFetch (9), versions 1-10: the committed offsets of groups.

v2 null for all topics, a top-level error; v5 leader epoch; v7 waits for open transactions; v8 many groups; v9 member
epochs; v10 topics by id. Start at `handle`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any
from uuid import UUID

from moldau.broker.context import Broker, RequestContext
from moldau.controller.image import MetadataImage
from moldau.coordinator.group.group_core import FetchOffsetsReply
from moldau.coordinator.group.offsets import FetchedOffset
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]

FIRST_WITH_ERROR = 2
FIRST_WITH_MANY_GROUPS = 8
FIRST_WITH_TOPIC_IDS = 10


def handle(request: Message, call: RequestContext, broker: Broker) -> Message | Awaitable[Message]:
    groups = request.groups if call.api_version >= FIRST_WITH_MANY_GROUPS else [request]
    replies = [_ask(group, request, call, broker) for group in groups]
    if any(isinstance(reply, asyncio.Future) for reply in replies):
        return _answer_later(replies, groups, call, broker)
    return _answer(replies, groups, call, broker)


def _ask(group: Message, request: Message, call: RequestContext, broker: Broker) -> Any:
    group_id, places = group.group_id, None
    if group.topics is not None:
        names = [_name(topic, call, broker.image) for topic in group.topics]
        places = [
            (name, partition)
            for topic, name in zip(group.topics, names, strict=True)
            if name is not None
            for partition in topic.partition_indexes
        ]
    has_member = call.api_version > FIRST_WITH_MANY_GROUPS
    member_id, member_epoch = (group.member_id, group.member_epoch) if has_member else (None, -1)
    require_stable = request.require_stable
    return broker.coordinators.groups.ask(
        group_id,
        lambda core, ticket, now: core.fetch_offsets(
            group_id,
            places,
            ticket,
            member_id=member_id,
            member_epoch=member_epoch,
            require_stable=require_stable,
        ),
    )


def _name(topic: Message, call: RequestContext, image: MetadataImage) -> str | None:
    if call.api_version < FIRST_WITH_TOPIC_IDS:
        name: str = topic.name
        return name
    return image.topic_names.get(topic.topic_id)


async def _answer_later(replies: list[Any], groups: list[Message], call: RequestContext, broker: Broker) -> Message:
    known = [await reply if isinstance(reply, asyncio.Future) else reply for reply in replies]
    return _answer(known, groups, call, broker)


def _answer(
    replies: list[FetchOffsetsReply | ErrorCode], groups: list[Message], call: RequestContext, broker: Broker
) -> Message:
    answers = [_group(reply, group, call, broker) for reply, group in zip(replies, groups, strict=True)]
    return Message(groups=answers) if call.api_version >= FIRST_WITH_MANY_GROUPS else answers[0]


def _group(reply: FetchOffsetsReply | ErrorCode, group: Message, call: RequestContext, broker: Broker) -> Message:
    if isinstance(reply, ErrorCode):
        reply = FetchOffsetsReply(reply)
    if reply.error is not ErrorCode.NONE:
        is_told_once = call.api_version >= FIRST_WITH_ERROR
        topics = [] if is_told_once else [_topic_error(topic, reply.error) for topic in group.topics]
        return Message(group_id=group.group_id, topics=topics, error_code=reply.error)
    offsets: dict[str, list[FetchedOffset]] = {}
    for one in reply.offsets:
        offsets.setdefault(one.topic, []).append(one)
    by_id = call.api_version >= FIRST_WITH_TOPIC_IDS
    topics = []
    for name, found in offsets.items():
        topic = broker.image.topics.get(name)
        if by_id and topic is None:
            continue  # a deleted topic has no id to return
        topics.append(_topic(name, None if topic is None else topic.topic_id, found))
    if by_id and group.topics is not None:
        unknown = [topic for topic in group.topics if topic.topic_id not in broker.image.topic_names]
        topics += [_topic_error(topic, ErrorCode.UNKNOWN_TOPIC_ID) for topic in unknown]
    return Message(group_id=group.group_id, topics=topics, error_code=ErrorCode.NONE)


def _topic(name: str, topic_id: UUID | None, offsets: list[FetchedOffset]) -> Message:
    return Message(
        name=name,
        topic_id=topic_id,
        partitions=[
            Message(
                partition_index=one.partition,
                committed_offset=one.offset,
                committed_leader_epoch=one.leader_epoch,
                metadata=one.metadata,
                error_code=one.error,
            )
            for one in offsets
        ],
    )


def _topic_error(topic: Message, error: ErrorCode) -> Message:
    return Message(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            Message(
                partition_index=index,
                committed_offset=-1,
                committed_leader_epoch=-1,
                metadata="",
                error_code=error,
            )
            for index in topic.partition_indexes
        ],
    )
