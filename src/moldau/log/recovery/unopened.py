"""Logs that could not be created or opened: their placeholders, and opening a folder that exists already.

A full disk or a lack of file descriptors is temporary. Until it is resolved the partition exists but is offline: its
log is a placeholder without files that rejects every request with the reason and keeps the values of the last run's
checkpoints, so that the next checkpoint contains the same. Start at `unopened_log`; `log.manager` retries.
"""

from __future__ import annotations

import uuid

from moldau.core.clock import Clock
from moldau.core.ids import TopicPartition
from moldau.log.config import LogConfig
from moldau.log.errors import StorageError
from moldau.log.files import Files
from moldau.log.log_events import LogEvents
from moldau.log.partition_files import PartitionMetadata
from moldau.log.partition_log import PartitionLog
from moldau.log.recovery.loading import LastRun, open_log
from moldau.log.segments.segment import Segment

__all__ = ["adopt_log", "belongs_to_another_topic", "unopened_log"]


def unopened_log(
    directory: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    last_run: LastRun,
    reason: str,
    *,
    files: Files,
    clock: Clock,
    events: LogEvents,
) -> PartitionLog:
    """Return a placeholder for a log that cannot be opened. It never touches the disk."""
    start_offset = last_run.log_start_offset or 0
    end_offset = max(start_offset, last_run.recovery_point or 0)
    # The segment begins at 0 so that a log start from the checkpoint is written into the next checkpoint.
    segment = Segment(files, directory, 0)
    stand_in = PartitionLog(
        directory,
        topic_partition,
        config,
        [segment],
        log_start_offset=start_offset,
        log_end_offset=end_offset,
        recovery_point=end_offset,
        high_watermark=min(max(start_offset, last_run.high_watermark or 0), end_offset),
        files=files,
        clock=clock,
        events=events,
    )
    stand_in.offline_error = StorageError(reason)
    # The manifest keeps requiring what it required before, and never lists the placeholder's segment.
    stand_in.recorded = last_run.entry
    stand_in.withhold_all()
    # Only the recovery point of a clean shutdown may be written again as the log end.
    stand_in.needs_recovery = not last_run.is_clean or last_run.recovery_point is None
    return stand_in


def belongs_to_another_topic(files: Files, directory: str, topic_id: uuid.UUID | None) -> bool:
    """Whether a folder was left by an older topic of the same name; a folder without a topic id matches any topic."""
    found = PartitionMetadata(files, directory).topic_id
    return found is not None and topic_id is not None and found != topic_id


def adopt_log(
    directory: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    last_run: LastRun,
    topic_id: uuid.UUID | None,
    *,
    files: Files,
    clock: Clock,
    events: LogEvents,
    truncate_corruption: bool,
) -> PartitionLog:
    """Open an existing folder, complete or partial: creating it failed midway, or a crash interrupted it."""
    opened = open_log(
        directory,
        topic_partition,
        config,
        last_run,
        files=files,
        clock=clock,
        events=events,
        truncate_corruption=truncate_corruption,
    )
    if opened.topic_id is None and topic_id is not None and opened.offline_error is None:
        opened.assign_topic_id(topic_id)
    return opened
