"""Cleaning closed segments: two passes of reading, one of writing.

The first pass records the newest offset of every key in the dirty part, the second copies what survives into `.cleaned`
files beside the originals. The originals are not changed: `log.cleaning.cleaning_round` swaps the new files in.
Throttled (`Throttle`) and CPU-heavy, so it runs in a separate process. Start at `clean`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence

from moldau.log.cleaning.batch_filter import BatchFilter, marker_type
from moldau.log.cleaning.cleaned_transactions import CleanedTransactions
from moldau.log.cleaning.cleaning_job import CleanedGroup, CleaningJob, CleaningResult, Source
from moldau.log.cleaning.compaction import SegmentFacts, segment_groups
from moldau.log.cleaning.offset_map import OffsetMap, offset_map_for
from moldau.log.files import Files
from moldau.log.segments.batch_scan import Window
from moldau.log.segments.record_spans import record_spans, unpacked_body
from moldau.log.segments.segment import Segment
from moldau.log.segments.txn_index import AbortedTransaction
from moldau.protocol.record_batch import BATCH_OVERHEAD, MAGIC, BatchHeader
from moldau.protocol.records import InvalidRecordError, crc_of

__all__ = ["CLEANED_SUFFIX", "Throttle", "clean"]

CLEANED_SUFFIX = ".cleaned"
WRITE_BYTES = 1024 * 1024


def clean(job: CleaningJob, report: Callable[[CleanedGroup], None], *, files: Files | None = None) -> CleaningResult:
    """Run one round. `report` is called for every group as soon as its files are on disk.

    Raises `InvalidRecordError` for a damaged batch: it must not be rewritten with a valid CRC.
    """
    files = files or Files()
    throttle = Throttle(job.io_max_bytes_per_second)
    first_pass = _NewestOffsets(job, files, throttle)
    first_pass.run()
    rules = BatchFilter(
        newest=first_pass.newest,
        end_offset=first_pass.end_offset,
        upper_bound=job.upper_bound,
        now_ms=job.now_ms,
        delete_retention_ms=job.delete_retention_ms,
        producers=job.producers,
        levels=job.levels,
    )
    rules.transactions.expect(job.aborted)
    sources = [source for source in job.sources if source.base_offset < first_pass.end_offset]
    for group in _groups(sources, job):
        report(_clean_group(group, rules, job, files, throttle))
    return CleaningResult(
        first_pass.end_offset,
        len(first_pass.newest),
        first_pass.newest.capacity,
        first_pass.bytes_read,
        rules.records_read,
        rules.records_kept,
    )


class Throttle:
    """Limits the combined rate of reads and writes by sleeping."""

    def __init__(
        self,
        bytes_per_second: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = bytes_per_second
        self._clock, self._sleep = clock, sleep
        self._started = clock()
        self._moved = 0

    def maybe_throttle(self, size: int) -> None:
        self._moved += size
        ahead = self._moved / self._rate - (self._clock() - self._started)
        if ahead > 0:
            self._sleep(ahead)


class _NewestOffsets:
    """The first pass: fills the map until the dirty part ends or the map is full."""

    def __init__(self, job: CleaningJob, files: Files, throttle: Throttle) -> None:
        self._job, self._files, self._throttle = job, files, throttle
        self._transactions = CleanedTransactions()
        self._transactions.expect(entry for entry in job.aborted if entry.last_offset >= job.first_dirty_offset)
        self._dirty_sources = _dirty_sources(job)
        self.newest: OffsetMap = offset_map_for(self._count_records(), job.dedupe_buffer_bytes)
        self.end_offset = job.first_dirty_offset
        self.bytes_read = 0

    def run(self) -> None:
        for header, batch in _batches(self._dirty_sources, self._job.directory, self._files):
            if header.base_offset >= self._job.upper_bound:
                break
            self.bytes_read += len(batch)
            self._throttle.maybe_throttle(len(batch))
            if not self._take(header, batch):
                return
        self.end_offset = self._job.upper_bound

    def _take(self, header: BatchHeader, batch: memoryview) -> bool:
        marker = marker_type(header, batch) if header.is_control else None
        is_removable = self._transactions.is_removable(header, marker)
        if not header.is_control and not is_removable and header.last_offset >= self._job.first_dirty_offset:
            base_offset, put = header.base_offset, self.newest.put
            first, upper_bound = self._job.first_dirty_offset, self._job.upper_bound
            for _, _, _, _, delta, key, _ in record_spans(unpacked_body(batch, header), header):
                offset = base_offset + delta
                if key is not None and first <= offset < upper_bound and not put(key, offset):
                    self.end_offset = offset
                    return False
        return True

    def _count_records(self) -> int:
        """An upper bound for the number of keys, from the headers alone; it sizes the map."""
        count = 0
        for source in self._dirty_sources:
            segment = _segment(source, self._job.directory, self._files)
            count += sum(header.records_count for _, header in segment.headers())
        return count


def _dirty_sources(job: CleaningJob) -> list[Source]:
    first = max((i for i, s in enumerate(job.sources) if s.base_offset <= job.first_dirty_offset), default=0)
    return [source for source in job.sources[first:] if source.base_offset < job.upper_bound]


def _groups(sources: Sequence[Source], job: CleaningJob) -> Iterator[list[Source]]:
    by_base = {source.base_offset: source for source in sources}
    facts = [SegmentFacts(s.base_offset, s.size_in_bytes, index_bytes=s.index_bytes) for s in sources]
    for group in segment_groups(
        facts, max_bytes=job.segment_bytes, max_index_bytes=job.segment_index_bytes, end_offset=job.upper_bound
    ):
        yield [by_base[segment.base_offset] for segment in group]


def _clean_group(
    group: Sequence[Source], rules: BatchFilter, job: CleaningJob, files: Files, throttle: Throttle
) -> CleanedGroup:
    output = _Output(job, group[0].base_offset, files)
    bytes_read, is_unchanged = 0, len(group) == 1
    for header, batch in _batches(group, job.directory, files):
        bytes_read += len(batch)
        left = rules.filter_batch(header, batch)
        is_unchanged = is_unchanged and left is batch
        if left is not None:
            output.append(left)
        throttle.maybe_throttle(len(batch) + (len(left) if left is not None else 0))
    aborted, rules.transactions.kept_aborted = rules.transactions.kept_aborted, []
    if is_unchanged:
        output.discard()
    else:
        for entry in aborted:
            output.segment.txn_index.add(
                AbortedTransaction(entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset)
            )
        output.finish(modified_ms=max(_segment(s, job.directory, files).modified_ms() for s in group))
    base_offsets = tuple(source.base_offset for source in group)
    return CleanedGroup(base_offsets, bytes_read, 0 if is_unchanged else output.segment.size, is_unchanged)


class _Output:
    """A cleaned segment being written: batches are collected into large writes, indexes are built along the way."""

    def __init__(self, job: CleaningJob, base_offset: int, files: Files) -> None:
        self._files, self._interval_bytes = files, job.index_interval_bytes
        _segment(Source(base_offset, 0), job.directory, files, CLEANED_SUFFIX).delete()
        self.segment = Segment.create(files, job.directory, base_offset, now_ms=job.now_ms, suffix=CLEANED_SUFFIX)
        self.segment.index_after = job.index_interval_bytes
        self._pending: list[bytes | memoryview] = []
        self._pending_bytes = 0

    def append(self, batch: bytes | memoryview) -> None:
        self.segment.note_batch(BatchHeader.at(batch), self.segment.size, self._interval_bytes)
        self._pending.append(batch)
        self._pending_bytes += len(batch)
        if self._pending_bytes >= WRITE_BYTES:
            self._write()

    def finish(self, *, modified_ms: int) -> None:
        """Sync log and indexes to disk. The file gets the newest source's modification time, which retention uses."""
        self._write()
        self.segment.is_index_saved = False
        self.segment.save_indexes(is_last=True, sync=True)
        self.segment.sync()
        os.utime(self.segment.path(".log"), ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))
        self.segment.release()

    def discard(self) -> None:
        self.segment.delete()

    def _write(self) -> None:
        fd, rest = self.segment.file.fd, memoryview(b"".join(self._pending))
        while rest:
            rest = rest[self._files.write(fd, rest) :]
        self._pending, self._pending_bytes = [], 0


def _segment(source: Source, directory: str, files: Files, suffix: str = "") -> Segment:
    return Segment(files, directory, source.base_offset, size=source.size_in_bytes, suffix=suffix)


def _batches(sources: Sequence[Source], directory: str, files: Files) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Every batch of the sources in order, checked."""
    for source in sources:
        segment = _segment(source, directory, files)
        held = segment.file
        window, position, next_offset = Window(files, held.fd, source.size_in_bytes), 0, source.base_offset
        while position < source.size_in_bytes:
            header = _header_at(window, position)
            if header is None or not window.cover(position, header.size_in_bytes):
                raise InvalidRecordError(f"{segment.path('.log')}: no whole batch at position {position}")
            batch = window.view[position - window.start :][: header.size_in_bytes]
            if header.magic != MAGIC or crc_of(batch) != header.crc:
                raise InvalidRecordError(f"{segment.path('.log')}: the batch at position {position} fails its CRC")
            if header.base_offset < next_offset or header.last_offset_delta < 0:
                # The CRC does not cover the base offset.
                raise InvalidRecordError(
                    f"{segment.path('.log')}: found offset {header.base_offset} at position {position}, "
                    f"expected {next_offset} or later"
                )
            yield header, batch
            position, next_offset = position + header.size_in_bytes, header.last_offset + 1


def _header_at(window: Window, position: int) -> BatchHeader | None:
    if not window.cover(position, BATCH_OVERHEAD):
        return None
    header = BatchHeader.at(window.view, position - window.start)
    return header if header.size_in_bytes >= BATCH_OVERHEAD else None
