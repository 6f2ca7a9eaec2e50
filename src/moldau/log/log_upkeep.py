"""A partition's log apart from appending and reading: flushing, saving, deleting, truncating, closing.

Not used on its own: `log.partition_log` builds on it and says which thread may do what.
Start at `LogUpkeep.flush`.
"""

from __future__ import annotations

import errno
import logging
import os
import uuid
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from moldau.log.errors import FatalDiskError, OffsetOutOfRangeError, StorageError
from moldau.log.leader_epochs import LeaderEpochs
from moldau.log.log_state import LogState, base_offset_of
from moldau.log.producer_state import ProducerStates
from moldau.log.retention import Deletable, SegmentFacts, deletable
from moldau.log.segment import DELETED_SUFFIX, Segment

__all__ = ["PASSING", "LogUpkeep"]

_OUT_OF_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE})
PASSING: Final = _OUT_OF_FILES | {errno.ENOSPC, errno.EDQUOT}
"""Errors that go away again when somebody makes room."""

log = logging.getLogger("moldau.log")


class LogUpkeep(LogState):
    __slots__ = ()

    # --- opening ----------------------------------------------------------------------------------------

    def mark_new(self, topic_id: uuid.UUID | None) -> None:
        """This partition was made just now: nothing of it is on disk for sure."""
        self._is_directory_synced = False
        self._producers = ProducerStates()
        if topic_id is not None:
            self._metadata.save(topic_id)

    def assign_topic_id(self, topic_id: uuid.UUID) -> None:
        """Write the id that a crash or a failure kept from the directory; the next flush puts it on disk."""
        self._metadata.save(topic_id)
        self._is_directory_synced = False

    def adopt(self, epochs: LeaderEpochs | None, producers: ProducerStates | None, *, is_saved: bool) -> None:
        """Take over what recovery found out; `None` means that the files can be believed."""
        if epochs is not None:
            self._epoch_file.start(epochs, is_saved=is_saved)
        self._producers = producers

    def assume_topic_id(self, topic_id: uuid.UUID | None) -> None:
        """Spare thousands of partitions the reading of a file each, when the manifest tells the same."""
        if topic_id is not None:
            self._metadata.assume(topic_id)

    # --- flushing ---------------------------------------------------------------------------------------

    def flush(self, *, before: int | None = None) -> int:
        """Put all that is appended so far on disk; return the offset below which everything is.

        Only segments that begin below `before`, when given. A sync that fails is fatal: the kernel may have
        dropped the pages, so trying again would prove nothing. The recovery point follows, but not past a
        closed segment whose indexes could not be saved: recovery has to find those in order.
        """
        with self._flush_lock:
            # The end first: whatever lies below it is in the segments we see afterwards.
            end, truncations, segments = self.log_end_offset, self._truncations, self.segments
            try:
                synced, described = self._sync_segments(segments, end, before)
                self._sync_directory_once()
            except OSError as error:
                if self.is_closed:  # deleted meanwhile, and its files moved away
                    return self.recovery_point
                if error.errno in _OUT_OF_FILES:
                    self._flush_at = end + self._config.flush_messages
                    raise StorageError(f"{self.topic_partition}: cannot open a file to sync: {error}") from error
                raise self._fatal(error) from error
            if not self._save("the leader epochs", self._epoch_file.save):
                described = self.recovery_point
            with self._lock:
                if truncations == self._truncations:
                    self.recovery_point = max(self.recovery_point, described)
                    self._flush_at = synced + self._config.flush_messages
            self.last_flush_ms = self.clock.monotonic_ms()
            return synced

    def _sync_segments(self, segments: Sequence[Segment], end: int, before: int | None) -> tuple[int, int]:
        """Oldest first, so that a crash in between leaves no hole.

        Return the offset up to which all is on disk, and up to which all that describes it is as well.
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
        """The first flush of a new partition puts its directory and its topic id on disk as well."""
        if self._is_directory_synced:
            return
        if self.files.exists(self._metadata.path):
            self.files.sync_file(self._metadata.path)
        self.files.sync_directory(self.directory)
        self.files.sync_directory(os.path.dirname(self.directory))
        self._is_directory_synced = True

    def _fatal(self, error: OSError) -> FatalDiskError:
        fatal = FatalDiskError(f"{self.topic_partition}: cannot put {self.directory} on disk: {error}")
        self.events.on_fatal(fatal)
        return fatal

    def finish_roll(self, segment: Segment) -> None:
        """Put a closed segment on disk with all that belongs to it, and move the recovery point past it."""
        if not self.is_closed and segment in self.segments:
            if self._config.preallocate:
                segment.free_preallocated()
            self._save("a producer snapshot", self._snapshots.save)
            self.flush(before=segment.base_offset + 1)

    # --- saving what is kept behind ---------------------------------------------------------------------

    def save(self) -> None:
        """Write indexes, snapshots and epochs. Called with every checkpoint."""
        if self.offline_error is None and not self.is_closed:
            for segment in self.segments:
                if not segment.is_index_saved:
                    with self._flush_lock:  # a flush must not take them for saved while they are being written
                        self._save("the indexes", segment.save_indexes)
            self._save("a producer snapshot", self._snapshots.save)
            self._save("the leader epochs", self._epoch_file.save)

    def _save(self, what: str, write: Callable[[], None]) -> bool:
        """Try to write; a full disk must not stop the broker for files that can be written later or rebuilt."""
        try:
            write()
        except OSError as error:
            if error.errno not in PASSING and not self.is_closed:
                raise self._fatal(error) from error
            log.error("%s: cannot save %s, will try again: %s", self.topic_partition, what, error)
            return False
        return True

    def _save_indexes(self, segment: Segment) -> bool:
        return self._save("the indexes", lambda: segment.save_indexes(sync=True))

    # --- closing ----------------------------------------------------------------------------------------

    @property
    def is_dirty(self) -> bool:
        """Whether closing has anything to write that was appended since the last flush."""
        return self.unflushed_messages > 0 and self.offline_error is None and not self.is_closed

    def close(self) -> None:
        """Put everything on disk in the form a clean start expects, and let go of all files.

        What cannot be saved leaves `needs_recovery` set, so that the next start does not trust the files.
        """
        if self.is_closed:
            return
        if self.offline_error is None:
            if self._active is not None or self.recovery_point < self.log_end_offset:
                self.needs_recovery |= not self._try_to_flush()
            if self._config.preallocate and self._active is not None:
                self._active.free_preallocated()
            for segment in self.segments:
                if not segment.is_index_saved or not segment.is_index_synced:
                    segment.force_time_entry()
                    self.needs_recovery |= not self._save_indexes(segment)
            if self._producers is not None and self.log_end_offset > self.segments[0].base_offset:
                self._snapshots.keep(self.log_end_offset, self._producers)
            self._save("a producer snapshot", self._snapshots.save)
            self.needs_recovery |= not self._save("the leader epochs", self._epoch_file.save)
            # A clean start takes the recovery point for the log's end; something may have kept it back.
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
        """Let go of all files without writing anything: the partition is deleted, or the process crashed."""
        self.is_closed = True
        self._active = None
        for segment in self.segments:
            segment.release()

    def release_idle(self) -> None:
        """Close the files and drop the indexes of all but the last segment; reads bring them back.

        Not while a flush is saving indexes in another thread; the next round is soon enough then.
        """
        if self._flush_lock.acquire(blocking=False):
            try:
                for segment in self.segments[:-1]:
                    segment.release()
            finally:
                self._flush_lock.release()

    def close_files(self) -> None:
        """Let go of every descriptor while others need them; the next append or read opens its file again.

        On the loop, between appends.
        """
        self._active = None
        for segment in self.segments:
            segment.close_file()

    # --- deleting ---------------------------------------------------------------------------------------

    def advance_log_start(self, offset: int) -> None:
        """Hide records below `offset`; the next retention round removes what lies wholly below."""
        if offset > self.high_watermark:
            raise OffsetOutOfRangeError(
                f"{self.topic_partition}: cannot delete up to {offset}, the high watermark is {self.high_watermark}"
            )
        self._move_start(offset)

    def _move_start(self, offset: int) -> None:
        """Producers stay until they expire: a resend is recognised even after its original was deleted."""
        with self._lock:
            if offset <= self.log_start_offset:
                return
            self.log_start_offset = offset
        self._epoch_file.truncate_start(offset)

    def deletable_segments(self, now_ms: int) -> Deletable:
        """Which leading segments retention lets go; all of them only after a roll."""
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
        """Take the first `count` segments out of the log; their files go after `file.delete.delay.ms`.

        With a manifest, they wait until it does not list them any more; what cannot be renamed is tried again.
        """
        _ = self.leader_epochs  # read now what the new start changes
        with self._lock:
            count = min(count, len(self.segments) - 1)
            gone, self.segments = self.segments[:count], self.segments[count:]
            first_offset = self.segments[0].base_offset
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
            with self._lock:
                self._leaving += gone
            if self.save_manifest is None:
                self.retire_leaving(self.leaving, now_ms)

    def retire_leaving(self, count: int, now_ms: int) -> None:
        """Let the first `count` of the deleted segments go, which the manifest on disk does not list any more."""
        for segment in self._leaving[:count]:
            if not self.is_closed:
                self._retire([segment], now_ms)
                with self._lock:
                    self._leaving.remove(segment)

    @property
    def leaving(self) -> int:
        """How many deleted segments wait for the manifest."""
        return len(self._leaving)

    def _withhold(self, segments: Sequence[Segment]) -> None:
        """Have a manifest on disk that does not ask for these segments, before their files change."""
        if self.save_manifest is not None:
            self.withheld = frozenset(segment.base_offset for segment in segments)
            try:
                self.save_manifest()
            except BaseException as error:
                self.withheld = frozenset()
                if isinstance(error, OSError):
                    raise StorageError(f"{self.topic_partition}: cannot write the manifest: {error}") from error
                raise

    def _retire(self, segments: Iterable[Segment], now_ms: int) -> None:
        """Rename files out of the way, in an order in which a crash leaves no hole."""
        for segment in segments:
            segment.rename(DELETED_SUFFIX)
            self._retired.append((now_ms + self._config.file_delete_delay_ms, segment))
            self._snapshots.discard([segment.base_offset])

    def delete_retired(self, now_ms: int) -> int:
        """Unlink the files of segments whose delay has passed; return how many segments went."""
        due = [entry for entry in list(self._retired) if entry[0] <= now_ms]
        for entry in due:
            entry[1].delete()
            self._retired.remove(entry)
        return len(due)

    def replace_segments(self, cleaned: Segment, replaced: Sequence[Segment], now_ms: int) -> None:
        """Swap a compacted segment in for the ones it was made of.

        `cleaned` is complete and synced under the suffix `.cleaned`. From the rename to `.swap` on, a crash
        is finished by the next start, and an error is undone. None of `replaced` is the last segment.
        """
        self._withhold(replaced)
        try:
            cleaned.rename(".swap")
            self.files.sync_directory(self.directory)
            for segment in replaced:
                segment.rename(DELETED_SUFFIX)
            cleaned.rename("")
        except OSError:
            self._undo_replacement(cleaned, replaced)
            raise
        names = set(map(id, replaced))
        with self._lock:
            kept = [segment for segment in self.segments if id(segment) not in names]
            kept.append(cleaned)
            self.segments = tuple(sorted(kept, key=lambda segment: segment.base_offset))
        due_ms = now_ms + self._config.file_delete_delay_ms
        self._retired += [(due_ms, segment) for segment in replaced]
        self.files.sync_directory(self.directory)
        self._snapshots.discard([segment.base_offset for segment in replaced[1:]])
        self.withheld = frozenset()

    def _undo_replacement(self, cleaned: Segment, replaced: Sequence[Segment]) -> None:
        """Give the originals their names back; the cleaned files go only when all have, in case of a crash."""
        try:
            for segment in replaced:
                if segment.suffix == DELETED_SUFFIX:
                    segment.rename("")
            cleaned.delete()
            self.withheld = frozenset()
        except OSError as error:
            self.take_offline(
                f"replacing segments of {self.directory} by compacted ones was interrupted and could not be undone: "
                f"{error}; the next start completes it"
            )

    def expire_producers(self, now_ms: int, max_age_ms: int) -> None:
        """Forget silent producers, where any are in memory."""
        if self._producers is not None:
            self._producers.expire(now_ms, max_age_ms)

    @property
    def has_moved_start(self) -> bool:
        """Whether the log starts above its first file's base offset, which only a checkpoint can remember."""
        first = next(iter(self._leaving), self.segments[0])
        return self.log_start_offset > first.base_offset

    # --- truncating -------------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> None:
        """Remove everything from `offset` on, as a follower does whose log went another way."""
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
        self._withhold(self.segments)
        with self._lock:
            self._truncations += 1
            kept = tuple(segment for segment in self.segments if segment.base_offset <= offset)
            gone, self.segments = self.segments[len(kept) :], kept
            self.recovery_point = min(self.recovery_point, offset)
        self._active = None
        try:
            self._retire(reversed(gone), self.clock.now_ms())
            cut.truncate(offset)
            self._end_at(offset)
        except OSError as error:
            raise self._fail_truncation(offset, error) from error

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything and go on at `offset`."""
        self._withhold(self.segments)
        try:
            # Out of the way first: the new segment may want a name that an old one has.
            self._retire(reversed(self.segments), self.clock.now_ms())
            fresh = self._begin_segment(offset, self.clock.now_ms())
            with self._lock:
                self._truncations += 1
                self.segments = (fresh,)
                self.recovery_point = min(self.recovery_point, offset)
            self._active = None
            self.log_start_offset = offset
            self._epoch_file.clear()
            self._end_at(offset)
        except (OSError, StorageError) as error:
            raise self._fail_truncation(offset, error) from error

    def _fail_truncation(self, offset: int, error: Exception) -> StorageError:
        """Files and memory no longer agree; a start finds out what the files hold, and the cut can be made again."""
        self.take_offline(f"cannot truncate {self.directory} to offset {offset}: {error}")
        return StorageError(str(self.offline_error))

    def _end_at(self, offset: int) -> None:
        self.withheld = frozenset()
        self.log_end_offset = offset
        self.high_watermark = min(self.high_watermark, offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self._flush_at = self.recovery_point + self._config.flush_messages
        self._snapshots.discard_above(offset)
        self._epoch_file.truncate_end(offset)
        self._latest_epoch = -2
        self._producers = None
