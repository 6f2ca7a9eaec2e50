"""OffsetCommit (8), versions 2-10: commit the offsets of a group.

v2-4 retention time of the offset; v6 leader epoch; v7 static members; v9 member epochs of the consumer protocol; v10
topics by id. Start at `handle`.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import NamedTuple

from moldau.broker.context import Broker, RequestContext
from moldau.broker.coordination.coordinators import render_reply
from moldau.coordinator.group.group_core import CommitRequest
from moldau.coordinator.group.offsets import OffsetToCommit
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]

LAST_WITH_RETENTION_TIME = 4
FIRST_WITH_TOPIC_IDS = 10
LAST_TIME_MS = 2**63 - 1


class _Place(NamedTuple):
    """One partition of the request: its error, or its index in the list of commits."""

    partition: int
    error: ErrorCode
    commit: int = -1


def handle(request: Message, call: RequestContext, broker: Broker) -> Message | Awaitable[Message]:
    commits: list[OffsetToCommit] = []
    places = [_places(topic, request, call, broker, commits) for topic in request.topics]
    if not commits:
        return _answer([], request, places)
    commit = CommitRequest(
        group_id=request.group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        epoch=request.generation_id_or_member_epoch,
        offsets=tuple(commits),
        api_version=call.api_version,
    )
    reply = broker.coordinators.groups.ask(commit.group_id, lambda core, ticket, now: core.commit(commit, ticket, now))
    return render_reply(reply, lambda errors: _answer(errors, request, places))


def _places(
    topic: Message, request: Message, call: RequestContext, broker: Broker, commits: list[OffsetToCommit]
) -> list[_Place]:
    by_id = call.api_version >= FIRST_WITH_TOPIC_IDS
    known = broker.image.topic_by_id(topic.topic_id) if by_id else broker.image.topics.get(topic.name)
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    places = []
    for one in topic.partitions:
        if known is None or one.partition_index not in known.partitions:
            error = unknown if known is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            places.append(_Place(one.partition_index, error))
            continue
        places.append(_Place(one.partition_index, ErrorCode.NONE, len(commits)))
        commits.append(
            OffsetToCommit(
                known.name,
                one.partition_index,
                one.committed_offset,
                one.committed_leader_epoch,
                one.committed_metadata or "",
                _expire_ms(request, call, broker),
            )
        )
    return places


def _expire_ms(request: Message, call: RequestContext, broker: Broker) -> int | None:
    if call.api_version > LAST_WITH_RETENTION_TIME or request.retention_time_ms < 0:
        return None
    expire_ms: int = min(broker.coordinators.now_ms() + request.retention_time_ms, LAST_TIME_MS)
    return expire_ms


def _answer(errors: list[ErrorCode] | ErrorCode, request: Message, places: list[list[_Place]]) -> Message:
    def error_of(place: _Place) -> ErrorCode:
        if place.commit < 0:
            return place.error
        return errors if isinstance(errors, ErrorCode) else errors[place.commit]

    return Message(
        topics=[
            Message(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[Message(partition_index=place.partition, error_code=error_of(place)) for place in of_topic],
            )
            for topic, of_topic in zip(request.topics, places, strict=True)
        ]
    )
