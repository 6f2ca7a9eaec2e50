"""ConsumerGroupHeartbeat (68), versions 0-1: join, stay in, change or leave a group of the consumer protocol (KIP-848).

v1 subscriptions by a pattern, and members choose their own ids. Start at `handle`.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.broker.context import Broker, RequestContext
from moldau.broker.coordination.consumer_groups import offers_consumer_protocol, topic_partitions
from moldau.broker.coordination.coordinators import render_reply
from moldau.coordinator.group.consumer.assignment import assignment_of
from moldau.coordinator.group.consumer.requests import ConsumerHeartbeat, ConsumerHeartbeatReply
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]

FIRST_WITH_PATTERNS = 1


def handle(request: Message, call: RequestContext, broker: Broker) -> Message | Awaitable[Message]:
    if not offers_consumer_protocol(broker):
        return _answer(ErrorCode.UNSUPPORTED_VERSION)
    heartbeat = _heartbeat(request, call)
    reply = broker.coordinators.groups.ask(
        heartbeat.group_id, lambda core, ticket, now: core.consumer_heartbeat(heartbeat, ticket, now)
    )
    return render_reply(reply, _answer)


def _heartbeat(request: Message, call: RequestContext) -> ConsumerHeartbeat:
    names, owned = request.subscribed_topic_names, request.topic_partitions
    has_patterns = call.api_version >= FIRST_WITH_PATTERNS
    return ConsumerHeartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        client_id=call.client_id or "",
        client_host=f"/{call.client_host}",
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        subscribed_topic_names=None if names is None else tuple(names),
        subscribed_topic_regex=request.subscribed_topic_regex if has_patterns else None,
        server_assignor=request.server_assignor,
        owned=None if owned is None else assignment_of((one.topic_id, one.partitions) for one in owned),
        brings_member_id=has_patterns,
    )


def _answer(reply: ConsumerHeartbeatReply | ErrorCode) -> Message:
    if isinstance(reply, ErrorCode):
        reply = ConsumerHeartbeatReply(reply)
    assignment = reply.assignment
    return Message(
        error_code=reply.error,
        error_message=reply.message,
        member_id=reply.member_id,
        member_epoch=reply.member_epoch,
        heartbeat_interval_ms=reply.heartbeat_interval_ms,
        assignment=None if assignment is None else Message(topic_partitions=topic_partitions(assignment)),
    )
