"""Recovery: reading a log file after a crash, and deciding which part of it is valid.

Every batch is checked: length, magic, CRC, increasing offsets. Invalid data at the very end is normal after a crash and
is cut off. Invalid data with valid batches after it is damage: a second scan (`next_valid_batch`) distinguishes the
two, so that no readable batch is discarded without the operator's consent. `log.recovery.loading` acts on the result.
Start at `SegmentCheck.run`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

from crc32c import crc32c

from moldau.core.ids import INT32_MAX
from moldau.log.files import Files
from moldau.log.segments.batch_scan import Window
from moldau.log.segments.segment import Segment
from moldau.protocol.record_batch import (
    ATTRIBUTES_OFFSET,
    BATCH_OVERHEAD,
    HEADER,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    BatchHeader,
)

__all__ = ["SegmentCheck", "next_valid_batch"]

_SMALLEST: Final = BATCH_OVERHEAD - LOG_OVERHEAD
_SMALLEST_LEGACY: Final = 14
_MAGIC_OFFSET: Final = 16
_SEARCH_BYTES: Final = 1024 * 1024


class SegmentCheck:
    """A scan of a segment's file that stops at the first byte that is not part of a valid batch.

    `run` also rebuilds the segment's size, timestamps and indexes. Afterwards `position` is where it stopped,
    `next_offset` is the offset after the last valid batch, and `problem` describes what is wrong there; it is `None` if
    the whole file is valid.
    """

    def __init__(self, segment: Segment, interval_bytes: int) -> None:
        self._segment = segment
        self._interval_bytes = interval_bytes
        self._size = segment.size
        self._window = Window(segment.files, segment.file.fd, segment.size)
        self.position = 0
        self.next_offset = segment.base_offset
        self.problem: str | None = None
        self.is_legacy = False
        """Whether it stopped at a message of magic 0 or 1, which is not damage."""

    def run(
        self,
        on_epoch: Callable[[int, int], object],
        on_producer: Callable[[memoryview, tuple[int, ...]], object],
        *,
        check_crc: bool = True,
    ) -> None:
        """Check every batch, and call back for new leader epochs and for batches with a producer id.

        One loop without function calls for ordinary batches: after a crash it may run over a gigabyte of them.
        """
        segment, window, size = self._segment, self._window, self._size
        unpack, end_of_header = HEADER.unpack_from, BATCH_OVERHEAD
        segment.begin_rebuild(self._interval_bytes)
        position, next_offset, latest_epoch = 0, segment.base_offset, -1
        last_allowed = segment.last_offset_allowed
        max_timestamp, index_after = NO_TIMESTAMP, segment.index_after
        view, start, end = window.view, 0, 0
        while position < size:
            if position + end_of_header > end:
                if not window.cover(position, end_of_header):
                    break
                view, start, end = window.view, window.start, window.end
            within = position - start
            header = unpack(view, within)
            following = position + header[1] + LOG_OVERHEAD
            last_offset = header[0] + header[6]
            if (
                header[3] != MAGIC
                or header[1] < _SMALLEST
                or header[6] < 0
                or header[0] < next_offset
                or last_offset > last_allowed
                or following > size
            ):
                break
            if following > end:
                if not window.cover(position, following - position):
                    break
                view, start, end = window.view, window.start, window.end
                within = position - start
            if check_crc and crc32c(view[within + ATTRIBUTES_OFFSET : following - start]) != header[4]:
                break
            if header[8] > max_timestamp:
                segment.max_timestamp = max_timestamp = header[8]
                segment.max_timestamp_offset = last_offset
            if position > index_after:
                segment.add_index_entry(last_offset, position, self._interval_bytes)
                index_after = segment.index_after
            elif position == 0:
                segment.first_timestamp = header[8]
            if header[2] > latest_epoch:
                latest_epoch = header[2]
                on_epoch(latest_epoch, header[0])
            if header[9] >= 0:
                on_producer(view[within : following - start], header)
            position, next_offset = following, last_offset + 1
        segment.size = self.position = position
        self.next_offset = next_offset
        if position < size:
            self.problem = self._problem_at(position)

    def _problem_at(self, position: int) -> str:
        if not self._window.cover(position, BATCH_OVERHEAD):
            return f"{self._size - position} bytes are too few for a batch"
        header = BatchHeader.at(self._window.view, position - self._window.start)
        return self._header_problem(header, position) or f"the batch of offset {header.base_offset} fails its checksum"

    def _is_legacy(self, header: BatchHeader, position: int) -> bool:
        """Whether an intact message of magic 0 or 1 lies here: its CRC-32 follows the length."""
        size = header.batch_length + LOG_OVERHEAD
        if (
            header.magic not in (0, 1)
            or header.batch_length < _SMALLEST_LEGACY
            or not self._window.cover(position, size)
        ):
            return False
        within = position - self._window.start
        message = self._window.view[within : within + size]
        return zlib.crc32(message[_MAGIC_OFFSET:]) == int.from_bytes(message[LOG_OVERHEAD:_MAGIC_OFFSET], "big")

    def _header_problem(self, header: BatchHeader, position: int) -> str | None:
        if header.magic != MAGIC:
            if self._is_legacy(header, position):
                self.is_legacy = True
                return f"magic {header.magic} is a format that is no longer read; convert the log with Kafka 3.x"
            return f"magic {header.magic} is not {MAGIC}"
        if header.batch_length < _SMALLEST:
            return f"a batch length of {header.batch_length}"
        if position + header.batch_length + LOG_OVERHEAD > self._size:
            missing = position + header.batch_length + LOG_OVERHEAD - self._size
            return f"the batch of offset {header.base_offset} lacks its last {missing} bytes"
        if header.last_offset_delta < 0 or header.base_offset < self.next_offset:
            return f"offset {header.base_offset} where {self.next_offset} or later was due"
        if header.last_offset > self._segment.last_offset_allowed:
            return f"offset {header.last_offset} is too far from the segment's base"
        return None


def next_valid_batch(files: Files, fd: int, size: int, after: int, lowest_offset: int) -> tuple[int, int] | None:
    """Search for a valid batch anywhere after position `after`; return its position and base offset.

    It may begin at any byte, so this searches for the magic byte and then verifies the checksum.
    """
    start = after + 1
    while start + BATCH_OVERHEAD <= size:
        chunk = files.pread(fd, min(_SEARCH_BYTES, size - start), start)
        if len(chunk) < BATCH_OVERHEAD:
            return None
        found = chunk.find(b"\x02", _MAGIC_OFFSET)
        while found != -1 and found - _MAGIC_OFFSET + BATCH_OVERHEAD <= len(chunk):
            position = start + found - _MAGIC_OFFSET
            base_offset = _valid_at(files, fd, size, position, chunk, found - _MAGIC_OFFSET, lowest_offset)
            if base_offset is not None:
                return position, base_offset
            found = chunk.find(b"\x02", found + 1)
        start += len(chunk) - BATCH_OVERHEAD + 1
    return None


def _valid_at(  # noqa: PLR0917
    files: Files, fd: int, size: int, position: int, chunk: bytes, within: int, lowest_offset: int
) -> int | None:
    header = BatchHeader._make(HEADER.unpack_from(chunk, within))
    is_plausible = (
        header.magic == MAGIC
        and header.batch_length >= _SMALLEST
        and position + header.batch_length + LOG_OVERHEAD <= size
        and header.last_offset_delta >= 0
        and lowest_offset <= header.base_offset <= lowest_offset + INT32_MAX
    )
    if not is_plausible:
        return None
    batch = files.pread(fd, header.size_in_bytes, position)
    is_valid = len(batch) == header.size_in_bytes and crc32c(memoryview(batch)[ATTRIBUTES_OFFSET:]) == header.crc
    return header.base_offset if is_valid else None
