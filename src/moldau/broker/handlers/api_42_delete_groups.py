"""DeleteGroups (42), versions 0-2: delete groups without members, and their offsets. Start at `handle`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from moldau.broker.context import Broker, RequestContext
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]


def handle(request: Message, call: RequestContext, broker: Broker) -> Message | Awaitable[Message]:
    replies = [_ask(group_id, broker) for group_id in request.groups_names]
    if any(isinstance(reply, asyncio.Future) for reply in replies):
        return _answer_later(replies, request)
    return _answer(replies, request)


def _ask(group_id: str, broker: Broker) -> Any:
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    return broker.coordinators.groups.ask(group_id, lambda core, ticket, now: core.delete_group(group_id, ticket))


async def _answer_later(replies: list[Any], request: Message) -> Message:
    return _answer([await reply if isinstance(reply, asyncio.Future) else reply for reply in replies], request)


def _answer(errors: list[ErrorCode], request: Message) -> Message:
    return Message(
        results=[
            Message(group_id=group_id, error_code=error)
            for group_id, error in zip(request.groups_names, errors, strict=True)
        ]
    )
