"""Heartbeat (12), versions 0-4: keeps a member alive and tells it whether the group rebalances.

v3 static members. Start at `handle`.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.broker.context import Broker, RequestContext
from moldau.broker.coordination.coordinators import render_reply
from moldau.coordinator.group.classic.requests import HeartbeatRequest
from moldau.protocol.messages import Message

__all__ = ["handle"]


def handle(request: Message, call: RequestContext, broker: Broker) -> Message | Awaitable[Message]:
    heartbeat = HeartbeatRequest(request.group_id, request.generation_id, request.member_id, request.group_instance_id)
    reply = broker.coordinators.groups.ask(
        heartbeat.group_id, lambda core, ticket, now: core.heartbeat(heartbeat, ticket, now)
    )
    return render_reply(reply, lambda error: Message(error_code=error))
