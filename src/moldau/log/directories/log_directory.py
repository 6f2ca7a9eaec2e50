"""One entry of `log.dirs`: its lock, its checkpoints and its manifest.

`log.manager` knows the partitions and passes them in. A failed write is logged and retried in the next round. Start
at `LogDirectory.load`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from moldau.core.errors import StartupError
from moldau.core.ids import TopicPartition
from moldau.log.directories.checkpoints import (
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    load_checkpoint,
    save_checkpoint,
    save_clean_shutdown,
    take_clean_shutdown,
)
from moldau.log.directories.manifest import PartitionEntry
from moldau.log.directories.manifest_keeper import ManifestKeeper, MetadataMark
from moldau.log.files import FileLock, Files
from moldau.log.partition_log import PartitionLog
from moldau.log.recovery.loading import LastRun

__all__ = ["LogDirectory"]

log = logging.getLogger("moldau.log")

_LEAST_ROOM_BYTES: Final = 1024 * 1024
"""A directory with less free space than this is chosen for new partitions only if there is no other."""


class LogDirectory:
    """Methods that need the partitions take them as an argument: all logs whose folders are in this directory."""

    def __init__(self, path: str, files: Files) -> None:
        self.path = os.path.abspath(path)
        self.files = files
        self.error: str | None = None
        """Why the directory is offline."""
        self.is_clean = False
        self.manifest = ManifestKeeper(files, self.path)
        self._lock: FileLock | None = None
        self._saved: dict[str, dict[TopicPartition, int]] = {}

    def lock(self) -> None:
        """Take the exclusive lock; raises `StartupError` while another broker holds it."""
        if self._lock is not None:
            return
        try:
            self.files.make_directory(self.path)
            self._lock = self.files.lock(os.path.join(self.path, ".lock"))
        except OSError as error:
            raise StartupError(f"cannot use log directory {self.path}: {error.strerror}") from None
        if self._lock is None:
            raise StartupError(f"log directory {self.path} is in use by another broker")

    def unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def load(self) -> None:
        self.is_clean = take_clean_shutdown(self.files, self.path)
        for name in (RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS):
            self._saved[name] = load_checkpoint(self.files, os.path.join(self.path, name))

    def last_run(self, topic_partition: TopicPartition) -> LastRun:
        saved = self._saved
        return LastRun(
            self.is_clean,
            saved[RECOVERY_POINTS].get(topic_partition),
            saved[LOG_START_OFFSETS].get(topic_partition),
            saved[HIGH_WATERMARKS].get(topic_partition),
        )

    def has_room(self) -> bool:
        try:
            return self.files.space(self.path)[1] >= _LEAST_ROOM_BYTES
        except OSError:
            return False

    # --- checkpoints ------------------------------------------------------------------------------------

    def save_offsets(self, logs: Iterable[PartitionLog]) -> bool:
        """Save log starts and recovery points; return whether the recovery points are on disk."""
        logs = list(logs)
        self._save(
            LOG_START_OFFSETS, {each.topic_partition: each.log_start_offset for each in logs if each.has_moved_start}
        )
        return self.save_recovery_points(logs)

    def save_recovery_points(self, logs: Iterable[PartitionLog]) -> bool:
        """Save recovery points; return whether they are on disk."""
        return self._save(RECOVERY_POINTS, _recovery_points(logs))

    def save_high_watermarks(self, logs: Iterable[PartitionLog]) -> None:
        self._save(HIGH_WATERMARKS, {each.topic_partition: each.high_watermark for each in logs})

    def _lower_recovery_points(self, logs: Sequence[PartitionLog]) -> bool:
        """Save lowered recovery points of truncated logs: the next start would otherwise not check their records."""
        saved = self._saved.get(RECOVERY_POINTS, {})
        if all(each.recovery_point >= saved.get(each.topic_partition, 0) for each in logs):
            return True
        return self.save_recovery_points(logs)

    def _save(self, name: str, offsets: dict[TopicPartition, int]) -> bool:
        """Write a checkpoint if its content changed; return whether it is on disk."""
        if self._saved.get(name) == offsets:
            return True
        path = os.path.join(self.path, name)
        try:
            save_checkpoint(self.files, path, offsets)
        except OSError as error:
            log.error("cannot write %s, will retry: %s", path, error)
            return False
        self._saved[name] = offsets
        return True

    # --- the manifest -----------------------------------------------------------------------------------

    def save_first_manifest(
        self, logs: Sequence[PartitionLog], metadata: MetadataMark, missing: Mapping[TopicPartition, PartitionEntry]
    ) -> None:
        """Save the manifest after a start; it still lists the partitions that are `missing`."""
        if self._lower_recovery_points(logs):
            try:
                self.manifest.save(logs, metadata, missing=missing)
            except OSError as error:
                log.error("cannot write %s, will retry: %s", self.manifest.path, error)

    def save_manifest(self, logs: Sequence[PartitionLog], metadata: MetadataMark) -> bool:
        """Save the manifest; return whether files that it does not list may be deleted."""
        return self._lower_recovery_points(logs) and self.manifest.save_or_withdraw(logs, metadata)

    def end_in_order(self, logs: Sequence[PartitionLog], metadata: MetadataMark, broker_epoch: int) -> None:
        """Save the final manifest, with the sizes of all files, and write the clean-shutdown marker.

        If the manifest cannot be written, the next start compares with the one of the last round.
        """
        try:
            self.manifest.save(logs, metadata, is_stopped=True)
        except OSError as error:
            log.error("cannot write %s: %s", self.manifest.path, error)
        try:
            save_clean_shutdown(self.files, self.path, broker_epoch)
        except OSError as error:
            log.error("%s: no clean-shutdown marker, the next start recovers: %s", self.path, error.strerror)


def _recovery_points(logs: Iterable[PartitionLog]) -> dict[TopicPartition, int]:
    """Recovery points of all logs except those that need recovery: without one, the next start recovers the log."""
    return {each.topic_partition: each.recovery_point for each in logs if not each.needs_recovery}
