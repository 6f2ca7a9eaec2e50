"""DescribeGroups (15), versions 0-6: state and members of groups of the classic protocol.

v3 operations; v4 instance ids; v6 returns an error for a missing group instead of the state Dead. Start at `handle`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from moldau.broker.context import Broker, RequestContext
from moldau.broker.metadata.topic_views import GROUP_OPERATIONS, NOT_ASKED
from moldau.coordinator.group.views import DescribedGroup, described_classic
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]

FIRST_WITH_NOT_FOUND = 6


def handle(request: Message, call: RequestContext, broker: Broker) -> Message | Awaitable[Message]:
    replies = [_ask(group_id, broker) for group_id in request.groups]
    if any(isinstance(reply, asyncio.Future) for reply in replies):
        return _answer_later(replies, request, call)
    return _answer(replies, request, call)


def _ask(group_id: str, broker: Broker) -> Any:
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    return broker.coordinators.groups.ask(
        group_id,
        lambda core, ticket, now: core.look(lambda it: described_classic(it.groups.get(group_id)), ticket),
    )


async def _answer_later(replies: list[Any], request: Message, call: RequestContext) -> Message:
    known = [await reply if isinstance(reply, asyncio.Future) else reply for reply in replies]
    return _answer(known, request, call)


def _answer(replies: list[DescribedGroup | ErrorCode | None], request: Message, call: RequestContext) -> Message:
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    return Message(
        groups=[
            _group(group_id, reply, operations, call.api_version)
            for group_id, reply in zip(request.groups, replies, strict=True)
        ]
    )


def _group(group_id: str, reply: DescribedGroup | ErrorCode | None, operations: int, version: int) -> Message:
    error, message, state = ErrorCode.NONE, None, ""
    if isinstance(reply, ErrorCode):
        error, reply = reply, None
    elif reply is None:
        state = "Dead"
        if version >= FIRST_WITH_NOT_FOUND:
            error, message = ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found."
    found = reply or DescribedGroup(state, "", "", ())
    return Message(
        error_code=error,
        error_message=message,
        group_id=group_id,
        group_state=found.state,
        protocol_type=found.protocol_type,
        protocol_data=found.protocol_name,
        members=[
            Message(
                member_id=one.member_id,
                group_instance_id=one.group_instance_id,
                client_id=one.client_id,
                client_host=one.client_host,
                member_metadata=one.metadata,
                member_assignment=one.assignment,
            )
            for one in found.members
        ],
        authorized_operations=operations,
    )
