"""JoinGroup (11), versions 0-9: join a group, and wait until the members of the new generation are known.

v1 rebalance timeout; v4 new members first get a member id; v5 static members; v7 protocol type in the response; v8 the
reason; v9 the response may tell a leader to skip the assignment. Start at `handle`.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.broker.context import Broker, RequestContext
from moldau.broker.coordination.coordinators import render_reply
from moldau.coordinator.group.classic.requests import JoinReply, JoinRequest, MemberProtocol
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]

FIRST_WITH_REBALANCE_TIMEOUT = 1
FIRST_WITH_KNOWN_IDS = 4
FIRST_WITH_NULL_PROTOCOL = 7
FIRST_TO_SKIP_ASSIGNMENT = 9


def handle(request: Message, call: RequestContext, broker: Broker) -> Message | Awaitable[Message]:
    join = _join(request, call)
    reply = broker.coordinators.groups.ask(join.group_id, lambda core, ticket, now: core.join(join, ticket, now))
    return render_reply(reply, lambda known: _answer(known, join, call.api_version))


def _join(request: Message, call: RequestContext) -> JoinRequest:
    version, session_timeout_ms = call.api_version, request.session_timeout_ms
    has_own = version >= FIRST_WITH_REBALANCE_TIMEOUT and request.rebalance_timeout_ms >= 0
    return JoinRequest(
        group_id=request.group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        client_id=call.client_id or "",
        client_host=f"/{call.client_host}",
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms if has_own else session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=tuple(MemberProtocol(one.name, one.metadata) for one in request.protocols),
        requires_known_member_id=version >= FIRST_WITH_KNOWN_IDS,
        can_skip_assignment=version >= FIRST_TO_SKIP_ASSIGNMENT,
    )


def _answer(reply: JoinReply | ErrorCode, join: JoinRequest, version: int) -> Message:
    if isinstance(reply, ErrorCode):
        reply = JoinReply(reply, join.member_id)
    protocol_name = reply.protocol_name
    if protocol_name is None and version < FIRST_WITH_NULL_PROTOCOL:
        protocol_name = ""
    return Message(
        error_code=reply.error,
        generation_id=reply.generation_id,
        protocol_type=reply.protocol_type,
        protocol_name=protocol_name,
        leader=reply.leader,
        skip_assignment=reply.skip_assignment,
        member_id=reply.member_id,
        members=[
            Message(member_id=one.member_id, group_instance_id=one.group_instance_id, metadata=one.metadata)
            for one in reply.members
        ],
    )
