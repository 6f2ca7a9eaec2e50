"""What lies between two images, for a broker that follows the metadata log: many records at once, or a snapshot.

The answer is what replaying the records would have told its subscribers. Start at `difference`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.controller.image import MetadataImage
from moldau.controller.replay import ImageDelta
from moldau.core.ids import TopicPartition

__all__ = ["difference"]


def difference(before: MetadataImage, after: MetadataImage) -> ImageDelta:
    """Parts that are the same object are not looked into: replay shares what it does not change."""
    delta = ImageDelta(before, after)
    if before.topics is not after.topics:
        _compare_topics(before, after, delta)
    delta.configs = _changed(before.configs, after.configs)
    delta.brokers = _changed(before.brokers, after.brokers)
    delta.features = _changed(before.features, after.features)
    return delta


def _compare_topics(before: MetadataImage, after: MetadataImage, delta: ImageDelta) -> None:
    for name, topic in before.topics.items():
        now = after.topics.get(name)
        if now is None or now.topic_id != topic.topic_id:
            delta.deleted_topics.append(topic)
    for name, topic in after.topics.items():
        known = before.topics.get(name)
        if known is topic:
            continue
        is_new = known is None or known.topic_id != topic.topic_id
        for number, partition in topic.partitions.items():
            if is_new or known is None or known.partitions.get(number) != partition:
                delta.partitions.add(TopicPartition(name, number))


def _changed(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> set[Any]:
    if before is after:
        return set()
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
