"""Walking a log file batch by batch without holding it in memory.

`headers` hops from header to header for lookups; `Window` gives recovery and compaction whole batches out
of large reads. Neither checks anything: `log.recovery` does. Start at `headers`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moldau.log.files import Files
from moldau.protocol.record_batch import BATCH_OVERHEAD, HEADER, LOG_OVERHEAD, BatchHeader

__all__ = ["Window", "headers"]

_HOP_BYTES: Final = 8192
WINDOW_BYTES: Final = 4 * 1024 * 1024


def headers(files: Files, fd: int, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each batch in [position, end); stops at a batch that is not whole.

    Small batches share a read, large ones cost one small read each.
    """
    chunk, chunk_start = b"", position
    while position + BATCH_OVERHEAD <= end:
        within = position - chunk_start
        if within + BATCH_OVERHEAD > len(chunk):
            chunk, chunk_start, within = files.pread(fd, min(_HOP_BYTES, end - position), position), position, 0
            if len(chunk) < BATCH_OVERHEAD:
                return
        header = BatchHeader._make(HEADER.unpack_from(chunk, within))
        following = position + header.batch_length + LOG_OVERHEAD
        if header.batch_length < BATCH_OVERHEAD - LOG_OVERHEAD or following > end:
            return
        yield position, header
        position = following


class Window:
    """A stretch of a file in memory, moved along as the reader goes."""

    __slots__ = ("_fd", "_files", "end", "size", "start", "view")

    def __init__(self, files: Files, fd: int, size: int) -> None:
        self._files = files
        self._fd = fd
        self.size = size
        self.start = self.end = 0
        self.view = memoryview(b"")

    def cover(self, position: int, length: int) -> bool:
        """Make `view[position - start:]` hold `length` bytes; `False` when the file ends before that."""
        if self.start <= position and position + length <= self.end:
            return True
        if position + length > self.size:
            return False
        wanted = min(max(length, WINDOW_BYTES), self.size - position)
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
