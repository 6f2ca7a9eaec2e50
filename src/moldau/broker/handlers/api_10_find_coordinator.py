"""FindCoordinator (10), versions 0-6: the coordinator of a group or of a transactional id.

The internal topic is created by the first request for it. v1 key type, v4 many keys at once. Start at `handle`.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from moldau.broker.context import Broker, RequestContext
from moldau.broker.coordination.coordinators import Coordinator
from moldau.broker.metadata.topic_views import partition_view, reachable_brokers
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]

GROUP, TRANSACTION, SHARE = 0, 1, 2
FIRST_WITH_MANY_KEYS = 4
FIRST_WITH_SHARE_KEYS = 6


def handle(request: Message, call: RequestContext, broker: Broker) -> Message | Awaitable[Message]:
    key_type = request.key_type if call.api_version >= 1 else GROUP
    coordinator = broker.coordinators.by_key_type.get(key_type)
    if coordinator is not None and coordinator.topic.name not in broker.image.topics:
        return _answer_after_creating(coordinator, key_type, request, call, broker)
    return _answer(coordinator, key_type, request, call, broker)


async def _answer_after_creating(
    coordinator: Coordinator[Any], key_type: int, request: Message, call: RequestContext, broker: Broker
) -> Message:
    await coordinator.ensure_topic()
    return _answer(coordinator, key_type, request, call, broker)


def _answer(
    coordinator: Coordinator[Any] | None, key_type: int, request: Message, call: RequestContext, broker: Broker
) -> Message:
    many = call.api_version >= FIRST_WITH_MANY_KEYS
    keys = request.coordinator_keys if many else [request.key]
    found = [_coordinator(coordinator, key_type, key, call, broker) for key in keys]
    return Message(coordinators=found) if many else found[0]


def _coordinator(
    coordinator: Coordinator[Any] | None, key_type: int, key: str, call: RequestContext, broker: Broker
) -> Message:
    if key_type not in (GROUP, TRANSACTION) and (key_type != SHARE or call.api_version < FIRST_WITH_SHARE_KEYS):
        return _no_coordinator(key, ErrorCode.INVALID_REQUEST, f"Coordinators of type {key_type} are not known.")
    image = broker.image
    number = None if coordinator is None else coordinator.partition_of(key)
    partition = None if coordinator is None or number is None else image.partition(coordinator.topic.name, number)
    if coordinator is not None and number is not None and partition is not None and not coordinator.is_offline(key):
        lost = broker.partitions.lost_replicas(coordinator.topic.name, number)
        leader = partition_view(image, partition, call.listener_name, lost).leader
        for one, endpoint in reachable_brokers(image.alive_brokers(), call, broker):
            if one.node_id == leader:
                return Message(
                    key=key,
                    node_id=leader,
                    host=endpoint.host,
                    port=endpoint.port,
                    error_code=ErrorCode.NONE,
                    error_message="" if call.api_version >= FIRST_WITH_MANY_KEYS else "NONE",
                )
    return _no_coordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")


def _no_coordinator(key: str, error: ErrorCode, message: str) -> Message:
    return Message(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=message)
