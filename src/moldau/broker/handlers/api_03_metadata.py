"""Metadata (3), versions 0-13: brokers, topics and partition leaders; creates topics on demand.

v1 null means all topics (in v0: an empty list), rack, internal flag; v4 a flag to allow creation; v5 offline replicas;
v7 leader epochs; v8 operations; v10 topic ids in the response, v12 in the request; v13 a top-level error. Start at
`handle`.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Collection, Sequence

from moldau.broker.context import Broker, RequestContext
from moldau.broker.metadata.topic_views import (
    CLUSTER_OPERATIONS,
    NOT_ASKED,
    TOPIC_OPERATIONS,
    any_alive_broker,
    partition_view,
    reachable_brokers,
)
from moldau.controller.errors import RefusedError
from moldau.controller.image import INTERNAL_TOPICS, MetadataImage, TopicImage
from moldau.controller.topic_names import check_topic_name
from moldau.controller.topics import NewTopic, TopicResult
from moldau.core.config.sections import TopicSettings
from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.messages import Message

__all__ = ["handle"]

FIRST_WITH_LISTENER_ERROR = 6
FIRST_WITH_ID_LOOKUP = 12
FIRST_ASKING_TO_CREATE = 4

LostReplicas = Callable[[str, int], Collection[int]]
"""`(topic, partition)`: brokers whose replica cannot be used."""


def handle(request: Message, call: RequestContext, broker: Broker) -> Message | Awaitable[Message]:
    missing = _to_create(request, call, broker)
    return _answer_after_creating(missing, request, call, broker) if missing else _answer(request, call, broker, {})


async def _answer_after_creating(
    names: Sequence[str], request: Message, call: RequestContext, broker: Broker
) -> Message:
    """Create the topics, then return LEADER_NOT_AVAILABLE for them, after which clients retry."""
    try:
        results = await broker.controller.create_topics([NewTopic(name=name) for name in names])
    except MoldauError as error:
        return _answer(request, call, broker, dict.fromkeys(names, error.code))
    return _answer(request, call, broker, {result.name or "": _error_after_creating(result) for result in results})


def _error_after_creating(result: TopicResult) -> ErrorCode:
    done = result.error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    return ErrorCode.LEADER_NOT_AVAILABLE if done else result.error


def _is_for_all(request: Message, call: RequestContext) -> bool:
    return request.topics is None or (call.api_version == 0 and not request.topics)


def _to_create(request: Message, call: RequestContext, broker: Broker) -> list[str]:
    wanted = call.api_version < FIRST_ASKING_TO_CREATE or request.allow_auto_topic_creation
    if not wanted or _is_for_all(request, call) or not broker.config.section(TopicSettings).auto_create_topics_enable:
        return []
    names = dict.fromkeys(topic.name for topic in request.topics if topic.name is not None)
    return [name for name in names if name not in broker.image.topics and _can_be_created(name)]


def _can_be_created(name: str) -> bool:
    """Whether a topic may be created on demand; coordinators create internal topics with their own settings."""
    try:
        check_topic_name(name)
    except RefusedError:
        return False
    return name not in INTERNAL_TOPICS


def _answer(request: Message, call: RequestContext, broker: Broker, created: dict[str, ErrorCode]) -> Message:
    image = broker.image
    if _is_for_all(request, call):
        topics = [_topic(broker, topic, request, call) for topic in image.topics.values()]
    else:
        topics = [_asked_topic(broker, asked, request, call, created) for asked in request.topics]
    operations = CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
    return Message(
        brokers=[
            Message(node_id=one.node_id, host=endpoint.host, port=endpoint.port, rack=one.rack)
            for one, endpoint in reachable_brokers(image.alive_brokers(), call, broker)
        ],
        cluster_id=broker.cluster_id,
        controller_id=any_alive_broker(image),
        topics=topics,
        cluster_authorized_operations=operations,
        error_code=ErrorCode.NONE,
    )


def _asked_topic(
    broker: Broker, asked: Message, request: Message, call: RequestContext, created: dict[str, ErrorCode]
) -> Message:
    image = broker.image
    topic_id, name = asked.topic_id, asked.name
    if topic_id is not None:
        if call.api_version < FIRST_WITH_ID_LOOKUP:
            return _topic_error(name, topic_id, ErrorCode.INVALID_REQUEST)
        by_id = image.topic_by_id(topic_id)
        return (
            _topic(broker, by_id, request, call) if by_id else _topic_error(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
        )
    if name is None:
        return _topic_error("", None, ErrorCode.INVALID_REQUEST)
    if name in created:
        return _topic_error(name, None, created[name])
    topic = image.topics.get(name)
    if topic is not None:
        return _topic(broker, topic, request, call)
    try:
        check_topic_name(name)
    except RefusedError as error:
        return _topic_error(name, None, error.error)
    return _topic_error(name, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _topic_error(name: str | None, topic_id: uuid.UUID | None, error: ErrorCode) -> Message:
    return Message(
        error_code=error,
        name=name,
        topic_id=topic_id,
        is_internal=name in INTERNAL_TOPICS,
        partitions=[],
        topic_authorized_operations=NOT_ASKED,
    )


def _topic(broker: Broker, topic: TopicImage, request: Message, call: RequestContext) -> Message:
    return Message(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=_partitions(broker.image, topic, call, broker.partitions.lost_replicas),
        topic_authorized_operations=TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED,
    )


def _partitions(
    image: MetadataImage, topic: TopicImage, call: RequestContext, lost_replicas: LostReplicas
) -> list[Message]:
    partitions = []
    for number, partition in topic.partitions.items():
        view = partition_view(image, partition, call.listener_name, lost_replicas(topic.name, number))
        error = view.error
        if error is ErrorCode.LISTENER_NOT_FOUND and call.api_version < FIRST_WITH_LISTENER_ERROR:
            error = ErrorCode.LEADER_NOT_AVAILABLE
        elif error is ErrorCode.NONE and view.offline_replicas and call.api_version == 0:
            error = ErrorCode.REPLICA_NOT_AVAILABLE
        partitions.append(
            Message(
                error_code=error,
                partition_index=number,
                leader_id=view.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                offline_replicas=view.offline_replicas,
            )
        )
    return partitions
