"""Handing a node's metadata to a controller that has none: how a node that was a quorum of its own joins a cluster.

A broker that has no controller of its own any more brings a snapshot of the metadata in its folder; a controller that
is its quorum's only voter takes it, if no broker and no topic is known to it yet, and continues that history. On the
wire it is a Produce request to the metadata topic, whose transactional id says what is produced: the cluster's id and
the snapshot's name. Start at `HandedMetadata`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from moldau.controller.errors import RefusedError
from moldau.controller.image import MetadataImage
from moldau.controller.snapshots import SnapshotId, decode_snapshot, newest_first, snapshot_name
from moldau.controller.topic_names import METADATA_TOPIC
from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.messages import Message

__all__ = ["HandedMetadata", "check_hand_over"]

FROM_ALL: Final = -1


class HandedMetadata(NamedTuple):
    cluster_id: str
    snapshot: SnapshotId
    data: bytes
    """The snapshot's file."""

    def to_wire(self, timeout_ms: int) -> Message:
        records = Message(index=0, records=self.data)
        return Message(
            transactional_id=f"{self.cluster_id}/{snapshot_name(self.snapshot)}",
            acks=FROM_ALL,
            timeout_ms=timeout_ms,
            topic_data=[Message(name=METADATA_TOPIC, partition_data=[records])],
        )

    @classmethod
    def from_wire(cls, request: Message) -> HandedMetadata:
        """Raises `RefusedError` for anything else that might be produced."""
        cluster_id, _, name = (request.transactional_id or "").partition("/")
        snapshots = newest_first([name])
        topics = request.topic_data
        is_whole = len(topics) == 1 and topics[0].name == METADATA_TOPIC and len(topics[0].partition_data) == 1
        if not snapshots or not cluster_id or not is_whole or not topics[0].partition_data[0].records:
            raise RefusedError(
                ErrorCode.INVALID_REQUEST,
                "a controller accepts no records except a snapshot of the metadata of a whole cluster",
            )
        return cls(cluster_id, snapshots[0], bytes(topics[0].partition_data[0].records))


def check_hand_over(handed: HandedMetadata, image: MetadataImage) -> None:
    """Raise `RefusedError` unless a controller with this image may take the metadata."""
    if image.brokers or image.topics:
        raise RefusedError(ErrorCode.DUPLICATE_RESOURCE, "this cluster has metadata already")
    try:
        decode_snapshot(handed.data)
    except MoldauError as error:
        raise RefusedError(ErrorCode.CORRUPT_MESSAGE, f"the metadata cannot be read: {error}") from None
