"""Bringing the controller up: the metadata log replayed, an epoch claimed, this broker registered.

Start at `start_controller`.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from moldau.controller.brokers import BrokerRegistration, registration, unfencing
from moldau.controller.controller import Controller
from moldau.controller.features import INITIAL_LEVELS, METADATA_VERSION
from moldau.controller.image import Endpoint, MetadataImage
from moldau.controller.metadata_log import METADATA_PARTITION, MetadataLog
from moldau.controller.quorum import QuorumOfOne
from moldau.core.clock import Clock
from moldau.core.config import BrokerConfig
from moldau.core.errors import StartupError
from moldau.log.config import LogConfig
from moldau.log.files import Files
from moldau.log.loading import create_log, open_log
from moldau.log.log_state import LogEvents
from moldau.log.partition_log import PartitionLog
from moldau.protocol.metadata_records import FeatureLevelRecord, MetadataRecord
from moldau.server.directories import metadata_directory
from moldau.server.metadata_versions import features_at

__all__ = ["StartedController", "start_controller"]


@dataclass(slots=True)
class StartedController:
    controller: Controller
    quorum: QuorumOfOne
    metadata_log: MetadataLog
    node_id: int

    def join(self, endpoints: Sequence[Endpoint], log_dirs: Sequence[uuid.UUID], rack: str | None) -> int:
        """Register this broker and let it lead its partitions, each in a new leader epoch; returns its broker epoch.

        To be called when its logs are recovered and its listeners bound: from here on clients are sent to it.
        """
        image = self.controller.image
        self.quorum.claim()
        records = _first_records(self.metadata_log) if image.offset < 0 else []
        records += _new_features(image, records)
        broker_epoch = self.quorum.next_offset + len(records)
        me = BrokerRegistration(
            node_id=self.node_id, incarnation_id=uuid.uuid4(), endpoints=endpoints, rack=rack, log_dirs=log_dirs
        )
        records.append(registration(me, broker_epoch))
        records += unfencing(image, self.node_id, broker_epoch)
        self.controller.applied(records, self.quorum.append_now(records))
        return broker_epoch

    def snapshot_round(self) -> None:
        """Write a snapshot when one is due; in the maintenance thread."""
        image = self.controller.image
        if self.metadata_log.is_snapshot_due(image):
            self.metadata_log.save_snapshot(image)
            self.metadata_log.trim()

    def close(self) -> None:
        """Off the loop."""
        self.quorum.close()


def start_controller(
    current_config: Callable[[], BrokerConfig], *, files: Files, clock: Clock, events: LogEvents
) -> StartedController:
    """Open the metadata log and replay it into an image; the controller is ready once the broker has joined."""
    config = current_config()
    partition = _open_partition(config, files, clock, events)
    if partition.offline_error is not None:
        raise StartupError(f"the metadata log cannot be used: {partition.offline_error}")
    metadata_log = MetadataLog(
        partition,
        clock,
        snapshot_after_bytes=config.value("metadata.log.max.record.bytes.between.snapshots"),
        keep_bytes=config.value("metadata.max.retention.bytes"),
    )
    quorum = QuorumOfOne(metadata_log, node_id=config.node_id)
    return StartedController(
        Controller(quorum, metadata_log.load(), current_config), quorum, metadata_log, config.node_id
    )


def _first_records(metadata_log: MetadataLog) -> list[MetadataRecord]:
    """What a new cluster's log begins with: what it was formatted with, or this release's feature levels."""
    given = metadata_log.bootstrap_records()
    return given or [FeatureLevelRecord(name=name, feature_level=level) for name, level in INITIAL_LEVELS.items()]


def _new_features(image: MetadataImage, records: Sequence[MetadataRecord]) -> list[MetadataRecord]:
    """Features that came with this release, where the log says nothing of them: an older one may have written it."""
    known = dict(image.features)
    known |= {one.name: one.feature_level for one in records if isinstance(one, FeatureLevelRecord)}
    levels = features_at(known.get(METADATA_VERSION, 0))
    return [
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in levels.items()
        if level > 0 and name not in known
    ]


def _open_partition(config: BrokerConfig, files: Files, clock: Clock, events: LogEvents) -> PartitionLog:
    directory = os.path.join(metadata_directory(config), str(METADATA_PARTITION))
    log_config = LogConfig(
        cleanup_policy=frozenset(),
        segment_bytes=config.value("metadata.log.segment.bytes"),
        segment_ms=config.value("metadata.log.segment.ms"),
    )
    make = open_log if os.path.isdir(directory) else create_log
    try:
        return make(directory, METADATA_PARTITION, log_config, files=files, clock=clock, events=events)
    except OSError as error:
        raise StartupError(f"cannot open the metadata log {directory}: {error.strerror}") from None
