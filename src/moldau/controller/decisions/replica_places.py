"""Where replicas are: decides what becomes of partitions when a broker says in which of its directories one is, or that
it cannot use one any more. Start at `decide_place`.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import NamedTuple

from moldau.controller.decisions.partition_changes import LOST, PartitionDraft
from moldau.controller.image import MetadataImage
from moldau.core.errors import ErrorCode
from moldau.protocol.metadata_records import PartitionChangeRecord

__all__ = ["ReplicaPlace", "decide_place"]


class ReplicaPlace(NamedTuple):
    """A replica of the broker that tells this."""

    directory: uuid.UUID | None
    topic_id: uuid.UUID | None
    partition: int


def decide_place(
    image: MetadataImage, node_id: int, place: ReplicaPlace
) -> Sequence[PartitionChangeRecord] | ErrorCode:
    """The change that a place entails: none, or one in which others lead what this broker cannot use any more."""
    topic = image.topic_by_id(place.topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    now = topic.partitions.get(place.partition)
    if now is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if node_id not in now.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    draft = PartitionDraft(image, topic, place.partition)
    draft.placed = (node_id, place.directory)
    if place.directory == LOST:
        draft.isr = tuple(one for one in now.isr if one != node_id)
        draft.lost = frozenset({node_id})
    record = draft.record()
    return [] if record is None else [record]
