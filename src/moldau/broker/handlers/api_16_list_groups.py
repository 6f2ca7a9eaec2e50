"""ListGroups (16), versions 0-5: every group this broker coordinates.

v4 filters by state; v5 filters by type. Start at `handle`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from moldau.broker.context import Broker, RequestContext
from moldau.coordinator.group.views import ListedGroup, list_groups
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]


def handle(request: Message, call: RequestContext, broker: Broker) -> Message | Awaitable[Message]:
    states = {state.lower() for state in request.states_filter}
    kinds = {kind.lower() for kind in request.types_filter}
    groups = broker.coordinators.groups
    replies: list[Any] = [
        groups.ask_shard(
            shard,
            lambda core, ticket, now: core.look(lambda it: list_groups(it.groups.values(), states, kinds), ticket),
        )
        for shard in groups.shards.values()
    ]
    if any(isinstance(reply, asyncio.Future) for reply in replies):
        return _answer_later(replies)
    return _answer(replies)


async def _answer_later(replies: list[Any]) -> Message:
    return _answer([await reply if isinstance(reply, asyncio.Future) else reply for reply in replies])


def _answer(replies: list[list[ListedGroup] | ErrorCode]) -> Message:
    """Return the groups of all loaded shards, with the error of a shard that is not loaded yet."""
    failed = [reply for reply in replies if isinstance(reply, ErrorCode)]
    return Message(
        error_code=failed[0] if failed else ErrorCode.NONE,
        groups=[
            Message(group_id=one.group_id, protocol_type=one.protocol_type, group_state=one.state, group_type=one.kind)
            for reply in replies
            if not isinstance(reply, ErrorCode)
            for one in reply
        ],
    )
