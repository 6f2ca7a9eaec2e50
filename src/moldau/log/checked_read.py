"""Reading a whole log with every batch checked, for coordinators that rebuild their state from it.

Consumers check what they fetch; a coordinator that loaded a damaged batch would act on it. So its log is scanned file
by file, not looked up by offset: checksums must match, offsets must increase and stay within their segment, and the
last batch must end where the log ends. The first violation raises `DamagedLogError`. Start at `checked_batches`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from moldau.log.errors import DamagedLogError
from moldau.log.partition_log import PartitionLog
from moldau.log.segments.batch_scan import WINDOW_BYTES, Window
from moldau.log.segments.log_segments import base_offset_of
from moldau.log.segments.segment import Segment
from moldau.protocol.record_batch import BATCH_OVERHEAD, MAGIC, BatchHeader
from moldau.protocol.records import crc_of

__all__ = ["LogExtent", "checked_batches", "extent_of"]

_ADVICE = (
    "restore the file from a backup, or set moldau.recovery.truncate=true for one start to give up everything from "
    "there on"
)


class LogExtent(NamedTuple):
    """A log's end at one moment: the offset, the last segment and its size."""

    end_offset: int
    last: Segment
    size: int


def extent_of(log: PartitionLog) -> LogExtent:
    """The log's end now. Call it only while nothing appends to the log."""
    last = log.segments[-1]
    return LogExtent(log.log_end_offset, last, last.size)


def checked_batches(
    log: PartitionLog, extent: LogExtent, *, after: LogExtent | None = None, read_bytes: int = WINDOW_BYTES
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield the batches from the start of the log, or from the extent `after`, up to `extent`.

    Runs in any thread. The cleaner may replace segments meanwhile, so each segment is looked up just before it is read.
    """
    log.check_online()
    offset = log.log_start_offset if after is None else after.end_offset
    while offset < extent.end_offset:
        segments = log.segments
        index = max(0, bisect_right(segments, offset, key=base_offset_of) - 1)
        segment, following = segments[index], segments[index + 1 : index + 2]
        is_last = segment is extent.last
        size = extent.size if is_last else segment.size
        upper_bound = following[0].base_offset if following and not is_last else extent.end_offset
        walk = _Walk(segment, size, upper_bound, read_bytes)
        if after is not None and segment is after.last:
            walk.position, walk.next_offset = after.size, after.end_offset
        for header, batch in walk.batches():
            if header.last_offset >= offset:
                yield header, batch
        if is_last and walk.next_offset != extent.end_offset:
            raise walk.damage(f"the log ends at offset {walk.next_offset}, where {extent.end_offset} was expected")
        offset = upper_bound


class _Walk:
    """Reads one segment's file batch by batch."""

    def __init__(self, segment: Segment, size: int, upper_bound: int, read_bytes: int) -> None:
        self._segment = segment
        self._file = segment.file
        self._window = Window(segment.files, self._file.fd, size, read_bytes)
        self._upper_bound = upper_bound
        self.position = 0
        self.next_offset = segment.base_offset

    def damage(self, problem: str) -> DamagedLogError:
        return DamagedLogError(f"{self._segment.path('.log')} at position {self.position}: {problem}; {_ADVICE}")

    def batches(self) -> Iterator[tuple[BatchHeader, memoryview]]:
        window = self._window
        while self.position < window.size:
            header = self._header()
            within = self.position - window.start
            batch = window.view[within : within + header.size_in_bytes]
            if crc_of(batch) != header.crc:
                raise self.damage(f"the batch of offset {header.base_offset} fails its checksum")
            yield header, batch
            self.position += header.size_in_bytes
            self.next_offset = header.last_offset + 1

    def _header(self) -> BatchHeader:
        """The header of the next batch; raises unless the batch is complete and its offsets are valid."""
        window, left = self._window, self._window.size - self.position
        if not window.cover(self.position, BATCH_OVERHEAD):
            raise self.damage(f"only {left} bytes are left, too few for the header of a batch")
        header = BatchHeader.at(window.view, self.position - window.start)
        if header.magic != MAGIC or header.size_in_bytes < BATCH_OVERHEAD:
            raise self.damage("no valid batch begins here")
        if not window.cover(self.position, header.size_in_bytes):
            raise self.damage(
                f"the batch of offset {header.base_offset} is {header.size_in_bytes - left} bytes too short"
            )
        if header.base_offset < self.next_offset or header.last_offset_delta < 0:
            raise self.damage(f"found offset {header.base_offset}, expected {self.next_offset} or later")
        if header.last_offset >= self._upper_bound:
            raise self.damage(f"found offset {header.last_offset}, expected one below {self._upper_bound}")
        return header
