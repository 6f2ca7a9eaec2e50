"""LeaveGroup (13), versions 0-5: members leave, and the group rebalances.

v3 many members, by id or instance id; v5 the reason. Start at `handle`.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.broker.context import Broker, RequestContext
from moldau.broker.coordination.coordinators import render_reply
from moldau.coordinator.group.classic.requests import LeaveReply, LeavingMember
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]

FIRST_WITH_MANY_MEMBERS = 3


def handle(request: Message, call: RequestContext, broker: Broker) -> Message | Awaitable[Message]:
    if call.api_version >= FIRST_WITH_MANY_MEMBERS:
        leaving = [LeavingMember(one.member_id, one.group_instance_id) for one in request.members]
    else:
        leaving = [LeavingMember(request.member_id)]
    group_id = request.group_id
    reply = broker.coordinators.groups.ask(
        group_id, lambda core, ticket, now: core.leave(group_id, leaving, ticket, now)
    )
    return render_reply(reply, lambda known: _answer(known, leaving, call.api_version))


def _answer(reply: LeaveReply | ErrorCode, leaving: list[LeavingMember], version: int) -> Message:
    if isinstance(reply, ErrorCode):
        reply = LeaveReply(reply)
    if version < FIRST_WITH_MANY_MEMBERS:
        error = reply.members[0][1] if reply.members else reply.error
        return Message(error_code=error)
    if reply.error is ErrorCode.UNKNOWN_MEMBER_ID:
        # For an unknown group, return the error for each member.
        reply = LeaveReply(ErrorCode.NONE, tuple((one, ErrorCode.UNKNOWN_MEMBER_ID) for one in leaving))
    return Message(
        error_code=reply.error,
        members=[
            Message(member_id=one.member_id, group_instance_id=one.group_instance_id, error_code=error)
            for one, error in reply.members
        ],
    )
