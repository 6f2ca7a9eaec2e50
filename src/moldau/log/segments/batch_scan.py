"""Scanning a log file batch by batch without loading it into memory.

`headers` and `first_reaching` go from header to header for lookups; `Window` gives recovery and compaction whole
batches out of large reads. None of them validates: `log.recovery.recovery` does. They keep a reference to the open file
they are given, because another thread may drop the segment's own reference. Start at `headers`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from moldau.log.files import Files, SegmentFile
from moldau.protocol.record_batch import BATCH_OVERHEAD, HEADER, LOG_OVERHEAD, BatchHeader

__all__ = ["WINDOW_BYTES", "Window", "first_reaching", "headers"]

_HOP: Final = struct.Struct(">qi11xi")
"""The header fields base offset, batch length and last offset delta."""

_HOP_BYTES: Final = 8192
WINDOW_BYTES: Final = 4 * 1024 * 1024


def headers(files: Files, file: SegmentFile, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each batch in [position, end); stops at an incomplete batch.

    Several small batches share one read, large ones need one small read each.
    """
    chunk, chunk_start = b"", position
    while position + BATCH_OVERHEAD <= end:
        within = position - chunk_start
        if within + BATCH_OVERHEAD > len(chunk):
            chunk, chunk_start, within = files.pread(file.fd, min(_HOP_BYTES, end - position), position), position, 0
            if len(chunk) < BATCH_OVERHEAD:
                return
        header = BatchHeader._make(HEADER.unpack_from(chunk, within))
        following = position + header.batch_length + LOG_OVERHEAD
        if header.batch_length < BATCH_OVERHEAD - LOG_OVERHEAD or following > end:
            return
        yield position, header
        position = following


def first_reaching(files: Files, file: SegmentFile, position: int, end: int, offset: int) -> int | None:
    """The position of the first batch in [position, end) that reaches `offset`; used by every fetch of older data."""
    chunk, chunk_start = b"", position
    while position + BATCH_OVERHEAD <= end:
        within = position - chunk_start
        if within + _HOP.size > len(chunk):
            chunk, chunk_start, within = files.pread(file.fd, min(_HOP_BYTES, end - position), position), position, 0
            if len(chunk) < _HOP.size:
                return None
        base_offset, batch_length, last_offset_delta = _HOP.unpack_from(chunk, within)
        if base_offset + last_offset_delta >= offset:
            return position
        if batch_length < BATCH_OVERHEAD - LOG_OVERHEAD:
            return None
        position += batch_length + LOG_OVERHEAD
    return None


class Window:
    """A range of a file in memory, which moves forward with the reader."""

    __slots__ = ("_fd", "_files", "_read_bytes", "end", "size", "start", "view")

    def __init__(self, files: Files, fd: int, size: int, read_bytes: int = WINDOW_BYTES) -> None:
        self._files = files
        self._read_bytes = read_bytes
        self._fd = fd
        self.size = size
        self.start = self.end = 0
        self.view = memoryview(b"")

    def cover(self, position: int, length: int) -> bool:
        """Make `view[position - start:]` hold `length` bytes; `False` if the file ends before that."""
        if self.start <= position and position + length <= self.end:
            return True
        if position + length > self.size:
            return False
        wanted = min(max(length, self._read_bytes), self.size - position)
        parts, got = [], 0
        while got < wanted:
            part = self._files.pread(self._fd, wanted - got, position + got)
            if not part:
                break
            parts.append(part)
            got += len(part)
        self.view = memoryview(parts[0] if len(parts) == 1 else b"".join(parts))
        self.start, self.end = position, position + got
        return got >= length
