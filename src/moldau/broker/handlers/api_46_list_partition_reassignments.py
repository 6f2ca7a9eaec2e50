"""ListPartitionReassignments (46), version 0: partitions being reassigned, from the image. Start at `handle`."""

from __future__ import annotations

from moldau.broker.context import Broker, RequestContext
from moldau.controller.decisions.reassignment import is_reassigned
from moldau.controller.image import PartitionImage, TopicImage
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]


def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    image = broker.image
    if request.topics is None:
        asked = {topic.name: set(topic.partitions) for topic in image.topics.values()}
    else:
        asked = {topic.name: set(topic.partition_indexes) for topic in request.topics}
    topics = [_reassignments(image.topics[name], numbers) for name, numbers in asked.items() if name in image.topics]
    return Message(
        error_code=ErrorCode.NONE, error_message=None, topics=[topic for topic in topics if topic.partitions]
    )


def _reassignments(topic: TopicImage, numbers: set[int]) -> Message:
    return Message(
        name=topic.name,
        partitions=[
            _partition(number, partition)
            for number, partition in topic.partitions.items()
            if number in numbers and is_reassigned(partition)
        ],
    )


def _partition(number: int, partition: PartitionImage) -> Message:
    return Message(
        partition_index=number,
        replicas=list(partition.replicas),
        adding_replicas=list(partition.adding_replicas),
        removing_replicas=list(partition.removing_replicas),
    )
