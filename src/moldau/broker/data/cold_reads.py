"""Threads for reads that would have to wait for the disk, so that the loop does not wait.

`sendfile` blocks when its pages are not in the page cache. So before a range is sent, some of its pages are probed
without blocking; if one is missing, a thread reads the range into the cache and the reply is sent afterwards. The same
threads look up offsets whose index or batches have to be read from disk. Start at `is_resident`.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from moldau.net.replies import FileRange

__all__ = ["ColdReads", "is_page_resident", "is_resident", "read_now", "touch"]

PROBE_STEP_BYTES: Final = 128 * 1024
"""The kernel reads ahead in steps of about this size, so one page stands for its neighbours."""

TOUCH_STEP_BYTES: Final = 512 * 1024
THREADS: Final = 4

_NO_WAIT: Final[int] = getattr(os, "RWF_NOWAIT", 0)
_UNSUPPORTED: Final = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}
_probe = bytearray(1)
_of_thread = threading.local()

T = TypeVar("T")


def is_page_resident(fd: int, position: int) -> bool:
    """Whether the page at `position` can be read without waiting for the disk."""
    try:
        os.preadv(fd, (_probe,), position, _NO_WAIT)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    return True


def is_resident(file_range: FileRange) -> bool:
    """Whether a range can probably be sent without waiting for the disk. Called on the loop only."""
    if not _NO_WAIT or not file_range.length:
        return True
    fd, position = file_range.file.fileno(), file_range.position
    end = position + file_range.length
    try:
        for place in range(position, end, PROBE_STEP_BYTES):
            os.preadv(fd, (_probe,), place, _NO_WAIT)
        os.preadv(fd, (_probe,), end - 1, _NO_WAIT)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    return True


def read_now(file_range: FileRange) -> bytes | None:
    """Return the bytes of a small range, or `None` if that would have to wait for the disk."""
    fd, position, length = file_range.file.fileno(), file_range.position, file_range.length
    buffer = bytearray(length)
    try:
        count = os.preadv(fd, (buffer,), position, _NO_WAIT)
    except BlockingIOError:
        return None
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        return os.pread(fd, length, position)
    return bytes(buffer) if count == length else None


def touch(file_range: FileRange) -> None:
    """Wait until a range is in the page cache. Call it in a thread.

    Every byte is read, in few calls: a page for each readahead step would do for most of them, but each call takes the
    interpreter's lock anew, and a page that was skipped might still be on its way when the range is sent.
    """
    if not file_range.length:
        return
    fd, position, length = file_range.file.fileno(), file_range.position, file_range.length
    os.posix_fadvise(fd, position, length, os.POSIX_FADV_WILLNEED)
    buffer = getattr(_of_thread, "buffer", None)
    if buffer is None:
        buffer = _of_thread.buffer = memoryview(bytearray(TOUCH_STEP_BYTES))
    end = position + length
    while position < end:
        got = os.preadv(fd, (buffer[: end - position],), position)
        if not got:
            return  # the sender finds the end of the file, too
        position += got


class ColdReads:
    """The threads that wait for the disk."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._threads: ThreadPoolExecutor | None = None
        self.count = 0
        """Reads that had to wait for the disk."""

    def run(self, read: Callable[[], T]) -> asyncio.Future[T]:
        """Call `read` in a thread."""
        self.count += 1
        if self._threads is None:
            self._threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="moldau-cold-reads")
        return self._loop.run_in_executor(self._threads, read)

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=True, cancel_futures=True)
            self._threads = None
