"""All partitions of a broker's log directories: opening, creating, deleting, and the regular rounds.

The loop thread opens, creates and deletes partitions; one maintenance thread calls the rounds
(`retention_round`, `flush_round`, `checkpoint`, `delete_retired`) as `log.partition_log` explains. The
metadata log `__cluster_metadata-0` lives in the same place but belongs to the controller and is left alone. What is
kept once for each directory is `log.directories.log_directory`. Start at `LogManager.open`.
"""

from __future__ import annotations

import logging
import os
import re
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from moldau.core.clock import Clock, SystemClock
from moldau.core.errors import StartupError
from moldau.core.ids import TopicPartition
from moldau.log.config import LogConfig, is_flush_due
from moldau.log.directories.log_directory import LogDirectory
from moldau.log.directories.manifest import Manifest, PartitionEntry
from moldau.log.directories.manifest_keeper import MetadataMark
from moldau.log.errors import TRANSIENT_ERRNOS, StorageError
from moldau.log.files import Files
from moldau.log.log_events import LogEvents
from moldau.log.open_files import OPEN_FILES
from moldau.log.partition_files import PartitionMetadata
from moldau.log.partition_log import PartitionLog
from moldau.log.recovery.loading import LastRun, create_log, missing_log, open_log
from moldau.log.recovery.unopened import adopt_log, belongs_to_another_topic, unopened_log

__all__ = ["LogManager", "aside_name"]

log = logging.getLogger("moldau.log")

_METADATA_DIRECTORY: Final = "__cluster_metadata-0"
_PARTITION_FOLDER: Final = re.compile(r".+-[0-9]+")
_LONGEST_NAME: Final = 255
_FEW: Final = 16
_SEGMENTS_A_TURN: Final = 20_000
_CLOSING_THREADS: Final = 8
"""Syncs of many files take a fraction of the time when the disk sees several at once."""

Work = TypeVar("Work")
Result = TypeVar("Result")


def _call(function: Callable[[], None]) -> None:
    function()


def aside_name(topic_partition: TopicPartition, suffix: str) -> str:
    """A directory name that no partition has: `<topic>-<partition>.<id><suffix>`, cut to what a disk allows."""
    tail = f"-{topic_partition.partition}.{uuid.uuid4().hex}{suffix}"
    return topic_partition.topic[: _LONGEST_NAME - len(tail)] + tail


class LogManager:
    def __init__(
        self,
        log_dirs: Sequence[str],
        files: Files | None = None,
        clock: Clock | None = None,
        config_of: Callable[[str], LogConfig] = lambda topic: LogConfig(),
        *,
        events: LogEvents | None = None,
        call_on_loop: Callable[[Callable[[], None]], None] = _call,
        truncate_corruption: bool = False,
        recovery_threads: int = 1,
        producer_id_expiration_ms: int = 86_400_000,
        broker_epoch: int = -1,
    ) -> None:
        self.files = files or Files()
        self.clock = clock or SystemClock()
        self.config_of = config_of
        self.events = events or LogEvents()
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self.broker_epoch = broker_epoch
        self.directories = [LogDirectory(path, self.files) for path in log_dirs]
        self._by_path = {directory.path: directory for directory in self.directories}
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._unopened: dict[TopicPartition, LastRun] = {}
        """Partitions whose log could not be created or opened, in retry order."""
        self._next_to_release = 0
        self._doomed: list[tuple[int, str]] = []
        """Directories of deleted partitions, and when they may be removed."""
        self.metadata_mark: Callable[[], MetadataMark] = MetadataMark
        """How far the metadata log is on disk, which the manifests record."""
        self._recorded: dict[TopicPartition, tuple[PartitionEntry, Manifest]] = {}
        """What the manifests require; empty once the logs are open."""
        self._missing: dict[str, dict[TopicPartition, PartitionEntry]] = {}
        """Partitions without a folder that a manifest lists, until the metadata says whether they still exist."""
        self._call_on_loop = call_on_loop
        self._truncate_corruption = truncate_corruption
        self._recovery_threads = recovery_threads

    # --- opening and closing ----------------------------------------------------------------------------

    def lock(self) -> None:
        """Lock all directories; before anything in them is read. `open` does so too."""
        for directory in self.directories:
            directory.lock()

    def load_manifests(self) -> None:
        """Read what the last run left in each directory; `open` does so too."""
        self.lock()
        for directory in self.directories:
            try:
                directory.manifest.load()
            except OSError as error:
                raise StartupError(f"cannot read {directory.manifest.path}: {error}") from error

    @property
    def manifests(self) -> list[Manifest]:
        """What the last run left, one for each directory that has one."""
        return [found for each in self.directories if (found := each.manifest.recorded) is not None]

    def open(self, metadata_epoch: int | None = None) -> None:
        """Open every partition found on disk, recovering those that were not closed in order.

        `metadata_epoch` is the newest epoch of the metadata quorum that the files know; where it is above the one in
        a manifest, another broker has run here since.
        """
        self.load_manifests()
        self._load_manifest_entries(metadata_epoch)
        self._open_all()
        self._note_missing()
        for directory in self.directories:
            missing = self._missing.get(directory.path, {})
            directory.save_first_manifest(self._logs_in(directory), self.metadata_mark(), missing)

    def _load_manifest_entries(self, metadata_epoch: int | None) -> None:
        for directory in self.directories:
            manifest = directory.manifest.recorded
            if manifest is None:
                continue
            if metadata_epoch is not None and manifest.is_outdated(metadata_epoch):
                log.info("%s: another broker has run here since, so it is rewritten", directory.manifest.path)
                continue
            self._recorded.update({partition: (entry, manifest) for partition, entry in manifest.partitions.items()})

    def _note_missing(self) -> None:
        recorded, self._recorded = self._recorded, {}
        for directory in self.directories:
            listed = directory.manifest.recorded.partitions if directory.manifest.recorded is not None else {}
            self._missing[directory.path] = {
                partition: recorded[partition][0]
                for partition in listed
                if partition in recorded and partition not in self._logs
            }

    def _open_all(self) -> None:
        for directory in self.directories:
            try:
                directory.load()
                found = self._find_partitions(directory)
            except OSError as error:
                raise StartupError(f"cannot read log directory {directory.path}: {error}") from error
            if directory.is_clean or self._recovery_threads <= 1 or len(found) < 2:
                logs = [self._open_partition(directory, *partition) for partition in found]
            else:
                logs = self._open_in_parallel(directory, found)
            for opened in logs:
                self._register(opened)

    def _register(self, opened: PartitionLog) -> None:
        self._logs[opened.topic_partition] = opened
        directory = self._by_path[os.path.dirname(opened.directory)]

        def save_manifest() -> None:
            if not directory.save_manifest(self._logs_in(directory), self.metadata_mark()):
                raise StorageError(f"{directory.manifest.path} cannot be written, so no segment may be replaced")

        opened.list_in_manifest(save_manifest)

    def partition_folders(self) -> list[str]:
        """The names of all folders that look like a partition's."""
        return [
            name
            for directory in self.directories
            for name in self.files.subdirectories(directory.path)
            if name != _METADATA_DIRECTORY and _PARTITION_FOLDER.fullmatch(name)
        ]

    def _find_partitions(self, directory: LogDirectory) -> list[tuple[str, TopicPartition]]:
        found = []
        for name in self.files.subdirectories(directory.path):
            if name == _METADATA_DIRECTORY or name.endswith(("-stray", "-future")):
                continue
            if name.endswith("-delete"):
                self._doomed.append((self.clock.now_ms(), os.path.join(directory.path, name)))
                continue
            try:
                topic_partition = TopicPartition.parse(name)
            except ValueError:
                log.warning("%s is not a partition's directory and is left alone", os.path.join(directory.path, name))
                continue
            if topic_partition in self._logs:
                raise StartupError(
                    f"{topic_partition} is in two log directories: {self._logs[topic_partition].directory} "
                    f"and {os.path.join(directory.path, name)}"
                )
            found.append((name, topic_partition))
        return found

    def _open_partition(self, directory: LogDirectory, name: str, topic_partition: TopicPartition) -> PartitionLog:
        path, last_run = f"{directory.path}/{name}", directory.last_run(topic_partition)
        try:
            entry, is_exact = self._entry_for(directory, path, topic_partition)
            last_run = replace(last_run, entry=entry, is_entry_exact=is_exact)
            return open_log(
                path,
                topic_partition,
                self.config_of(topic_partition.topic),
                last_run,
                files=self.files,
                clock=self.clock,
                events=self.events,
                truncate_corruption=self._truncate_corruption,
            )
        except OSError as error:
            if error.errno not in TRANSIENT_ERRNOS:
                raise StartupError(f"cannot open {path}: {error}") from error
            return self._stand_in(path, topic_partition, last_run, f"cannot open {path}: {error.strerror}")

    def _entry_for(
        self, directory: LogDirectory, path: str, topic_partition: TopicPartition
    ) -> tuple[PartitionEntry | None, bool]:
        """The manifest's entry for a folder, and whether nothing was written since.

        After a crash the entry may belong to a topic that was deleted and recreated under the same name.
        """
        entry, manifest = self._recorded.get(topic_partition, (None, None))
        if entry is None or manifest is None:
            return None, False
        is_exact = directory.is_clean and manifest.is_stopped
        is_same = is_exact or PartitionMetadata(self.files, path).topic_id == entry.topic_id
        return (entry if is_same else None), is_exact

    def _open_in_parallel(
        self, directory: LogDirectory, found: Sequence[tuple[str, TopicPartition]]
    ) -> list[PartitionLog]:
        """Recovery waits for the disk more than it computes; `num.recovery.threads.per.data.dir` overlap it."""
        return self._in_threads(
            lambda partition: self._open_partition(directory, *partition), list(found), self._recovery_threads
        )

    def _in_threads(self, work: Callable[[Work], Result], items: Sequence[Work], threads: int) -> list[Result]:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads, "moldau-logs") as pool:
            return list(pool.map(work, items))

    def close(self) -> None:
        """Write everything to disk, then the clean-shutdown marker."""
        if any(each.leaving for each in self):
            self.manifest_round(self.clock.now_ms())
        dirty = [partition_log for partition_log in self if partition_log.is_dirty]
        if len(dirty) > _FEW:
            self._in_threads(_try_to_close, dirty, _CLOSING_THREADS)
        for partition_log in self:
            _close(partition_log)
        saved = self._save_checkpoints()
        for directory in self.directories:
            if directory not in saved:
                # The marker says that the recovery points are the logs' ends, and those on disk are older.
                log.error("%s: no clean-shutdown marker, the next start recovers", directory.path)
                directory.unlock()
                continue
            directory.end_in_order(self._logs_in(directory), self.metadata_mark(), self.broker_epoch)
            directory.unlock()

    def abandon(self) -> None:
        """Release all files and locks without writing anything, as a crash would."""
        for partition_log in self._logs.values():
            partition_log.abandon()
        for directory in self.directories:
            directory.unlock()

    # --- partitions -------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(list(self._logs.values()))

    def __len__(self) -> int:
        return len(self._logs)

    def get(self, topic_partition: TopicPartition) -> PartitionLog | None:
        return self._logs.get(topic_partition)

    def create(
        self, topic_partition: TopicPartition, topic_id: uuid.UUID | None = None, config: LogConfig | None = None
    ) -> PartitionLog:
        """Create a partition in the directory with the fewest partitions; an existing one is returned."""
        existing = self._logs.get(topic_partition)
        if existing is not None:
            return existing
        path = f"{self._directory_for(topic_partition).path}/{topic_partition}"
        config = config or self.config_of(topic_partition.topic)
        created = self._open_or_create(path, topic_partition, LastRun(), topic_id, config)
        self._register(created)
        return created

    def _open_or_create(
        self,
        path: str,
        topic_partition: TopicPartition,
        last_run: LastRun,
        topic_id: uuid.UUID | None,
        config: LogConfig,
    ) -> PartitionLog:
        """Create a log, or open an existing folder. A folder of an older topic with this name is moved aside first."""
        verb = "open"
        try:
            if self.files.exists(path) and belongs_to_another_topic(self.files, path, topic_id):
                aside = f"{os.path.dirname(path)}/{aside_name(topic_partition, '-stray')}"
                self.files.rename(path, aside)
                log.warning("%s belongs to an older topic of that name and was moved to %s", path, aside)
            verb = "open" if self.files.exists(path) else "create"
            if verb == "create":
                return create_log(
                    path,
                    topic_partition,
                    config,
                    topic_id=topic_id,
                    files=self.files,
                    clock=self.clock,
                    events=self.events,
                )
            return adopt_log(
                path,
                topic_partition,
                config,
                last_run,
                topic_id,
                files=self.files,
                clock=self.clock,
                events=self.events,
                truncate_corruption=self._truncate_corruption,
            )
        except OSError as error:
            raise StorageError(f"cannot {verb} {path}: {error.strerror}") from error

    def missing(self) -> dict[TopicPartition, uuid.UUID]:
        """Partitions whose folder was here and is not, with the id of the topic they belonged to."""
        found = {partition: entry.topic_id for listed in self._missing.values() for partition, entry in listed.items()}
        return {partition: topic_id for partition, topic_id in found.items() if topic_id is not None}

    def take_up_missing(self, wanted: Collection[TopicPartition]) -> None:
        """Create an offline log for each of these missing partitions, whose topics still exist; drop the others.

        With `moldau.recovery.truncate` the loss is accepted and they start empty.
        """
        missing, self._missing = self._missing, {}
        for path, listed in missing.items():
            for partition in [one for one in listed if one in wanted]:
                folder = f"{path}/{partition}"
                if self._truncate_corruption:
                    log.warning("%s is missing; accepted, since moldau.recovery.truncate is set", folder)
                    continue
                self._register(
                    missing_log(
                        folder,
                        partition,
                        self.config_of(partition.topic),
                        listed[partition],
                        files=self.files,
                        clock=self.clock,
                        events=self.events,
                    )
                )

    def _directory_for(self, topic_partition: TopicPartition) -> LogDirectory:
        """The directory where a failed attempt left a folder, or else the emptiest one with free space."""
        if len(self.directories) == 1:
            return self.directories[0]
        for directory in self.directories:
            if self.files.exists(f"{directory.path}/{topic_partition}"):
                return directory
        counts = {directory.path: 0 for directory in self.directories if directory.error is None}
        for partition_log in self._logs.values():
            path = os.path.dirname(partition_log.directory)
            if path in counts:
                counts[path] += 1
        return min(map(self._by_path.__getitem__, counts), key=lambda each: (not each.has_room(), counts[each.path]))

    # --- partitions that cannot be opened for now ---------------------------------------------------------

    @property
    def unopened(self) -> list[TopicPartition]:
        """Partitions to retry, the one that waited longest first."""
        return list(self._unopened)

    def stand_in(self, topic_partition: TopicPartition, reason: str) -> PartitionLog:
        """Register an offline log for a partition that could not be created, until `reopen` succeeds."""
        path = f"{self._directory_for(topic_partition).path}/{topic_partition}"
        made = self._stand_in(path, topic_partition, LastRun(), reason)
        self._logs[topic_partition] = made
        return made

    def _stand_in(self, path: str, topic_partition: TopicPartition, last_run: LastRun, reason: str) -> PartitionLog:
        self._unopened[topic_partition] = last_run
        return unopened_log(
            path,
            topic_partition,
            self.config_of(topic_partition.topic),
            last_run,
            reason,
            files=self.files,
            clock=self.clock,
            events=self.events,
        )

    def reopen(self, topic_partition: TopicPartition, topic_id: uuid.UUID | None) -> PartitionLog:
        """Retry to create or open a log; raises `StorageError` while that fails.

        Runs in any thread, since recovery may take long; no logs may be created or deleted meanwhile. The log is used
        after `restore`.
        """
        stand_in, last_run = self._logs[topic_partition], self._unopened[topic_partition]
        path = stand_in.directory
        if len(self.directories) > 1 and not self.files.exists(path):
            path = f"{self._directory_for(topic_partition).path}/{topic_partition}"
        return self._open_or_create(path, topic_partition, last_run, topic_id, self.config_of(topic_partition.topic))

    def restore(self, reopened: PartitionLog) -> None:
        """Replace an offline stand-in by the log that was opened."""
        del self._unopened[reopened.topic_partition]
        self._register(reopened)

    def postpone(self, topic_partition: TopicPartition, reason: StorageError) -> None:
        """Move a partition that failed again to the end of the retry order."""
        self._logs[topic_partition].offline_error = reason
        self._unopened[topic_partition] = self._unopened.pop(topic_partition)

    def delete(self, topic_partition: TopicPartition) -> None:
        """Take a partition out of use; its files go after `file.delete.delay.ms`."""
        partition_log = self._move_aside(topic_partition, "-delete")
        if partition_log is not None:
            due_ms = self.clock.now_ms() + partition_log.config.file_delete_delay_ms
            self._doomed.append((due_ms, partition_log.directory))

    def set_stray_aside(self, topic_partition: TopicPartition) -> None:
        """Move a partition that is not assigned to this broker aside, without deleting anything."""
        partition_log = self._move_aside(topic_partition, "-stray")
        if partition_log is not None:
            log.warning(
                "%s is not assigned to this broker and was moved to %s", topic_partition, partition_log.directory
            )

    def _move_aside(self, topic_partition: TopicPartition, suffix: str) -> PartitionLog | None:
        """Take a partition out of use and rename its folder; `None` if there was nothing to rename."""
        partition_log = self._logs.pop(topic_partition, None)
        if partition_log is None:
            return None
        partition_log.abandon()
        self._unopened.pop(topic_partition, None)
        aside = f"{os.path.dirname(partition_log.directory)}/{aside_name(topic_partition, suffix)}"
        try:
            self.files.rename(partition_log.directory, aside)
        except FileNotFoundError:
            return None  # it was never made, or missing from the start
        except OSError as error:
            raise StorageError(f"cannot rename {partition_log.directory}: {error.strerror}") from error
        partition_log.directory = aside
        return partition_log

    def release_files(self, keep: int) -> None:
        """Close files of logs, round-robin, until no more than `keep` are open. On the loop, between appends.

        One call checks only some logs, since it blocks the loop; the caller calls again.
        """
        logs = list(self._logs.values())
        segments_left = _SEGMENTS_A_TURN
        for _ in range(len(logs)):
            if len(OPEN_FILES) <= keep or segments_left <= 0:
                break
            self._next_to_release = (self._next_to_release + 1) % len(logs)
            chosen = logs[self._next_to_release]
            chosen.close_files()
            segments_left -= len(chosen.segments)

    def update_config(self, topic: str, config: LogConfig) -> None:
        for partition_log in self:
            if partition_log.topic_partition.topic == topic:
                partition_log.config = config

    # --- rounds, in the maintenance thread --------------------------------------------------------------

    def retention_round(self, now_ms: int) -> None:
        """Delete segments by retention, close idle files, and remove expired producers."""
        for partition_log in self:
            if partition_log.offline_error is None and not partition_log.is_closed:
                try:
                    self._retain(partition_log, now_ms)
                except (OSError, StorageError) as error:
                    log.error("%s: retention failed, will retry: %s", partition_log.topic_partition, error)
        self.manifest_round(now_ms)
        self.delete_retired(now_ms)

    def manifest_round(self, now_ms: int) -> None:
        """Save the manifests that changed, then delete the segments that waited for that."""
        for directory in self.directories:
            logs = self._logs_in(directory)
            leaving = [(each, each.leaving) for each in logs if each.leaving]
            if directory.save_manifest(logs, self.metadata_mark()):
                for each, count in leaving:
                    self._retire(each, count, now_ms)

    def _retire(self, each: PartitionLog, count: int, now_ms: int) -> None:
        try:
            each.retire_leaving(count, now_ms)
        except OSError as error:
            log.error("%s: deleted segments cannot be renamed, will retry: %s", each.topic_partition, error)

    def _retain(self, partition_log: PartitionLog, now_ms: int) -> None:
        partition_log.expire_producers(now_ms, self.producer_id_expiration_ms)
        count, reason = partition_log.deletable_segments(now_ms)
        if count and count == len(partition_log.segments):
            # Only the loop thread may roll, so it does this one's deletion as well.
            self._call_on_loop(lambda: _roll_and_delete(partition_log, count, now_ms, reason))
        elif count:
            partition_log.delete_segments(count, now_ms, reason)
        partition_log.release_idle()

    def flush_round(self, now_ms: int) -> None:
        """Flush what `flush.ms` and `flush.messages` ask for."""
        monotonic_ms = self.clock.monotonic_ms()
        for partition_log in self:
            if partition_log.offline_error is None and is_flush_due(
                partition_log.config,
                unflushed_messages=partition_log.unflushed_messages,
                ms_since_flush=monotonic_ms - partition_log.last_flush_ms,
            ):
                try:
                    partition_log.flush()
                except StorageError as error:
                    log.error("%s; will retry", error)

    def delete_retired(self, now_ms: int) -> None:
        """Unlink deleted segments and partitions whose delay has passed."""
        for partition_log in self:
            try:
                partition_log.delete_retired(now_ms)
            except OSError as error:
                log.error("%s: cannot delete old files, will retry: %s", partition_log.topic_partition, error)
        for entry in [entry for entry in list(self._doomed) if entry[0] <= now_ms]:
            self.files.remove_directory(entry[1])
            self._doomed.remove(entry)

    def checkpoint(self) -> None:
        """Save what is kept behind, then recovery points, log starts and high watermarks."""
        self._save_checkpoints()

    def _save_checkpoints(self) -> list[LogDirectory]:
        """Save the checkpoints; return the directories whose recovery points are on disk."""
        for partition_log in self:
            partition_log.save()
        saved = [each for each in self.directories if each.save_offsets(self._logs_in(each))]
        self.checkpoint_high_watermarks()
        return saved

    def checkpoint_recovery_points(self) -> None:
        for directory in self.directories:
            directory.save_recovery_points(self._logs_in(directory))

    def checkpoint_high_watermarks(self) -> None:
        for directory in self.directories:
            directory.save_high_watermarks(self._logs_in(directory))

    def _logs_in(self, directory: LogDirectory) -> list[PartitionLog]:
        is_only = len(self.directories) == 1
        return [entry for entry in self if is_only or os.path.dirname(entry.directory) == directory.path]


def _try_to_close(partition_log: PartitionLog) -> None:
    """Close one of several logs in parallel; if descriptors run out, it is closed alone later."""
    try:
        partition_log.close()
    except StorageError:
        partition_log.close_files()


def _close(partition_log: PartitionLog) -> None:
    """Close one log. If it cannot be written to disk, the next start recovers it, and only it."""
    try:
        partition_log.close()
    except StorageError as error:
        log.error("%s: the next start recovers this log: %s", partition_log.topic_partition, error)
        partition_log.needs_recovery = True
        partition_log.abandon()


def _roll_and_delete(partition_log: PartitionLog, count: int, now_ms: int, reason: str) -> None:
    if not partition_log.is_closed and partition_log.offline_error is None:
        partition_log.roll(now_ms)
        partition_log.delete_segments(count, now_ms, reason)
