"""Starts the controller: replays the metadata log, claims an epoch, registers this broker.

Start at `start_controller`.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from moldau.controller.controller import Controller
from moldau.controller.decisions.brokers import BrokerRegistration, registration, unfencing
from moldau.controller.features import INITIAL_LEVELS, METADATA_VERSION
from moldau.controller.image import Endpoint, MetadataImage
from moldau.controller.metadata_log import METADATA_PARTITION, MetadataLog
from moldau.controller.metadata_loss import metadata_loss, recorded_end
from moldau.controller.quorum.quorum import QuorumOfOne
from moldau.controller.quorum.state import load_quorum_state
from moldau.controller.snapshots import newest_first
from moldau.core.activity import Activity
from moldau.core.clock import Clock
from moldau.core.config import BrokerConfig
from moldau.core.config.sections import MetadataLogSettings
from moldau.core.errors import StartupError
from moldau.log.config import LogConfig
from moldau.log.directories.manifest import Manifest
from moldau.log.directories.manifest_keeper import MetadataMark
from moldau.log.errors import StorageError
from moldau.log.files import Files
from moldau.log.log_events import LogEvents
from moldau.log.partition_log import PartitionLog
from moldau.log.recovery.loading import LastRun, create_log, open_log
from moldau.protocol.metadata_records import FeatureLevelRecord, MetadataRecord
from moldau.server.directories import metadata_directory
from moldau.server.metadata_versions import features_at

__all__ = ["MetadataSource", "StartedController", "open_metadata_partition", "start_controller"]

log = logging.getLogger(__name__)


class MetadataSource(Protocol):
    """Where a node's metadata comes from: a controller of its own, or that of a cluster."""

    @property
    def controller(self) -> Controller: ...

    @property
    def metadata_log(self) -> MetadataLog: ...

    @property
    def activity(self) -> Activity:
        """What the metadata log is doing, for the watchdog."""
        ...

    def snapshot_round(self) -> None:
        """Write a snapshot if one is due. Runs in the maintenance thread."""
        ...


@dataclass(slots=True)
class StartedController:
    controller: Controller
    quorum: QuorumOfOne
    metadata_log: MetadataLog
    node_id: int
    known_epoch: int
    """The newest epoch recorded on disk before this start."""
    recorded_end: int
    """The end of the metadata log on disk, as last recorded by the previous run."""

    @property
    def activity(self) -> Activity:
        return self.quorum.activity

    def metadata_mark(self) -> MetadataMark:
        """The mark to store in the manifests. Before `join` this run has no epoch of its own."""
        end_offset = max(self.recorded_end, self.metadata_log.partition.recovery_point)
        return MetadataMark(max(self.known_epoch, self.quorum.epoch), end_offset)

    def join(self, endpoints: Sequence[Endpoint], log_dirs: Sequence[uuid.UUID], rack: str | None) -> int:
        """Register this broker and make it lead its partitions, each in a new leader epoch; returns its broker epoch.

        Call it once the logs are recovered and the listeners bound: from then on clients are sent to this broker.
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
        self.controller.apply_committed(records, self.quorum.append_now(records))
        return broker_epoch

    def snapshot_round(self) -> None:
        """Write a snapshot if one is due. Runs in the maintenance thread."""
        image = self.controller.image
        if self.metadata_log.is_snapshot_due(image):
            try:
                self.metadata_log.save_snapshot(image)
                self.metadata_log.trim()
            except (OSError, StorageError) as error:
                log.error("cannot write a snapshot of the metadata, will retry: %s", error)

    def close(self) -> None:
        """Close the quorum. Not to be called on the event loop."""
        self.quorum.close()


def start_controller(
    current_config: Callable[[], BrokerConfig],
    *,
    files: Files,
    clock: Clock,
    events: LogEvents,
    manifests: Sequence[Manifest] = (),
    partition_folders: Sequence[str] = (),
) -> StartedController:
    """Open the metadata log and replay it into an image; the controller is ready once the broker has joined.

    Raises `StartupError`, before anything is changed, if the log is shorter than the manifests say, or is empty
    although there are partitions.
    """
    config = current_config()
    directory = os.path.join(metadata_directory(config), str(METADATA_PARTITION))
    known_end = recorded_end(manifests, load_quorum_state(files, directory).leader_epoch)
    if not _holds_metadata(files, directory):
        _check(metadata_loss(directory, end_offset=0, recorded_end=known_end, partitions=partition_folders))
    partition = open_metadata_partition(directory, config, files, clock, events, known_end)
    if partition.offline_error is not None:
        _check(metadata_loss(directory, end_offset=partition.log_end_offset, recorded_end=known_end, partitions=()))
        raise StartupError(f"the metadata log cannot be used: {partition.offline_error}")
    settings = config.section(MetadataLogSettings)
    metadata_log = MetadataLog(
        partition,
        clock,
        snapshot_after_bytes=settings.snapshot_after_bytes,
        keep_bytes=settings.retention_bytes,
    )
    image = metadata_log.load()
    _check(metadata_loss(directory, end_offset=image.offset + 1, recorded_end=0, partitions=partition_folders))
    quorum = QuorumOfOne(metadata_log, node_id=config.node_id)
    return StartedController(
        Controller(quorum, image, current_config),
        quorum,
        metadata_log,
        config.node_id,
        quorum.known_epoch(),
        known_end,
    )


def _check(problem: str | None) -> None:
    if problem is not None:
        raise StartupError(problem)


def _holds_metadata(files: Files, directory: str) -> bool:
    """Whether there is any segment with content, or a snapshot."""
    if not os.path.isdir(directory):
        return False
    names = files.names(directory)
    segments = [name for name in names if name.endswith(".log")]
    return bool(newest_first(names)) or any(files.size(os.path.join(directory, name)) for name in segments)


def _first_records(metadata_log: MetadataLog) -> list[MetadataRecord]:
    """The first records of a new cluster's log: those it was formatted with, or this release's feature levels."""
    given = metadata_log.bootstrap_records()
    return given or [FeatureLevelRecord(name=name, feature_level=level) for name, level in INITIAL_LEVELS.items()]


def _new_features(image: MetadataImage, records: Sequence[MetadataRecord]) -> list[MetadataRecord]:
    """Records for features missing from the log, which an older release may have written."""
    known = dict(image.features)
    known |= {one.name: one.feature_level for one in records if isinstance(one, FeatureLevelRecord)}
    levels = features_at(known.get(METADATA_VERSION, 0))
    return [
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in levels.items()
        if level > 0 and name not in known
    ]


def open_metadata_partition(  # noqa: PLR0917
    directory: str, config: BrokerConfig, files: Files, clock: Clock, events: LogEvents, known_end: int = 0
) -> PartitionLog:
    """Open the partition of the metadata log, or create it; everything below `known_end` was on disk."""
    settings = config.section(MetadataLogSettings)
    log_config = LogConfig(
        cleanup_policy=frozenset(),
        segment_bytes=settings.segment_bytes,
        segment_ms=settings.segment_ms,
    )
    try:
        if not os.path.isdir(directory):
            return create_log(directory, METADATA_PARTITION, log_config, files=files, clock=clock, events=events)
        last_run = LastRun(flushed_end=known_end)
        return open_log(directory, METADATA_PARTITION, log_config, last_run, files=files, clock=clock, events=events)
    except OSError as error:
        raise StartupError(f"cannot open the metadata log {directory}: {error.strerror}") from None
