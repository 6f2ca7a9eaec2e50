"""A partition's log on disk: opening, flushing, saving, deleting, truncating, closing.

Appending and reading are added by `log.partition_log`, which also documents the threads. The list of segments is
`log.segments.log_segments`, the small files beside them are `log.partition_files`. Start at `LocalLog.flush`.
"""

from __future__ import annotations

import logging
import os
import threading
import uuid
from bisect import bisect_right
from collections.abc import Callable, Sequence

from moldau.core.chance import CHANCE
from moldau.core.clock import Clock, SystemClock
from moldau.core.ids import TopicPartition
from moldau.log.config import LogConfig
from moldau.log.directories.manifest import PartitionEntry
from moldau.log.errors import (
    OUT_OF_FILES,
    TRANSIENT_ERRNOS,
    DamagedLogError,
    FatalDiskError,
    OffsetOutOfRangeError,
    StorageError,
)
from moldau.log.files import Files
from moldau.log.leader_epochs import LeaderEpochs
from moldau.log.log_events import LogEvents
from moldau.log.partition_files import EpochFile, PartitionMetadata, Snapshots
from moldau.log.producer_state import ProducerStates
from moldau.log.retention import Deletable, SegmentFacts, deletable
from moldau.log.segments.log_segments import LogSegments, base_offset_of
from moldau.log.segments.segment import Segment

__all__ = ["LocalLog"]

log = logging.getLogger("moldau.log")


class LocalLog:
    __slots__ = (
        "_active",
        "_config",
        "_epoch_file",
        "_flush_at",
        "_flush_lock",
        "_is_directory_synced",
        "_latest_epoch",
        "_metadata",
        "_producers",
        "_roll_jitter_ms",
        "_segments",
        "_snapshots",
        "_truncations",
        "_write",
        "clock",
        "directory",
        "events",
        "files",
        "high_watermark",
        "is_closed",
        "last_flush_ms",
        "log_end_offset",
        "log_start_offset",
        "needs_recovery",
        "offline_error",
        "recorded",
        "recovery_point",
        "topic_partition",
    )

    def __init__(
        self,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        segments: Sequence[Segment],
        *,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int = 0,
        high_watermark: int | None = None,
        snapshot_offsets: Sequence[int] = (),
        files: Files | None = None,
        clock: Clock | None = None,
        events: LogEvents | None = None,
    ) -> None:
        self.directory = directory
        self.topic_partition = topic_partition
        self.files = files or Files()
        self.clock = clock or SystemClock()
        self.events = events or LogEvents()
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.high_watermark = log_start_offset if high_watermark is None else high_watermark
        self.recovery_point = recovery_point
        """The first offset not known to be on disk."""
        self.last_flush_ms = self.clock.monotonic_ms()
        self.offline_error: StorageError | None = None
        """Why this partition rejects all requests; names the file and the position."""
        self.is_closed = False
        self.needs_recovery = False
        """Whether the next start must run recovery although this run shut down cleanly."""
        self.recorded: PartitionEntry | None = None
        """What the manifest requires, if this log was opened without all of it."""
        self._write = self.files.write
        self._active: Segment | None = None
        """The last segment once it is open for appending; `None` before, and again when offline or closed."""
        self._latest_epoch = -2
        self._flush_lock = threading.Lock()
        self._truncations = 0
        self._roll_jitter_ms = 0
        self._is_directory_synced = True
        self._producers: ProducerStates | None = None
        self._snapshots = Snapshots(self.files, directory, snapshot_offsets)
        self._segments = LogSegments(self.files, topic_partition, segments, self._snapshots)
        self._epoch_file = EpochFile(self.files, directory)
        self._metadata = PartitionMetadata(self.files, directory)
        self.config = config

    def __repr__(self) -> str:
        return f"PartitionLog({self.topic_partition}, {self.log_start_offset}..{self.log_end_offset})"

    # --- facts ------------------------------------------------------------------------------------------

    @property
    def config(self) -> LogConfig:
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        """Apply a new configuration at once, also to the active segment."""
        self._config = config
        self._flush_at = self.recovery_point + config.flush_messages
        self._roll_jitter_ms = min(self._roll_jitter_ms, max(0, config.segment_jitter_ms))
        if self._active is not None:
            self._active.set_roll_limits(config, self._roll_jitter_ms)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """All segments, oldest first; the tuple is replaced and never modified."""
        return self._segments.all

    @property
    def withheld(self) -> frozenset[int]:
        """Base offsets of segments that the manifest must not list, because they are about to be replaced or cut."""
        return self._segments.withheld

    @property
    def topic_id(self) -> uuid.UUID | None:
        return self._metadata.topic_id

    @property
    def producers(self) -> ProducerStates:
        """The producer state; loaded from the newest snapshot on first use."""
        states = self._producers
        if states is None:
            try:
                states = self._snapshots.load(self.segments, self.log_end_offset, self.clock.now_ms())
            except OSError as error:
                raise self._unreadable(self.directory, error) from error
            self._producers = states
        return states

    @property
    def loaded_producers(self) -> ProducerStates | None:
        """The producer state if it is loaded, else `None`; never reads the disk. For metrics."""
        return self._producers

    @property
    def leader_epochs(self) -> LeaderEpochs:
        try:
            return self._epoch_file.epochs
        except OSError as error:
            raise self._unreadable(self._epoch_file.path, error) from error

    @property
    def last_stable_offset(self) -> int:
        """The offset below which every transaction is committed or aborted."""
        high_watermark = self.high_watermark
        first_unstable = self.producers.first_unstable_offset(high_watermark)
        return high_watermark if first_unstable is None else min(first_unstable, high_watermark)

    @property
    def size_in_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def unflushed_messages(self) -> int:
        return self.log_end_offset - self.recovery_point

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """The largest known epoch up to this one, and its end offset; (-1, -1) if there is none."""
        return self.leader_epochs.end_offset_of(leader_epoch, self.log_end_offset)

    def segment_of(self, offset: int) -> Segment:
        """The segment that contains `offset`."""
        return self._segments.of(offset)

    def withhold_all(self) -> None:
        """Never list a segment of this log in the manifest: it is a placeholder for a log that could not be opened."""
        self._segments.withheld = frozenset(segment.base_offset for segment in self.segments)

    def _unreadable(self, path: str, error: OSError) -> StorageError:
        return StorageError(f"{self.topic_partition}: cannot read {path}: {error.strerror}")

    # --- going offline ----------------------------------------------------------------------------------

    def check_online(self) -> None:
        if self.offline_error is not None:
            raise self.offline_error
        if self.is_closed:
            raise StorageError(f"{self.topic_partition}: the log is closed")

    def take_offline(self, reason: str, *, is_damaged: bool = False) -> None:
        """Reject all requests from now on, with `reason`. A damaged log stays offline until an operator acts."""
        error = DamagedLogError if is_damaged else StorageError
        self.offline_error = error(f"{self.topic_partition} is offline: {reason}")
        self.needs_recovery = True
        self._active = None
        log.error("%s", self.offline_error)

    def _begin_segment(self, base_offset: int, now_ms: int) -> Segment:
        try:
            segment = Segment.create(self.files, self.directory, base_offset, now_ms=now_ms)
        except OSError as error:
            raise StorageError(
                f"{self.topic_partition}: cannot begin a segment in {self.directory}: {error.strerror}"
            ) from error
        self._roll_jitter_ms = CHANCE.randint(0, max(0, self._config.segment_jitter_ms))
        self._prepare_active(segment)
        return segment

    def _prepare_active(self, active: Segment) -> None:
        """Prepare a segment that is open for appending."""
        active.set_roll_limits(self._config, self._roll_jitter_ms)
        if self._config.preallocate:
            self.files.preallocate(active.fd, self._config.segment_bytes)

    # --- opening ----------------------------------------------------------------------------------------

    def mark_new(self, topic_id: uuid.UUID | None) -> None:
        """Mark a partition as just created: none of its files is known to be on disk."""
        self._is_directory_synced = False
        self._producers = ProducerStates()
        if topic_id is not None:
            self._metadata.save(topic_id)

    def assign_topic_id(self, topic_id: uuid.UUID) -> None:
        """Write a topic id that is missing after a crash or a failure; the next flush syncs it."""
        self._metadata.save(topic_id)
        self._is_directory_synced = False

    def adopt(self, epochs: LeaderEpochs | None, producers: ProducerStates | None, *, is_saved: bool) -> None:
        """Use the state that recovery rebuilt; `None` means that the files can be trusted."""
        if epochs is not None:
            self._epoch_file.start(epochs, is_saved=is_saved)
        self._producers = producers

    def assume_topic_id(self, topic_id: uuid.UUID | None) -> None:
        """Use the topic id from the manifest, so that a start with thousands of partitions reads no file for it."""
        if topic_id is not None:
            self._metadata.assume(topic_id)

    # --- flushing ---------------------------------------------------------------------------------------

    def flush(self, *, before: int | None = None) -> int:
        """Sync everything appended so far to disk; return the offset below which everything is on disk.

        If `before` is given, sync only segments that begin below it. A failed sync is fatal: the kernel may have
        dropped the pages, so a retry could succeed without them being on disk. The recovery point moves too, but not
        past a closed segment whose indexes could not be saved: recovery has to rebuild those.
        """
        with self._flush_lock:
            # Read the end offset first: everything below it is in the segments read afterwards.
            end, truncations, segments = self.log_end_offset, self._truncations, self.segments
            try:
                synced, described = self._sync_segments(segments, end, before)
                self._sync_directory_once()
            except OSError as error:
                if self.is_closed:  # deleted in the meantime, and its files moved away
                    return self.recovery_point
                if error.errno in OUT_OF_FILES:
                    self._flush_at = end + self._config.flush_messages
                    raise StorageError(f"{self.topic_partition}: cannot open a file to sync: {error}") from error
                raise self._fatal(error) from error
            if not self._save("the leader epochs", self._epoch_file.save):
                described = self.recovery_point
            with self._segments.lock:
                if truncations == self._truncations:
                    self.recovery_point = max(self.recovery_point, described)
                    self._flush_at = synced + self._config.flush_messages
            self.last_flush_ms = self.clock.monotonic_ms()
            return synced

    def _sync_segments(self, segments: Sequence[Segment], end: int, before: int | None) -> tuple[int, int]:
        """Sync segments, oldest first, so that a crash in between leaves no gap.

        Return the offset up to which all records are on disk, and the one up to which their indexes are saved as well.
        """
        described: int | None = None
        first = max(0, bisect_right(segments, self.recovery_point, key=base_offset_of) - 1)
        for segment in segments[first:]:
            if before is not None and segment.base_offset >= before:
                end = segment.base_offset
                break
            is_closed = segment is not segments[-1]
            if is_closed and described is None and not self._save_indexes(segment):
                described = segment.base_offset
            segment.sync()
        return end, end if described is None else described

    def _sync_directory_once(self) -> None:
        """Sync the directory and the topic id with the first flush of a new partition."""
        if self._is_directory_synced:
            return
        if self.files.exists(self._metadata.path):
            self.files.sync_file(self._metadata.path)
        self.files.sync_directory(self.directory)
        self.files.sync_directory(os.path.dirname(self.directory))
        self._is_directory_synced = True

    def _fatal(self, error: OSError) -> FatalDiskError:
        fatal = FatalDiskError(f"{self.topic_partition}: cannot sync {self.directory} to disk: {error}")
        self.events.on_fatal(fatal)
        return fatal

    def finish_roll(self, segment: Segment) -> None:
        """Sync a closed segment with its indexes, and move the recovery point past it."""
        if not self.is_closed and segment in self.segments:
            if self._config.preallocate:
                segment.free_preallocated()
            self._save("a producer snapshot", self._snapshots.save)
            self.flush(before=segment.base_offset + 1)

    # --- saving indexes, snapshots and epochs ---------------------------------------------------------------------

    def save(self) -> None:
        """Write indexes, snapshots and epochs. Called with every checkpoint."""
        if self.offline_error is None and not self.is_closed:
            for segment in self.segments:
                if not segment.is_index_saved:
                    with self._flush_lock:  # a flush must not treat them as saved while they are being written
                        self._save("the indexes", segment.save_indexes)
            self._save("a producer snapshot", self._snapshots.save)
            self._save("the leader epochs", self._epoch_file.save)

    def _save(self, what: str, write: Callable[[], None]) -> bool:
        """Try to write; return false on a transient error such as a full disk: the file can be written later."""
        try:
            write()
        except OSError as error:
            if error.errno not in TRANSIENT_ERRNOS and not self.is_closed:
                raise self._fatal(error) from error
            log.error("%s: cannot save %s, will retry: %s", self.topic_partition, what, error)
            return False
        return True

    def _save_indexes(self, segment: Segment) -> bool:
        return self._save("the indexes", lambda: segment.save_indexes(sync=True))

    # --- closing ----------------------------------------------------------------------------------------

    @property
    def is_dirty(self) -> bool:
        """Whether records were appended since the last flush, which closing has to write."""
        return self.unflushed_messages > 0 and self.offline_error is None and not self.is_closed

    def close(self) -> None:
        """Write everything to disk as a clean start expects it, and close all files.

        If something cannot be saved, `needs_recovery` stays set, so that the next start does not trust the files.
        """
        if self.is_closed:
            return
        if self.offline_error is None:
            if self._active is not None or self.recovery_point < self.log_end_offset:
                self.needs_recovery |= not self._try_to_flush()
            if self._config.preallocate and self._active is not None:
                self._active.free_preallocated()
            for segment in self.segments:
                if segment is self._active:
                    # Batches since the last index entry may be newer, also where the saved indexes are complete so far.
                    self.needs_recovery |= not self._save("the newest timestamp", segment.force_time_entry)
                if not segment.is_index_saved or not segment.is_index_synced:
                    segment.force_time_entry()
                    self.needs_recovery |= not self._save_indexes(segment)
            if self._producers is not None and self.log_end_offset > self.segments[0].base_offset:
                self._snapshots.keep(self.log_end_offset, self._producers)
            self._save("a producer snapshot", self._snapshots.save)
            self.needs_recovery |= not self._save("the leader epochs", self._epoch_file.save)
            # A clean start uses the recovery point as the log end, so the two must be equal.
            self.needs_recovery |= self.recovery_point != self.log_end_offset
        self.abandon()

    def _try_to_flush(self) -> bool:
        try:
            self.flush()
        except StorageError as error:
            log.error("%s", error)
            return False
        return True

    def abandon(self) -> None:
        """Close all files without writing anything: the partition is deleted, or a crash is simulated."""
        self.is_closed = True
        self._active = None
        for segment in self.segments:
            segment.release()

    def release_idle(self) -> None:
        """Close the files and drop the indexes of all segments but the last; reads load them again.

        Does nothing while a flush saves indexes in another thread; the next call does it then.
        """
        if self._flush_lock.acquire(blocking=False):
            try:
                for segment in self.segments[:-1]:
                    segment.release()
            finally:
                self._flush_lock.release()

    def close_files(self) -> None:
        """Close every file because file descriptors are short; the next append or read opens its file again.

        Call it on the loop, between appends.
        """
        self._active = None
        for segment in self.segments:
            segment.close_file()

    # --- deleting ---------------------------------------------------------------------------------------

    def advance_log_start(self, offset: int) -> None:
        """Hide records below `offset`; the next retention round deletes segments entirely below it."""
        if offset > self.high_watermark:
            raise OffsetOutOfRangeError(
                f"{self.topic_partition}: cannot delete up to {offset}, the high watermark is {self.high_watermark}"
            )
        self._move_start(offset)

    def _move_start(self, offset: int) -> None:
        """Move the log start. Producers stay until they expire, to detect resends of deleted batches."""
        with self._segments.lock:
            if offset <= self.log_start_offset:
                return
            self.log_start_offset = offset
        self._epoch_file.truncate_start(offset)

    def deletable_segments(self, now_ms: int) -> Deletable:
        """The leading segments to delete under the retention settings; all of them only after a roll."""
        segments = self.segments
        ends = [segment.base_offset for segment in segments[1:]] + [self.log_end_offset]
        facts = [
            SegmentFacts(segment.base_offset, end, segment.size) for segment, end in zip(segments, ends, strict=True)
        ]

        def newest_ms(index: int) -> int:
            timestamp = segments[index].newest_timestamp().timestamp
            return timestamp if timestamp >= 0 else segments[index].modified_ms()

        return deletable(
            facts,
            newest_ms,
            self._config,
            log_start_offset=self.log_start_offset,
            high_watermark=self.high_watermark,
            now_ms=now_ms,
        )

    def delete_segments(self, count: int, now_ms: int, reason: str = "nobody needs them") -> None:
        """Remove the first `count` segments from the log; their files are deleted after `file.delete.delay.ms`.

        With a manifest, they wait until it no longer lists them; a rename that fails is retried.
        """
        _ = self.leader_epochs  # load it now, because moving the log start truncates it
        gone, first_offset = self._segments.take_first(count)
        if gone:
            log.info(
                "%s: deleting %s (%d bytes) below offset %d: %s",
                self.topic_partition,
                "1 segment" if len(gone) == 1 else f"{len(gone)} segments",
                sum(segment.size for segment in gone),
                first_offset,
                reason,
            )
            self._move_start(first_offset)
            self._segments.delete_later(gone)
            if self._segments.save_manifest is None:
                self.retire_leaving(self.leaving, now_ms)

    def list_in_manifest(self, save_manifest: Callable[[], None]) -> None:
        """Delete or change files only after `save_manifest` has written the manifest; it raises on failure."""
        self._segments.save_manifest = save_manifest

    @property
    def leaving(self) -> int:
        """The number of deleted segments that wait for the manifest."""
        return self._segments.leaving

    def retire_leaving(self, count: int, now_ms: int) -> None:
        """Rename the first `count` deleted segments, which the manifest on disk no longer lists, for deletion."""
        for _ in range(count):
            if not self.is_closed:
                self._segments.retire_leaving(self._deletion_time(now_ms))

    def _deletion_time(self, now_ms: int) -> int:
        return now_ms + self._config.file_delete_delay_ms

    def delete_retired(self, now_ms: int) -> int:
        """Unlink the files of segments whose delay has passed; return the number of segments deleted."""
        return self._segments.delete_retired(now_ms)

    def replace_segments(self, cleaned: Segment, replaced: Sequence[Segment], now_ms: int) -> None:
        """Replace segments by the compacted segment made from them."""
        self._segments.replace(cleaned, replaced, self._deletion_time(now_ms), self.take_offline)

    def expire_producers(self, now_ms: int, max_age_ms: int) -> None:
        """Remove expired producers, if producer state is loaded."""
        if self._producers is not None:
            self._producers.expire(now_ms, max_age_ms)

    @property
    def has_moved_start(self) -> bool:
        """Whether the log starts above its first file's base offset, which only a checkpoint records."""
        return self.log_start_offset > self._segments.oldest.base_offset

    # --- truncating -------------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> None:
        """Remove all records from `offset` on, as a follower does whose log diverged."""
        if offset >= self.log_end_offset:
            return
        if offset < self.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        cut = self.segment_of(offset)
        try:
            cut.prepare_truncation()
        except OSError as error:
            raise self._unreadable(cut.path(".log"), error) from error
        _ = self.leader_epochs
        self._segments.withhold(self.segments)
        with self._segments.lock:
            self._truncations += 1
            kept = tuple(segment for segment in self.segments if segment.base_offset <= offset)
            gone, self._segments.all = self.segments[len(kept) :], kept
            self.recovery_point = min(self.recovery_point, offset)
        self._active = None
        try:
            self._segments.retire(reversed(gone), self._deletion_time(self.clock.now_ms()))
            cut.truncate(offset)
            self._end_at(offset)
        except OSError as error:
            raise self._fail_truncation(offset, error) from error

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove all records and continue at `offset`."""
        self._segments.withhold(self.segments)
        try:
            # Rename the old segments first: the new segment may need the name of one of them.
            self._segments.retire(reversed(self.segments), self._deletion_time(self.clock.now_ms()))
            fresh = self._begin_segment(offset, self.clock.now_ms())
            with self._segments.lock:
                self._truncations += 1
                self._segments.all = (fresh,)
                self.recovery_point = min(self.recovery_point, offset)
            self._active = None
            self.log_start_offset = offset
            self._epoch_file.clear()
            self._end_at(offset)
        except (OSError, StorageError) as error:
            raise self._fail_truncation(offset, error) from error

    def _fail_truncation(self, offset: int, error: Exception) -> StorageError:
        """Take the log offline: files and memory no longer agree. The truncation can be retried after a restart."""
        self.take_offline(f"cannot truncate {self.directory} to offset {offset}: {error}")
        return StorageError(str(self.offline_error))

    def _end_at(self, offset: int) -> None:
        self._segments.withheld = frozenset()
        self.log_end_offset = offset
        self.high_watermark = min(self.high_watermark, offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self._flush_at = self.recovery_point + self._config.flush_messages
        self._snapshots.discard_above(offset)
        self._epoch_file.truncate_end(offset)
        self._latest_epoch = -2
        self._producers = None
