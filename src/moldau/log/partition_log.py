"""One partition's log: appends, rolls and reads.

An append is one `write` of the bytes the producer sent, with base offset and leader epoch written into them; the rest
is a few comparisons. It is all or nothing: everything that can fail happens before the write, and a failed write is cut
off again. Flushing, deleting and truncating are in `log.local_log`; `log.recovery.recovery` checks a log after a crash,
`log.lookups` finds offsets by time, `log.manager` manages all logs. Start at `PartitionLog.append`.

Threads:

- The *loop thread* owns the log: it alone appends, rolls, truncates and moves the log start. While the disk is slow
  another thread does so in its place (`broker.data.slow_appends`); never both at once, so an append takes no lock.
- *Any thread* may read. `segments` is a tuple that is replaced, never modified, under a lock, so a reader that holds
  it sees a consistent list. An open file outlives its segment (`files.SegmentFile`).
- The *maintenance thread* flushes, saves indexes and checkpoints, and deletes segments: it replaces
  `segments` under that lock, and never touches the last one. The lock is never held during disk access.
- Code that writes index files or drops indexes holds `_flush_lock`, which the loop never takes.
- The recovery point moves under the lock of `segments`; a flush does not move it if a truncation ran meanwhile.

After a crash: index files, producer snapshots and the epoch checkpoint are written after the records, but before the
recovery point moves past the records they describe; recovery scans from the recovery point on.

A truncation shortens a file that slices may still be reading: a `sendfile` then reaches the end of the file early, and
its sender has to drop the connection. Only replication truncates.
"""

from __future__ import annotations

import logging
import struct
from bisect import bisect_right
from typing import Final, NamedTuple

from moldau.log.errors import (
    OffsetOutOfRangeError,
    StorageError,
)
from moldau.log.files import SegmentFile
from moldau.log.local_log import LocalLog
from moldau.log.log_events import LogEvents
from moldau.log.lookups import FoundOffset, max_timestamp_offset, offset_for_timestamp
from moldau.log.partition_files import track_marker
from moldau.log.producer_state import read_marker
from moldau.log.segments.log_segments import base_offset_of
from moldau.log.segments.segment import NEVER, Segment
from moldau.log.segments.txn_index import AbortedTransaction
from moldau.protocol.record_batch import CONTROL_BIT, LOG_OVERHEAD, BatchHeader

__all__ = ["LogEvents", "LogSlice", "PartitionLog"]

log = logging.getLogger("moldau.log")

_STAMP: Final = struct.Struct(">qii")
"""Base offset, batch length, leader epoch: the first sixteen bytes, which the CRC does not cover."""

_NO_FILE: Final = SegmentFile(-1)

READ_ATTEMPTS: Final = 20
"""A read starts over when its segment was removed meanwhile, so often at most; once is rare already."""


class LogSlice(NamedTuple):
    """Whole batches as a range of a file, for `sendfile`. Keep a reference while its bytes are being sent."""

    file: SegmentFile
    position: int
    length: int
    first_offset: int
    """The requested offset; the first batch may begin before it."""


class PartitionLog(LocalLog):
    __slots__ = ()

    # --- appending --------------------------------------------------------------------------------------

    def append(self, batch: memoryview | bytearray, header: tuple[int, ...], leader_epoch: int, now_ms: int) -> int:
        """Write the base offset and leader epoch into one batch and append it; return its base offset.

        `header` is the batch's header in `BatchHeader`'s order, validated by the caller, which has also called
        `producers.check`. `batch` is exactly that batch and writable. On `StorageError` nothing was written: after the
        write only memory changes, because `_open_for_append` has loaded everything needed from files.
        """
        active = self._active
        if active is None:
            active = self._open_for_append()
        base_offset = self.log_end_offset
        length = header[1]
        last_offset = base_offset + header[6]
        max_timestamp = header[8]
        position = active.size
        end = position + length + LOG_OVERHEAD
        if (
            end > active.roll_above_size
            or max_timestamp > active.roll_above_timestamp
            or last_offset > active.last_offset_allowed
        ):
            active = self._roll_if_due(active, length + LOG_OVERHEAD, max_timestamp, last_offset, now_ms)
            position = active.size
            end = position + length + LOG_OVERHEAD

        marker = read_marker(batch, BatchHeader._make(header)) if header[5] & CONTROL_BIT else None
        _STAMP.pack_into(batch, 0, base_offset, length, leader_epoch)
        try:
            written = self._write(active.fd, batch)
            if written != end - position:
                self._write_rest(active.fd, batch, written)
        except OSError as error:
            raise self._undo_write(active, position, error) from error

        if max_timestamp > active.max_timestamp:  # type: ignore[operator]  # known for the active segment
            active.max_timestamp = max_timestamp
            active.max_timestamp_offset = last_offset
        if position > active.index_after:
            self._index(active, last_offset, position)
        elif position == 0:
            self._note_first_batch(active, max_timestamp)
        active.tail.append(base_offset << 32 | position)
        active.size = end
        if header[9] >= 0:
            if header[5] & CONTROL_BIT:
                track_marker(self.producers, active, marker, header, base_offset, now_ms)
            else:
                self._producers.update(header, base_offset, now_ms)  # type: ignore[union-attr]  # loaded with `active`
        if leader_epoch != self._latest_epoch:
            self._note_epoch(leader_epoch, base_offset)
        self.log_end_offset = next_offset = last_offset + 1
        if next_offset >= self._flush_at:
            self._flush_at = NEVER  # until that flush is done
            self.events.on_flush_due(self)
        return base_offset

    def append_as_follower(self, batch: memoryview | bytearray, header: tuple[int, ...], now_ms: int) -> None:
        """Append a batch of the leader's log with its own offset and epoch, which may leave a gap that compaction made.

        The caller has checked the batch, and that it does not begin below the log end.
        """
        end_offset = self.log_end_offset
        base_offset = header[0]
        if base_offset < end_offset:
            raise StorageError(
                f"{self.topic_partition}: a batch with base offset {base_offset} cannot be appended, "
                f"the log ends at {end_offset}"
            )
        self.log_end_offset = base_offset
        try:
            self.append(batch, header, header[2], now_ms)
        except BaseException:
            self.log_end_offset = end_offset
            raise

    def _write_rest(self, fd: int, batch: memoryview | bytearray, written: int) -> None:
        rest = memoryview(batch)[written:]
        while rest:
            rest = rest[self._write(fd, rest) :]

    def _undo_write(self, active: Segment, position: int, error: OSError) -> StorageError:
        """Cut off what a failed write left behind, so that no partial batch precedes the next one."""
        reason = f"{self.topic_partition}: cannot write to {active.path('.log')} at {position}: {error.strerror}"
        log.error("%s", reason)
        try:
            self.files.truncate(active.fd, position)
        except OSError as truncate_error:
            self.take_offline(f"{reason}; and the partial write could not be cut off: {truncate_error.strerror}")
        return StorageError(reason)

    def _note_first_batch(self, active: Segment, max_timestamp: int) -> None:
        """Store the timestamp of the first batch, from which the segment's age is computed."""
        active.first_timestamp = max_timestamp
        active.index_after = self._config.index_interval_bytes
        active.set_roll_limits(self._config, self._roll_jitter_ms)

    def _index(self, active: Segment, last_offset: int, position: int) -> None:
        config = self._config
        active.add_index_entry(last_offset, position, config.index_interval_bytes)
        if active.is_index_full(config.segment_index_bytes):
            active.roll_above_size = -1

    def _note_epoch(self, leader_epoch: int, base_offset: int) -> None:
        self._epoch_file.assign(leader_epoch, base_offset)
        self._latest_epoch = leader_epoch

    def begin_leader_epoch(self, leader_epoch: int) -> None:
        """Begin an epoch as leader at the log end; it is saved to disk after the first record of the epoch."""
        self._epoch_file.begin(leader_epoch, self.log_end_offset)

    def end_leader_epoch(self) -> None:
        """Stop leading: epochs that began here without a record never were part of the log."""
        self._epoch_file.truncate_end(self.log_end_offset)
        self._latest_epoch = -2

    @property
    def last_record_epoch(self) -> int:
        """The epoch of the last record; -1 if there is none."""
        end_offset = self.log_end_offset
        return self.leader_epochs.epoch_of(end_offset - 1) if end_offset > self.log_start_offset else -1

    def _open_for_append(self) -> Segment:
        """Prepare the last segment for appends: descriptor, indexes, newest timestamp, producers, limits."""
        self.check_online()
        active = self.segments[-1]
        try:
            active.open_for_append(self._config.index_interval_bytes, self.clock.now_ms())
            if active.size:
                self._verify_end(active)
        except OSError as error:
            raise StorageError(
                f"{self.topic_partition}: cannot open {active.path('.log')}: {error.strerror}"
            ) from error
        # Load now what an append needs after its write, where nothing may fail.
        _ = self.producers, self.leader_epochs
        self._prepare_active(active)
        self._active = active
        return active

    def _verify_end(self, active: Segment) -> None:
        """Check the log end in the file before appending: a clean start took it from the checkpoint."""
        end_offset, end_position = active.end()
        if end_position != active.size or end_offset > self.log_end_offset:
            self.take_offline(
                f"{active.path('.log')} has whole batches up to position {end_position} and offset {end_offset}, but "
                f"{active.size} bytes and offset {self.log_end_offset} were expected: it was changed while the broker "
                "was stopped, and the next start will recover it"
            )
            self.check_online()

    # --- rolling ----------------------------------------------------------------------------------------

    def _roll_if_due(self, active: Segment, size: int, max_timestamp: int, last_offset: int, now_ms: int) -> Segment:
        if active.size == 0 and last_offset <= active.last_offset_allowed:
            return active
        first = active.first_timestamp
        waited_ms = max_timestamp - first if first is not None and first >= 0 else now_ms - active.created_ms
        if (
            active.size + size > active.roll_above_size
            or waited_ms > self._config.max_segment_ms - self._roll_jitter_ms
            or last_offset > active.last_offset_allowed
        ):
            return self.roll(now_ms)
        return active

    def roll(self, now_ms: int | None = None) -> Segment:
        """Close the last segment and begin a new one at the log end; an empty last segment is kept."""
        active = self._active or self._open_for_append()
        if active.size == 0 and active.base_offset == self.log_end_offset:
            return active
        active.force_time_entry()
        fresh = self._begin_segment(self.log_end_offset, self.clock.now_ms() if now_ms is None else now_ms)
        self._snapshots.keep(self.log_end_offset, self.producers)
        self._segments.add(fresh)
        self._active = fresh
        active.tail = []
        self.events.on_roll(self, active)
        return fresh

    # --- reading ----------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, upper_bound: int, at_least_one_batch: bool = True) -> LogSlice:
        """Return whole batches from the one that contains `offset` on, below `upper_bound`, within one segment.

        At most `max_bytes`, except that `at_least_one_batch` allows the first batch to exceed it. If there is nothing
        to read, the slice is empty; an offset outside the log raises `OffsetOutOfRangeError`.
        """
        for _ in range(READ_ATTEMPTS):
            if not self.log_start_offset <= offset <= self.log_end_offset:
                raise OffsetOutOfRangeError(
                    f"{self.topic_partition}: offset {offset} is not within "
                    f"{self.log_start_offset} to {self.log_end_offset}"
                )
            if offset >= upper_bound or offset == self.log_end_offset:
                return LogSlice(_NO_FILE, 0, 0, offset)
            self.check_online()
            found = self._read_segment(offset, max_bytes, upper_bound, at_least_one_batch)
            if found is not None:
                return found
        raise self._kept_moving()

    def _read_segment(self, offset: int, max_bytes: int, upper_bound: int, at_least_one_batch: bool) -> LogSlice | None:
        """Read from the segment that contains `offset`; `None` if that was removed meanwhile, and its file with it."""
        end_offset = self.log_end_offset
        segments = self._segments.all
        index = len(segments) - 1
        if offset < segments[index].base_offset:
            index = max(0, bisect_right(segments, offset, key=base_offset_of) - 1)
        segment = segments[index]
        try:
            end = segment.size
            while (position := segment.find(offset)) is None:
                index += 1  # compaction left nothing at or above `offset` in this segment
                if index == len(segments):
                    return LogSlice(_NO_FILE, 0, 0, offset)
                segment = segments[index]
                end = segment.size
            if index + 1 < len(segments):
                end_offset = segments[index + 1].base_offset
            if upper_bound < end_offset:
                end = segment.position_of_end(upper_bound)
            if end - position > max_bytes:
                end = segment.slice_end(position, max_bytes, end, at_least_one_batch=at_least_one_batch)
            return LogSlice(segment.file, position, max(0, end - position), offset)
        except OSError as error:
            if segment in self._segments.all:
                raise self._unreadable(segment.path(".log"), error) from error
            return None

    def _kept_moving(self) -> StorageError:
        return StorageError(f"{self.topic_partition}: segments were removed {READ_ATTEMPTS} times while being read")

    def offset_for_timestamp(self, timestamp: int) -> FoundOffset | None:
        """The first record at or after `timestamp`; decodes only the batch that contains it."""
        return offset_for_timestamp(self, timestamp)

    def max_timestamp_offset(self) -> FoundOffset | None:
        """The first record with the newest timestamp of the log."""
        return max_timestamp_offset(self)

    def aborted_transactions(self, first_offset: int, upper_bound: int) -> list[AbortedTransaction]:
        """Aborted transactions that overlap [first_offset, upper_bound), from the transaction indexes."""
        for _ in range(READ_ATTEMPTS):
            found = self._read_aborted(first_offset, upper_bound)
            if found is not None:
                return found
        raise self._kept_moving()

    def _read_aborted(self, first_offset: int, upper_bound: int) -> list[AbortedTransaction] | None:
        """Ask the indexes of the segments from `first_offset` on; `None` if one of these was removed meanwhile.

        A segment without an index file has no aborted transactions, and neither has one whose files are gone: so what
        was found counts only if the segments are still there afterwards.
        """
        segments = self.segments
        first = max(0, bisect_right(segments, first_offset, key=base_offset_of) - 1)
        found: list[AbortedTransaction] = []
        last = first
        for last in range(first, len(segments)):
            segment = segments[last]
            try:
                some, is_complete = segment.txn_index.overlapping(first_offset, upper_bound)
            except OSError as error:
                if segment in self.segments:
                    raise self._unreadable(segment.path(".txnindex"), error) from error
                return None
            found.extend(some)
            if is_complete:
                break
        now = self.segments
        is_whole = now is segments or set(segments[first : last + 1]) <= set(now)
        return found if is_whole else None
