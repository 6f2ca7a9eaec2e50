"""The topics and settings of this broker that groups of the consumer protocol use.

Start at `consumer_facts`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from uuid import UUID

from moldau.controller.image import ConfigResource, ConfigResourceType, MetadataImage
from moldau.coordinator.group.consumer.assignment import Assignment
from moldau.coordinator.group.consumer.membership import ConsumerFacts
from moldau.coordinator.group.consumer.settings import ConsumerSettings
from moldau.coordinator.group.consumer.topics import TopicFacts
from moldau.protocol.messages import Message

if TYPE_CHECKING:
    from moldau.broker.context import Broker

__all__ = ["consumer_facts", "offers_consumer_protocol", "topic_partitions"]

FEATURE = "group.version"


class ImageTopics:
    """The topics of a metadata image, as the group core asks for them."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image

    @property
    def moment(self) -> object:
        return self._image.topics  # a new object exactly when a topic changes

    def names(self) -> Iterable[str]:
        return self._image.topics

    def facts(self, name: str) -> TopicFacts | None:
        topic = self._image.topics.get(name)
        return None if topic is None else TopicFacts(topic.topic_id, len(topic.partitions))

    def name_of(self, topic_id: UUID) -> str | None:
        return self._image.topic_names.get(topic_id)


def consumer_facts(broker: Broker) -> ConsumerFacts:
    settings = broker.config.section(ConsumerSettings)
    return ConsumerFacts(
        lambda: ImageTopics(broker.image),
        lambda: settings,
        lambda group_id: broker.image.configs.get(ConfigResource(ConfigResourceType.GROUP, group_id), {}),
    )


def offers_consumer_protocol(broker: Broker) -> bool:
    """Whether the cluster has agreed on the feature and this broker's settings allow it."""
    protocols = broker.config.section(ConsumerSettings).group_coordinator_rebalance_protocols
    return broker.image.features.get(FEATURE, 0) >= 1 and "consumer" in protocols


def topic_partitions(assignment: Assignment, image: MetadataImage | None = None) -> list[Message]:
    """An assignment as responses have it, with names where an image is given to find them in."""
    return [
        Message(
            topic_id=topic_id,
            topic_name="" if image is None else image.topic_names.get(topic_id, ""),
            partitions=sorted(assignment[topic_id]),
        )
        for topic_id in sorted(assignment)
    ]
