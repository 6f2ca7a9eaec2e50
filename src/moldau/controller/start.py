"""Starting a node that is its own quorum: one epoch claimed, one group of records, one sync.

Registration, unfencing and a new leader epoch for every partition are committed together, so that a
start costs the disk as little as it can. Start at `start_alone`.
"""

from __future__ import annotations

import uuid
from itertools import chain

from moldau.controller.brokers import BrokerRegistration, registration, unfencing
from moldau.controller.features import INITIAL_LEVELS
from moldau.controller.image import MetadataImage
from moldau.controller.metadata_log import MetadataLog
from moldau.controller.quorum import QuorumOfOne
from moldau.controller.replay import ImageDelta, replayed
from moldau.protocol.metadata_records import FeatureLevelRecord, MetadataRecord

__all__ = ["start_alone"]


def start_alone(
    log: MetadataLog, image: MetadataImage, broker: BrokerRegistration, *, directory_id: uuid.UUID | None = None
) -> tuple[QuorumOfOne, ImageDelta]:
    """Take up leadership of the metadata and of every partition; `image` is what `log.load` returned."""
    quorum = QuorumOfOne(log, node_id=broker.node_id, directory_id=directory_id)
    quorum.claim()
    first = _first_records(log) if not image.features else []
    broker_epoch = quorum.next_offset + len(first)
    records = [
        *first,
        *chain([registration(broker, broker_epoch)], unfencing(image, broker.node_id, broker_epoch)),
    ]
    committed = quorum.append_now(records)
    return quorum, replayed(image, records, offset=committed.offset, epoch=committed.epoch)


def _first_records(log: MetadataLog) -> list[MetadataRecord]:
    """What an empty log begins with: as formatted, or the levels of this release."""
    formatted = log.bootstrap_records()
    named = {record.name for record in formatted if isinstance(record, FeatureLevelRecord)}
    missing = [
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in INITIAL_LEVELS.items()
        if name not in named
    ]
    return [*missing, *formatted]
