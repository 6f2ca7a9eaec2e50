"""What every part of a partition's log shares: its fields, its configuration, how it goes offline.

Not used on its own: `log.log_upkeep` adds flushing, deletion and truncation, `log.partition_log` appending
and reading, and says which thread may do what. Start there.
"""

from __future__ import annotations

import logging
import threading
import uuid
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.core.chance import CHANCE
from moldau.core.clock import Clock, SystemClock
from moldau.core.ids import TopicPartition
from moldau.log.config import LogConfig
from moldau.log.errors import DamagedLogError, FatalDiskError, StorageError
from moldau.log.files import Files
from moldau.log.leader_epochs import LeaderEpochs
from moldau.log.manifest import PartitionEntry
from moldau.log.partition_files import EpochFile, PartitionMetadata, Snapshots
from moldau.log.producer_state import ProducerStates
from moldau.log.segment import NEVER, Segment

if TYPE_CHECKING:
    from moldau.log.partition_log import PartitionLog

__all__ = ["LogEvents", "LogState", "base_offset_of"]

log = logging.getLogger("moldau.log")


def base_offset_of(segment: Segment) -> int:
    return segment.base_offset


def _finish_roll(partition_log: PartitionLog, segment: Segment) -> None:
    partition_log.finish_roll(segment)


def _flush(partition_log: PartitionLog) -> None:
    try:
        partition_log.flush()
    except StorageError as error:  # the append that made it due has happened all the same
        log.error("%s", error)


def _ignore(_: FatalDiskError) -> None:
    """The error is raised as well; there may be nobody else to tell."""


@dataclass(slots=True)
class LogEvents:
    """What a log tells its owner. The defaults do the work on the spot, which suits tests and tools."""

    on_roll: Callable[[PartitionLog, Segment], None] = _finish_roll
    """A segment was closed: somebody should call `finish_roll`, off the loop thread."""
    on_flush_due: Callable[[PartitionLog], None] = _flush
    """`flush.messages` have gathered: somebody should call `flush`."""
    on_fatal: Callable[[FatalDiskError], None] = _ignore
    """A sync failed: the process has to stop."""


class LogState:
    __slots__ = (
        "_active",
        "_config",
        "_epoch_file",
        "_flush_at",
        "_flush_lock",
        "_is_directory_synced",
        "_latest_epoch",
        "_leaving",
        "_lock",
        "_metadata",
        "_producers",
        "_retired",
        "_roll_jitter_ms",
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
        "save_manifest",
        "segments",
        "topic_partition",
        "withheld",
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
        self.segments: tuple[Segment, ...] = tuple(segments)
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.high_watermark = log_start_offset if high_watermark is None else high_watermark
        self.recovery_point = recovery_point
        """The first offset not known to be on disk."""
        self.last_flush_ms = self.clock.monotonic_ms()
        self.offline_error: StorageError | None = None
        """Why this partition takes no requests; names the file and the position."""
        self.is_closed = False
        self.needs_recovery = False
        """Whether the next start must not trust the files although this run ended in order."""
        self.save_manifest: Callable[[], None] | None = None
        """Puts the manifest on disk, or raises; `None` for a log that no manifest lists."""
        self.withheld: frozenset[int] = frozenset()
        """Base offsets of segments that are about to be replaced or cut, so the manifest must not list them."""
        self.recorded: PartitionEntry | None = None
        """What the manifest asks for, where this log was opened without all of it."""
        self._leaving: list[Segment] = []
        """Deleted segments that keep their names until the manifest on disk does not list them any more."""
        self._write = self.files.write
        self._active: Segment | None = None
        """The last segment once it is open for appending; `None` before, and again when offline or closed."""
        self._latest_epoch = -2
        self._lock = threading.Lock()
        self._flush_lock = threading.Lock()
        self._truncations = 0
        self._roll_jitter_ms = 0
        self._retired: list[tuple[int, Segment]] = []
        self._is_directory_synced = True
        self._producers: ProducerStates | None = None
        self._snapshots = Snapshots(self.files, directory, snapshot_offsets)
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
        """Take a new configuration at once, for the segment in use too."""
        self._config = config
        self._flush_at = self.recovery_point + config.flush_messages
        self._roll_jitter_ms = min(self._roll_jitter_ms, max(0, config.segment_jitter_ms))
        if self._active is not None:
            self._set_roll_limits(self._active)

    @property
    def topic_id(self) -> uuid.UUID | None:
        return self._metadata.topic_id

    @property
    def producers(self) -> ProducerStates:
        """What is known of producers; loaded from the newest snapshot when first asked for."""
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
        """The same without ever reading the disk: `None` until somebody needed it. For metrics."""
        return self._producers

    @property
    def leader_epochs(self) -> LeaderEpochs:
        try:
            return self._epoch_file.epochs
        except OSError as error:
            raise self._unreadable(self._epoch_file.path, error) from error

    @property
    def last_stable_offset(self) -> int:
        """Below it, every transaction is decided."""
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
        """The largest known epoch up to this one, and where it ends; (-1, -1) when nothing is known."""
        return self.leader_epochs.end_offset_of(leader_epoch, self.log_end_offset)

    def segment_of(self, offset: int) -> Segment:
        """The segment that `offset` falls into."""
        segments = self.segments
        return segments[max(0, bisect_right(segments, offset, key=base_offset_of) - 1)]

    def _unreadable(self, path: str, error: OSError) -> StorageError:
        return StorageError(f"{self.topic_partition}: cannot read {path}: {error.strerror}")

    # --- going offline ----------------------------------------------------------------------------------

    def check_online(self) -> None:
        if self.offline_error is not None:
            raise self.offline_error
        if self.is_closed:
            raise StorageError(f"{self.topic_partition}: the log is closed")

    def take_offline(self, reason: str, *, is_damaged: bool = False) -> None:
        """Refuse everything from now on, with `reason`. Damage stays until an operator has dealt with it."""
        error = DamagedLogError if is_damaged else StorageError
        self.offline_error = error(f"{self.topic_partition} is offline: {reason}")
        self.needs_recovery = True
        self._active = None
        log.error("%s", self.offline_error)

    # --- the segment appended to ------------------------------------------------------------------------

    def _begin_segment(self, base_offset: int, now_ms: int) -> Segment:
        try:
            segment = Segment.create(self.files, self.directory, base_offset, now_ms=now_ms)
        except OSError as error:
            raise StorageError(
                f"{self.topic_partition}: cannot begin a segment in {self.directory}: {error.strerror}"
            ) from error
        self._roll_jitter_ms = CHANCE.randint(0, max(0, self._config.segment_jitter_ms))
        self._get_ready(segment)
        return segment

    def _get_ready(self, active: Segment) -> None:
        """Prepare a segment that is open for appending."""
        self._set_roll_limits(active)
        if self._config.preallocate:
            self.files.preallocate(active.fd, self._config.segment_bytes)

    def _set_roll_limits(self, active: Segment) -> None:
        """Turn configuration into numbers that an append can compare with.

        An empty segment never rolls by size or time. One without a usable timestamp is asked every time.
        """
        config = self._config
        if active.first_timestamp is None:
            active.roll_above_size = active.roll_above_timestamp = NEVER
            return
        active.roll_above_size = -1 if self._is_index_full(active) else config.segment_bytes
        if active.first_timestamp < 0:
            active.roll_above_timestamp = -2
        else:
            active.roll_above_timestamp = active.first_timestamp + config.max_segment_ms - self._roll_jitter_ms

    def _is_index_full(self, segment: Segment) -> bool:
        """One time entry stays free for the one that closing the segment forces in."""
        limit = self._config.segment_index_bytes
        return (len(segment.offset_index) + 1) * 8 > limit or (len(segment.time_index) + 2) * 12 > limit
