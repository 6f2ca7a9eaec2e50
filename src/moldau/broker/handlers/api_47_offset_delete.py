"""OffsetDelete (47), version 0: delete single offsets of a group, for topics that no member subscribes to.

Start at `handle`.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.broker.context import Broker, RequestContext
from moldau.broker.coordination.coordinators import render_reply
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]


def handle(request: Message, call: RequestContext, broker: Broker) -> Message | Awaitable[Message]:
    group_id = request.group_id
    if not group_id:
        return Message(error_code=ErrorCode.INVALID_GROUP_ID, topics=[])
    known = set(broker.image.topics)
    places = [
        (topic.name, one.partition_index) for topic in request.topics if topic.name in known for one in topic.partitions
    ]
    reply = broker.coordinators.groups.ask(
        group_id, lambda core, ticket, now: core.delete_offsets(group_id, places, ticket)
    )
    return render_reply(reply, lambda errors: _answer(errors, request, places))


def _answer(errors: list[ErrorCode] | ErrorCode, request: Message, places: list[tuple[str, int]]) -> Message:
    if isinstance(errors, ErrorCode):
        return Message(error_code=errors, topics=[])
    by_place = dict(zip(places, errors, strict=True))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return Message(
        error_code=ErrorCode.NONE,
        topics=[
            Message(
                name=topic.name,
                partitions=[
                    Message(
                        partition_index=one.partition_index,
                        error_code=by_place.get((topic.name, one.partition_index), unknown),
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
