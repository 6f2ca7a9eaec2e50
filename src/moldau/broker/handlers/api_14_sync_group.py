"""SyncGroup (14), versions 0-5: the leader sends the assignment, every member receives its own part.

v3 static members; v5 protocol type and name, checked and returned. Start at `handle`.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.broker.context import Broker, RequestContext
from moldau.broker.coordination.coordinators import render_reply
from moldau.coordinator.group.classic.requests import SyncReply, SyncRequest
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]

FIRST_WITH_PROTOCOL = 5


def handle(request: Message, call: RequestContext, broker: Broker) -> Message | Awaitable[Message]:
    tells_protocol = call.api_version >= FIRST_WITH_PROTOCOL
    if tells_protocol and (request.protocol_type is None or request.protocol_name is None):
        return _answer(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    sync = SyncRequest(
        group_id=request.group_id,
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=request.protocol_type if tells_protocol else None,
        protocol_name=request.protocol_name if tells_protocol else None,
        assignments=tuple((one.member_id, one.assignment) for one in request.assignments),
    )
    reply = broker.coordinators.groups.ask(sync.group_id, lambda core, ticket, now: core.sync(sync, ticket, now))
    return render_reply(reply, _answer)


def _answer(reply: SyncReply | ErrorCode) -> Message:
    if isinstance(reply, ErrorCode):
        reply = SyncReply(reply)
    return Message(
        error_code=reply.error,
        protocol_type=reply.protocol_type,
        protocol_name=reply.protocol_name,
        assignment=reply.assignment,
    )
