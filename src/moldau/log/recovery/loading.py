"""Opening a partition's directory: finish what a crash interrupted, then trust or recover the files.

After a clean shutdown only the directory listing is read: the recovery point is the log end, and files are opened on
first use. After a crash every segment that reaches beyond the recovery point is checked batch by batch
(`log.recovery.recovery`) and its indexes are rebuilt. In both cases the folder is first compared with the manifest: if
records are missing, the log stays offline and unchanged. Start at `open_log`.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from moldau.core.clock import Clock, SystemClock
from moldau.core.ids import TopicPartition
from moldau.log.config import LogConfig
from moldau.log.directories.manifest import MANIFEST, NO_TXN_INDEX, PartitionEntry, TxnMark, loss
from moldau.log.files import Files
from moldau.log.leader_epochs import LeaderEpochs
from moldau.log.log_events import LogEvents
from moldau.log.partition_files import EpochFile, Snapshots, track_batch
from moldau.log.partition_log import PartitionLog
from moldau.log.producer_state import ProducerStates
from moldau.log.recovery.recovery import SegmentCheck, next_valid_batch
from moldau.log.recovery.swaps import finish_swaps
from moldau.log.segments.segment import EXTENSIONS, Segment, parse_base_offset
from moldau.log.segments.txn_index import ENTRY as TXN_ENTRY
from moldau.protocol.record_batch import NO_TIMESTAMP

__all__ = ["LastRun", "create_log", "missing_log", "open_log"]

log = logging.getLogger("moldau.log")


@dataclass(frozen=True, slots=True)
class LastRun:
    """The state of a partition according to the checkpoints of the last run."""

    is_clean: bool = False
    """Whether the broker shut down cleanly; only then is `recovery_point` the log end."""
    recovery_point: int | None = None
    log_start_offset: int | None = None
    high_watermark: int | None = None
    entry: PartitionEntry | None = None
    """The manifest's entry; `None` if there is none, or none that is still valid."""
    is_entry_exact: bool = False
    """Whether the manifest is exact because nothing was written after it."""
    flushed_end: int = 0
    """For a log without an entry: everything below this offset was on disk."""

    @property
    def least_end(self) -> int:
        """The offset the log must reach. Without an entry the recovery point is ignored, to let a loss be accepted."""
        if self.entry is None:
            return self.flushed_end
        return max(self.entry.end_offset, self.recovery_point or 0)


def create_log(
    directory: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    *,
    topic_id: uuid.UUID | None = None,
    start_offset: int = 0,
    files: Files | None = None,
    clock: Clock | None = None,
    events: LogEvents | None = None,
) -> PartitionLog:
    """Create a new, empty partition on disk. The first flush syncs its directory."""
    files, clock = files or Files(), clock or SystemClock()
    files.make_directory(directory)
    segment = Segment.create(files, directory, start_offset, now_ms=clock.now_ms())
    segment.release()
    created = PartitionLog(
        directory,
        topic_partition,
        config,
        [segment],
        log_start_offset=start_offset,
        log_end_offset=start_offset,
        recovery_point=start_offset,
        files=files,
        clock=clock,
        events=events,
    )
    created.mark_new(topic_id)
    return created


def missing_log(
    directory: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    entry: PartitionEntry,
    *,
    files: Files,
    clock: Clock,
    events: LogEvents,
) -> PartitionLog:
    """Return an offline placeholder for a partition whose folder is missing; creates nothing on disk."""
    return _offline_log(
        directory,
        topic_partition,
        config,
        [],
        LastRun(entry=entry),
        "the folder is missing",
        files=files,
        clock=clock,
        events=events,
    )


def _offline_log(  # noqa: PLR0917
    directory: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    segments: Sequence[Segment],
    last_run: LastRun,
    problem: str,
    *,
    files: Files,
    clock: Clock,
    events: LogEvents | None,
) -> PartitionLog:
    """Return an offline log with parts missing; its files are left unchanged."""
    end_offset = last_run.least_end
    segments = segments or [Segment(files, directory, end_offset)]
    start_offset = segments[0].base_offset
    opened = PartitionLog(
        directory,
        topic_partition,
        config,
        segments,
        log_start_offset=start_offset,
        log_end_offset=max(end_offset, start_offset),
        files=files,
        clock=clock,
        events=events,
    )
    _report_loss(opened, last_run, f"{directory}: {problem}")
    return opened


def _report_loss(opened: PartitionLog, last_run: LastRun, problem: str) -> None:
    """Take a log offline that has lost records, and keep requiring them at the next start."""
    entry, advice = last_run.entry, ""
    if entry is not None:
        opened.recorded = PartitionEntry(entry.topic_id, last_run.least_end, entry.segments)
        topic, partition = opened.topic_partition
        advice = (
            "; nothing was changed. Stop the broker and restore the files from a backup; or, to accept the loss, "
            f"remove the line '{topic} {partition}' from {os.path.dirname(opened.directory)}/{MANIFEST} and start again"
        )
    opened.take_offline(f"{problem}{advice}", is_damaged=True)


def open_log(
    directory: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    last_run: LastRun | None = None,
    *,
    files: Files | None = None,
    clock: Clock | None = None,
    events: LogEvents | None = None,
    truncate_corruption: bool = False,
) -> PartitionLog:
    """Open a partition that is on disk.

    Damage with valid data after it, and records that are missing according to the manifest, leave the partition offline
    and its files unchanged, unless the operator allowed truncation (`truncate_corruption`, from
    `moldau.recovery.truncate`).
    """
    files, clock, last_run = files or Files(), clock or SystemClock(), last_run or LastRun()
    names = finish_swaps(files, directory, files.names(directory))
    segments = _listed_segments(files, directory, names)
    problem = _loss(segments, last_run)
    if problem is not None and not truncate_corruption:
        return _offline_log(
            directory,
            topic_partition,
            config,
            segments,
            last_run,
            problem,
            files=files,
            clock=clock,
            events=events,
        )
    if problem is not None:
        log.warning("%s: %s; accepted, since moldau.recovery.truncate is set", directory, problem)
    _drop_lost_indexes(files, directory, names, segments)
    if not segments:
        segments = [_new_segment(files, directory, last_run.log_start_offset or 0, clock.now_ms())]
    loader = _Loader(
        files,
        directory,
        config,
        segments,
        now_ms=clock.now_ms(),
        truncate_corruption=truncate_corruption,
        last_run=last_run,
    )
    loader.load(names)
    return _loaded_log(loader, topic_partition, last_run, clock=clock, events=events)


def _loaded_log(
    loader: _Loader, topic_partition: TopicPartition, last_run: LastRun, *, clock: Clock, events: LogEvents | None
) -> PartitionLog:
    """Build the log of what was loaded; offline if the loader found a problem."""
    start_offset, end_offset = loader.start_offset, loader.end_offset
    high_watermark = start_offset if last_run.high_watermark is None else last_run.high_watermark
    opened = PartitionLog(
        loader.directory,
        topic_partition,
        loader.config,
        loader.segments,
        log_start_offset=start_offset,
        log_end_offset=end_offset,
        recovery_point=min(last_run.recovery_point or 0, end_offset),
        high_watermark=min(max(high_watermark, start_offset), end_offset),
        snapshot_offsets=sorted(loader.snapshots.offsets),
        files=loader.files,
        clock=clock,
        events=events,
    )
    opened.adopt(loader.epochs, loader.producers, is_saved=loader.are_epochs_saved)
    if last_run.entry is not None and last_run.is_entry_exact:
        opened.assume_topic_id(last_run.entry.topic_id)
    if loader.problem is not None:
        opened.recorded = last_run.entry
        opened.take_offline(loader.problem, is_damaged=True)
    elif loader.shortfall is not None:
        _report_loss(opened, last_run, loader.shortfall)
    return opened


def _loss(segments: Sequence[Segment], last_run: LastRun) -> str | None:
    if last_run.entry is None:
        return None
    found = {segment.base_offset: segment.size for segment in segments}
    return loss(
        last_run.entry, found, is_exact=last_run.is_entry_exact, log_start_offset=last_run.log_start_offset or 0
    )


def _is_trusted(last_run: LastRun, segments: Sequence[Segment]) -> bool:
    """Whether the recovery point is the log end: after a clean shutdown, unless segments or manifest contradict it."""
    recovery_point, entry = last_run.recovery_point, last_run.entry
    if not last_run.is_clean or recovery_point is None or recovery_point < segments[-1].base_offset:
        return False
    return entry is None or not last_run.is_entry_exact or recovery_point == entry.end_offset


def _new_segment(files: Files, directory: str, base_offset: int, now_ms: int) -> Segment:
    segment = Segment.create(files, directory, base_offset, now_ms=now_ms)
    segment.release()
    return segment


def _listed_segments(files: Files, directory: str, names: Sequence[str]) -> list[Segment]:
    """Return the segments in offset order."""
    bases = sorted(parse_base_offset(name) for name in names if name.endswith(".log"))
    segments = [Segment(files, directory, base) for base in bases]
    for segment in segments:
        segment.size = files.size(segment.path(".log"))
        segment.max_timestamp = None if segment.size else NO_TIMESTAMP
    return segments


def _drop_lost_indexes(files: Files, directory: str, names: Sequence[str], segments: Sequence[Segment]) -> None:
    """Remove index files without a log file."""
    known = {segment.base_offset for segment in segments}
    for name in names:
        if name.endswith(EXTENSIONS[1:]) and parse_base_offset(name) not in known:
            files.unlink(f"{directory}/{name}")


def _listed_snapshots(files: Files, directory: str, names: Sequence[str], segments: Sequence[Segment]) -> list[int]:
    """Return the offsets of the snapshots to keep: one per segment, and the newest above the last segment."""
    offsets = sorted(parse_base_offset(name) for name in names if name.endswith(".snapshot"))
    bases = {segment.base_offset for segment in segments}
    newest = offsets[-1] if offsets and offsets[-1] > segments[-1].base_offset else None
    for offset in offsets:
        if offset not in bases and offset != newest:
            files.unlink(f"{directory}/{offset:020d}.snapshot")
    return [offset for offset in offsets if offset in bases or offset == newest]


class _Loader:
    """The state while one partition is being opened: its segments and the findings about them."""

    def __init__(
        self,
        files: Files,
        directory: str,
        config: LogConfig,
        segments: list[Segment],
        *,
        now_ms: int,
        truncate_corruption: bool,
        last_run: LastRun,
    ) -> None:
        self.files = files
        self.directory = directory
        self.config = config
        self.segments = segments
        self.snapshots = Snapshots(files, directory)
        self.start_offset = self.end_offset = segments[0].base_offset
        self.epochs: LeaderEpochs | None = None
        """Built by recovery; `None` if the checkpoint file can be trusted."""
        self.are_epochs_saved = False
        self.producers: ProducerStates | None = None
        self.problem: str | None = None
        """Why the partition must stay offline."""
        self.shortfall: str | None = None
        """Why the partition must stay offline, if the log ends before the offset it must reach."""
        self._last_run = last_run
        self._now_ms = now_ms
        self._truncate_corruption = truncate_corruption
        self._least_end = 0 if truncate_corruption else last_run.least_end
        entry = last_run.entry
        self._txn_marks: dict[int, TxnMark | None] = (
            {} if entry is None else {one.base_offset: one.txn_mark for one in entry.segments if one.size is not None}
        )

    def load(self, names: Sequence[str]) -> None:
        """Trust or recover the files in the partition's folder, whose names are given."""
        last_run = self._last_run
        self.snapshots = Snapshots(
            self.files, self.directory, _listed_snapshots(self.files, self.directory, names, self.segments)
        )
        if _is_trusted(last_run, self.segments):
            self.trust(last_run.recovery_point or 0, frozenset(names))
        else:
            self.recover(last_run.recovery_point or 0)
        self.start_offset = max(last_run.log_start_offset or 0, self.segments[0].base_offset)
        if self.start_offset > self.end_offset and self.is_whole:
            self.start_over(self.start_offset)
            self.end_offset = self.start_offset

    def trust(self, end_offset: int, names: frozenset[str]) -> None:
        """After a clean shutdown: use the recovery point as the log end; rebuild missing or damaged indexes."""
        self.end_offset = end_offset
        self._mend_indexes(len(self.segments), names)

    def _mend_indexes(self, count: int, names: frozenset[str]) -> None:
        """Rebuild missing or damaged indexes of the first `count` segments."""
        for index, segment in enumerate(self.segments[:count]):
            if not segment.size or self._has_indexes(segment, names):
                continue
            log.warning("%s: rebuilding indexes that are missing or damaged", segment.path(".log"))
            size = segment.size
            check = self._rebuild(segment, self._producers_before(index), None, check_crc=True)
            segment.force_time_entry()
            if check.problem is not None:
                segment.size = size
                self.problem = (
                    f"{segment.path('.log')} at position {check.position}: {check.problem}, so its indexes cannot be "
                    "rebuilt; nothing was cut; restore the file, or set moldau.recovery.truncate=true to give up "
                    "everything from there on"
                )
                return

    def _has_indexes(self, segment: Segment, names: frozenset[str]) -> bool:
        stem = f"{segment.base_offset:020d}"
        if not self._is_txn_index_sound(segment, f"{stem}.txnindex" in names):
            return False  # only a replay can determine which transactions were aborted
        return f"{stem}.index" in names and f"{stem}.timeindex" in names

    def _is_txn_index_sound(self, segment: Segment, is_there: bool) -> bool:
        """Whether the transaction index matches the manifest or, without a manifest entry, has a possible size.

        A damaged index would expose aborted records to read_committed readers, so its checksum is verified. A segment
        without aborted transactions has no such file.
        """
        known = self._txn_marks.get(segment.base_offset)
        found = TxnMark.of(self.files.read_file(segment.path(".txnindex"))) if is_there else NO_TXN_INDEX
        if known is None:
            return found.size % TXN_ENTRY.size == 0
        if found != known:
            return False
        segment.expect_txn_index(known)
        return True

    def _producers_before(self, index: int) -> ProducerStates:
        return self.snapshots.load(self.segments[:index], self.segments[index].base_offset, self._now_ms)

    def recover(self, recovery_point: int) -> None:
        """Check every segment that reaches beyond the recovery point, oldest first."""
        following = [segment.base_offset for segment in self.segments[1:]]
        first = next((index for index, base in enumerate(following) if base > recovery_point), len(following))
        self._mend_indexes(first, frozenset(self.files.names(self.directory)))
        if not self.is_whole:
            self.end_offset = max(recovery_point, self.segments[-1].base_offset)
            return
        base_offset = self.segments[first].base_offset
        self.epochs = EpochFile(self.files, self.directory).epochs
        saved = self.epochs.entries
        self.epochs.truncate_end(base_offset)
        self.producers = self._producers_before(first)
        self.end_offset = base_offset
        for index in range(first, len(self.segments)):
            if not self._recover_segment(index):
                break
        if self.end_offset < self._least_end and self.is_whole:
            self.shortfall = (
                f"{self.directory} ends at offset {self.end_offset}, but everything below {self._least_end} was on disk"
            )
        if not self.is_whole:
            return
        if self.end_offset < recovery_point:
            log.error(
                "%s ends at offset %d, but everything below %d was on disk: the disk lost data, or a file was changed",
                self.directory,
                self.end_offset,
                recovery_point,
            )
        self.snapshots.discard_above(self.end_offset)
        self.epochs.truncate_end(self.end_offset)
        self.are_epochs_saved = saved == self.epochs.entries
        for segment in self.segments:
            segment.release()

    @property
    def is_whole(self) -> bool:
        return self.problem is None and self.shortfall is None

    def _recover_segment(self, index: int) -> bool:
        """Check one segment; return whether to continue with the next."""
        segment, is_last = self.segments[index], index + 1 == len(self.segments)
        assert self.producers is not None
        size = segment.size
        if size == 0:
            segment.begin_rebuild(self.config.index_interval_bytes)
            self.end_offset = max(self.end_offset, segment.base_offset)
            self._note_gap(index, segment.base_offset)
            return True
        check = self._rebuild(segment, self.producers, self.epochs, check_crc=True)
        if not is_last:
            segment.force_time_entry()
        self.end_offset = max(self.end_offset, check.next_offset)
        if check.problem is None:
            self._note_gap(index, check.next_offset)
            return True
        damage = f"{segment.path('.log')} at position {check.position}: {check.problem}"
        beyond = self._valid_data_behind(index, check, size)
        if check.is_legacy or (beyond is not None and not self._truncate_corruption):
            segment.size = size
            self.problem = f"{damage}; {beyond or 'nothing was changed'}"
            return False
        if check.next_offset < self._least_end:
            segment.size = size
            self.shortfall = f"{damage}, but everything below offset {self._least_end} was on disk"
            return False
        log.warning("%s; cutting off %d bytes", damage, size - check.position)
        self.files.truncate(segment.file.fd, check.position)
        for later in self.segments[index + 1 :]:
            log.warning("%s: removing %d bytes after the cut", later.path(".log"), later.size)
            later.delete()
            self.snapshots.discard([later.base_offset])
        del self.segments[index + 1 :]
        return False

    def _note_gap(self, index: int, end_offset: int) -> None:
        """Log a gap, which outside compacted topics means that a crash lost the end of an unsynced segment."""
        if index + 1 < len(self.segments) and not self.config.is_compacted:
            following = self.segments[index + 1].base_offset
            if end_offset < following:
                segment = self.segments[index].path(".log")
                log.warning("%s: offsets %d to %d are missing after it", segment, end_offset, following - 1)

    def _valid_data_behind(self, index: int, check: SegmentCheck, size: int) -> str | None:
        """Where valid batches follow the damage, as a message for the operator; `None` if there are none."""
        segment = self.segments[index]
        found = next_valid_batch(self.files, segment.file.fd, size, check.position, check.next_offset)
        if found is not None:
            where = f"at position {found[0]} with offset {found[1]}"
        else:
            later = [other for other in self.segments[index + 1 :] if other.size]
            if not later:
                return None
            where = f"in {later[0].path('.log')}"
        return (
            f"valid batches follow {where}, so nothing was cut; restore the file, "
            "or set moldau.recovery.truncate=true to give up everything from there on"
        )

    def _rebuild(
        self, segment: Segment, producers: ProducerStates, epochs: LeaderEpochs | None, *, check_crc: bool
    ) -> SegmentCheck:
        """Scan a segment and rebuild its indexes, producer state and epochs."""

        def on_epoch(epoch: int, base_offset: int) -> None:
            if epochs is not None and epoch > epochs.latest:
                epochs.assign(epoch, base_offset)

        def on_producer(batch: memoryview, header: tuple[int, ...]) -> None:
            track_batch(producers, segment, batch, header, header[0], self._now_ms)

        check = SegmentCheck(segment, self.config.index_interval_bytes)
        check.run(on_epoch, on_producer, check_crc=check_crc)
        return check

    def start_over(self, offset: int) -> None:
        """Replace all segments by an empty one, because the log ends before its recorded start."""
        log.warning("%s ends at %d, before its start %d: the log is emptied", self.directory, self.end_offset, offset)
        for segment in self.segments:
            segment.delete()
        self.snapshots.discard(list(self.snapshots.offsets))
        self.segments = [_new_segment(self.files, self.directory, offset, self._now_ms)]
        self.epochs, self.producers = LeaderEpochs(), ProducerStates()
