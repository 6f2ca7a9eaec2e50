"""Metadata (3), versions 0-13: brokers, topics and partition leaders; creates topics on demand.

v1 null means all topics (in v0: an empty list), rack, internal flag; v4 a flag to allow creation; v5 offline replicas;
v7 leader epochs; v8 operations; v10 topic ids in the response, v12 in the request; v13 a top-level error. Topics are
encoded by `broker.metadata.topic_answers`, which keeps them. Start at `handle`.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Sequence
from typing import NamedTuple

from moldau.broker.context import Broker, RequestContext
from moldau.broker.metadata.topic_answers import EncodedTopic, Form, Steps, in_turns
from moldau.broker.metadata.topic_views import CLUSTER_OPERATIONS, NOT_ASKED, alive_broker, reachable_brokers
from moldau.controller.decisions.topics import NewTopic, TopicResult
from moldau.controller.errors import RefusedError
from moldau.controller.image import INTERNAL_TOPICS, MetadataImage, TopicImage
from moldau.controller.topic_names import check_topic_name
from moldau.core.config.sections import TopicSettings
from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.hot_fields import NodeEndpoint
from moldau.protocol.messages import EncodedResponse, Message
from moldau.protocol.metadata_response import encode_metadata_response, encode_metadata_topic

__all__ = ["handle"]

FIRST_WITH_ID_LOOKUP = 12
FIRST_ASKING_TO_CREATE = 4


def handle(request: Message, call: RequestContext, broker: Broker) -> EncodedResponse | Awaitable[EncodedResponse]:
    missing = _to_create(request, call, broker)
    if missing:
        return _answer_after_creating(missing, request, call, broker)
    steps = _answer(request, call, broker, {})
    return in_turns(steps, broker.topic_answers.building, is_long=_is_for_all(request, call))


async def _answer_after_creating(
    names: Sequence[str], request: Message, call: RequestContext, broker: Broker
) -> EncodedResponse:
    """Create the topics, then return LEADER_NOT_AVAILABLE for them, after which clients retry."""
    try:
        results = await broker.controller.create_topics([NewTopic(name=name) for name in names])
    except MoldauError as error:
        created = dict.fromkeys(names, error.code)
    else:
        created = {result.name or "": _error_after_creating(result) for result in results}
    answer = in_turns(_answer(request, call, broker, created), broker.topic_answers.building, is_long=False)
    return answer if isinstance(answer, EncodedResponse) else await answer


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


def _answer(
    request: Message, call: RequestContext, broker: Broker, created: dict[str, ErrorCode]
) -> Steps[EncodedResponse]:
    image = broker.image
    form = Form(call.api_version, call.listener_name, bool(request.include_topic_authorized_operations))
    topics: list[EncodedTopic] = []
    for asked in image.topics.values() if _is_for_all(request, call) else request.topics:
        yield
        found = asked if isinstance(asked, TopicImage) else _asked_topic(image, asked, call, created)
        if isinstance(found, TopicImage):
            lost = broker.partitions.lost_partitions(found.name)
            topics.append((yield from broker.topic_answers.topic(image, found, form, lost)))
        else:
            topics.append(_encode_problem(form, found))
    operations = CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
    body = encode_metadata_response(
        call.api_version,
        brokers=[
            NodeEndpoint(one.node_id, endpoint.host, endpoint.port, one.rack)
            for one, endpoint in reachable_brokers(image.alive_brokers(), call, broker)
        ],
        cluster_id=broker.cluster_id,
        controller_id=alive_broker(image, broker.node_id),
        topics=[topic.data for topic in topics],
        operations=operations,
    )
    return EncodedResponse(body, [code for topic in topics for code in topic.error_codes])


class _Problem(NamedTuple):
    """A topic that was asked for and cannot be told."""

    name: str | None
    topic_id: uuid.UUID | None
    error: ErrorCode


def _asked_topic(
    image: MetadataImage, asked: Message, call: RequestContext, created: dict[str, ErrorCode]
) -> TopicImage | _Problem:
    topic_id, name = asked.topic_id, asked.name
    if topic_id is not None:
        if call.api_version < FIRST_WITH_ID_LOOKUP:
            return _Problem(name, topic_id, ErrorCode.INVALID_REQUEST)
        return image.topic_by_id(topic_id) or _Problem(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
    if name is None:
        return _Problem("", None, ErrorCode.INVALID_REQUEST)
    if name in created:
        return _Problem(name, None, created[name])
    topic = image.topics.get(name)
    if topic is not None:
        return topic
    try:
        check_topic_name(name)
    except RefusedError as error:
        return _Problem(name, None, error.error)
    return _Problem(name, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _encode_problem(form: Form, problem: _Problem) -> EncodedTopic:
    data = encode_metadata_topic(
        form.version,
        error_code=problem.error,
        name=problem.name,
        topic_id=problem.topic_id,
        is_internal=problem.name in INTERNAL_TOPICS,
        partitions=[],
        operations=NOT_ASKED,
    )
    return EncodedTopic(data, (int(problem.error),))
