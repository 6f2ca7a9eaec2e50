"""AlterPartitionReassignments (45), versions 0-1: move partitions to other brokers, or cancel that.

The answer comes when it has begun; ListPartitionReassignments tells which are under way. Start at `handle`.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.broker.context import Broker, RequestContext
from moldau.controller.decisions.reassignment import Reassignment, ReassignmentResult
from moldau.controller.errors import refusal_of
from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.messages import Message

__all__ = ["handle"]

FIRST_WITH_FACTOR = 1


async def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    may_change_factor = call.api_version < FIRST_WITH_FACTOR or request.allow_replication_factor_change
    wanted = [
        Reassignment(topic.name, one.partition_index, None if one.replicas is None else tuple(one.replicas))
        for topic in request.topics
        for one in topic.partitions
    ]
    error, why = ErrorCode.NONE, None
    results: list[ReassignmentResult] = []
    try:
        results = await broker.controller.reassign(wanted, may_change_factor=may_change_factor)
    except MoldauError as refused:
        error, why = refusal_of(refused)
    return Message(
        allow_replication_factor_change=may_change_factor,
        error_code=error,
        error_message=why,
        responses=list(_by_topic(results)),
    )


def _by_topic(results: Iterable[ReassignmentResult]) -> Iterable[Message]:
    topics: dict[str, list[Message]] = {}
    for one in results:
        answer = Message(partition_index=one.partition, error_code=one.error, error_message=one.message)
        topics.setdefault(one.topic, []).append(answer)
    return (Message(name=name, partitions=partitions) for name, partitions in topics.items())
