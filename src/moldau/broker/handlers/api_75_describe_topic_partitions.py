"""DescribeTopicPartitions (75), version 0: the topics of Metadata, in pages.

Topics are ordered by name, so that a cursor (topic, partition) defines where the next page begins. Start at `handle`.
"""

from __future__ import annotations

from moldau.broker.context import Broker, RequestContext
from moldau.broker.metadata.topic_views import NOT_ASKED, TOPIC_OPERATIONS, partition_view
from moldau.controller.errors import RefusedError
from moldau.controller.image import TopicImage
from moldau.controller.topic_names import check_topic_name
from moldau.core.config.sections import TopicSettings
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]


def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    image = broker.image
    first_topic, first_partition = _start(request)
    names = {topic.name for topic in request.topics} if request.topics else set(image.topics)
    room = min(request.response_partition_limit, broker.config.section(TopicSettings).max_request_partition_size_limit)
    topics: list[Message] = []
    for name in sorted(name for name in names if name >= first_topic):
        if room <= 0:
            return _page(topics, Message(topic_name=name, partition_index=0))
        begin = first_partition if name == first_topic else 0
        topic = image.topics.get(name)
        if topic is None:
            topics.append(_unknown_topic(name))
            continue
        numbers = [number for number in sorted(topic.partitions) if number >= begin]
        topics.append(_topic(broker, topic, numbers[:room], call.listener_name))
        if len(numbers) > room:
            return _page(topics, Message(topic_name=name, partition_index=numbers[room]))
        room -= len(numbers)
    return _page(topics, None)


def _start(request: Message) -> tuple[str, int]:
    cursor = request.cursor
    return ("", 0) if cursor is None else (cursor.topic_name, max(0, cursor.partition_index))


def _page(topics: list[Message], next_cursor: Message | None) -> Message:
    return Message(topics=topics, next_cursor=next_cursor)


def _unknown_topic(name: str) -> Message:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_topic_name(name)
    except RefusedError as refusal:
        error = refusal.error
    return Message(
        error_code=error,
        name=name,
        topic_id=None,
        is_internal=False,
        partitions=[],
        topic_authorized_operations=NOT_ASKED,
    )


def _topic(broker: Broker, topic: TopicImage, numbers: list[int], listener: str) -> Message:
    return Message(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(broker, topic, number, listener) for number in numbers],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(broker: Broker, topic: TopicImage, number: int, listener: str) -> Message:
    partition = topic.partitions[number]
    lost = broker.partitions.lost_replicas(topic.name, number)
    view = partition_view(broker.image, partition, listener, lost)
    return Message(
        error_code=view.error,
        partition_index=number,
        leader_id=view.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.eligible_leader_replicas),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=view.offline_replicas,
    )
