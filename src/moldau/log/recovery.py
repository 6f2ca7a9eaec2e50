"""Recovery: reading a log file after a crash, and deciding what of it can be believed.

Every batch is checked: length, magic, CRC, offsets that rise. What is invalid at the very end is what a
crash leaves and is cut off. What is invalid with valid batches behind it is damage: a second look
(`next_valid_batch`) tells the two apart, so that nothing readable is thrown away unasked.
`log.loading` acts on the findings. Start at `checked_batches`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from crc32c import crc32c

from moldau.log.batch_scan import Window
from moldau.log.files import Files
from moldau.log.segment import INT32_MAX
from moldau.protocol.record_batch import (
    ATTRIBUTES_OFFSET,
    BATCH_OVERHEAD,
    HEADER,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
)

__all__ = ["BatchCheck", "next_valid_batch"]

_SMALLEST: Final = BATCH_OVERHEAD - LOG_OVERHEAD
_SMALLEST_LEGACY: Final = 14
_MAGIC_OFFSET: Final = 16
_SEARCH_BYTES: Final = 1024 * 1024


class BatchCheck:
    """A walk over a log file that stops at the first byte that is not part of a valid batch.

    Iterate over it; afterwards `position` is where it stopped, `next_offset` what comes after the last good
    batch, and `problem` what is wrong there, or `None` when the file ended as it should.
    """

    def __init__(self, files: Files, fd: int, size: int, base_offset: int, *, check_crc: bool = True) -> None:
        self._window = Window(files, fd, size)
        self._size = size
        self._base_offset = base_offset
        self._check_crc = check_crc
        self.position = 0
        self.next_offset = base_offset
        self.problem: str | None = None
        self.is_legacy = False
        """Whether it stopped at a batch of magic 0 or 1, which is not damage."""

    def __iter__(self) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        """Yield position, header and bytes of each valid batch."""
        window = self._window
        while self.position < self._size:
            position = self.position
            if not window.cover(position, BATCH_OVERHEAD):
                self.problem = f"{self._size - position} bytes are too few for a batch"
                return
            header = BatchHeader._make(HEADER.unpack_from(window.view, position - window.start))
            self.problem = self._implausible(header, position)
            if self.problem is not None:
                return
            size = header.batch_length + LOG_OVERHEAD
            if not window.cover(position, size):
                self.problem = f"the batch of offset {header.base_offset} is cut short"
                return
            within = position - window.start
            batch = window.view[within : within + size]
            if self._check_crc and crc32c(batch[ATTRIBUTES_OFFSET:]) != header.crc:
                self.problem = f"the batch of offset {header.base_offset} fails its checksum"
                return
            yield position, header, batch
            self.position = position + size
            self.next_offset = header.base_offset + header.last_offset_delta + 1

    def _is_legacy(self, header: BatchHeader, position: int) -> bool:
        """Whether an intact message of magic 0 or 1 lies here: their CRC-32 follows the length."""
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

    def _implausible(self, header: BatchHeader, position: int) -> str | None:
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
        if header.last_offset - self._base_offset > INT32_MAX:
            return f"offset {header.last_offset} is too far from the segment's base"
        return None


def next_valid_batch(files: Files, fd: int, size: int, after: int, lowest_offset: int) -> tuple[int, int] | None:
    """Look for a valid batch anywhere behind position `after`; return its position and base offset.

    Any byte may begin it, so this hunts for the magic byte and lets the checksum decide.
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
