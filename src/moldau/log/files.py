"""File system access: the only module of `log` that touches the disk.

Everything in `log` goes through a `Files`, so that a test can simulate a power loss (`testing.power_loss`), a full disk
or the failure of any single system call (`testing.failing_files`) without patching. Errors are raised as plain
`OSError` for the caller to interpret. `write` and `pread` are the system calls themselves, because every extra call
would slow down appends. Start at `Files`.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from functools import cache
from typing import Any, cast

from moldau.log.open_files import OPEN_FILES

__all__ = ["FileLock", "Files", "SegmentFile"]


_KEEP_SIZE = 1


@cache
def _fallocate() -> Callable[[int, int, int, int], int] | None:
    """The C library's `fallocate`; Python's `posix_fallocate` changes the file's length."""
    import ctypes

    try:
        function = ctypes.CDLL(None).fallocate
    except (AttributeError, OSError):
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    return cast("Callable[[int, int, int, int], int]", function)


class SegmentFile:
    """An open file descriptor that is closed when the last reference is dropped.

    A segment holds a reference, and so does every slice being sent: after a segment is deleted, a running `sendfile`
    keeps reading the unlinked file.
    """

    __slots__ = ("_close", "_closing", "fd")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        # Bound here because module globals may be cleared when the interpreter shuts down.
        self._close, self._closing = os.close, OPEN_FILES.note_closing
        if fd >= 0:
            OPEN_FILES.note_opened(fd)

    def fileno(self) -> int:
        return self.fd

    def __del__(self) -> None:
        if self.fd >= 0:
            self._closing(self.fd)
            self._close(self.fd)
            self.fd = -1


class FileLock:
    """An exclusive lock on a file, held for as long as this object is open."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Files:
    """Kafka's files on a real disk."""

    system = os
    """The module that makes the system calls; all except `write` and `pread` go through it."""

    write: Callable[[int, Any], int] = staticmethod(os.write)
    """`write(fd, buffer)`; may write less than asked, like the system call."""

    pread: Callable[[int, int, int], bytes] = staticmethod(os.pread)

    def open_append(self, path: str) -> int:
        """Open for appending and reading; created when missing."""
        return self.system.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def open_existing(self, path: str) -> int:
        """Open an existing file for appending and reading, or only for reading if permissions allow no more."""
        try:
            return self.system.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except PermissionError:
            return self.system.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def close(self, fd: int) -> None:
        self.system.close(fd)

    def truncate(self, fd: int, size: int) -> None:
        self.system.ftruncate(fd, size)

    def preallocate(self, fd: int, size: int) -> None:
        """Reserve space up to `size` without changing the file's length; does nothing where that is not supported.

        Truncating the file to its current length releases the reservation.
        """
        allocate = _fallocate()
        if allocate is not None:
            allocate(fd, _KEEP_SIZE, 0, size)

    def sync(self, fd: int) -> None:
        """Sync a file's bytes and length to disk."""
        self.system.fdatasync(fd)

    def sync_directory(self, path: str) -> None:
        """Sync a directory's entries to disk: creations, renames and removals are durable only after this."""
        fd = self.system.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.system.fsync(fd)
        finally:
            self.system.close(fd)

    def sync_file(self, path: str) -> None:
        fd = self.system.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.sync(fd)
        finally:
            self.system.close(fd)

    def read_file(self, path: str) -> bytes:
        return self._read(path, 0)

    def read_tail(self, path: str, length: int) -> bytes:
        """The last `length` bytes of a file, or all of a shorter one."""
        return self._read(path, length)

    def _read(self, path: str, tail_bytes: int) -> bytes:
        fd = self.system.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = self.system.fstat(fd).st_size
            position, parts = max(0, size - tail_bytes) if tail_bytes else 0, []
            while position < size and (part := self.pread(fd, size - position, position)):
                parts.append(part)
                position += len(part)
            return b"".join(parts)
        finally:
            self.system.close(fd)

    def write_file(self, path: str, data: bytes, *, sync: bool = False) -> None:
        """Replace a file's content in place: for files that can be rebuilt after a crash, such as indexes."""
        fd = self.system.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            self._write_all(fd, data)
            if sync:
                self.sync(fd)
        finally:
            self.system.close(fd)

    def atomic_write(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """Replace a file so that a crash leaves the old or the new content, never a mixture."""
        temporary = path + ".tmp"
        self.write_file(temporary, data, sync=sync)
        self.rename(temporary, path)
        if sync:
            self.sync_directory(os.path.dirname(path))

    def _write_all(self, fd: int, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self.write(fd, rest) :]

    def rename(self, old: str, new: str) -> None:
        self.system.replace(old, new)

    def unlink(self, path: str) -> None:
        """Remove a file if it exists."""
        try:
            self.system.unlink(path)
        except FileNotFoundError:
            pass

    def make_directory(self, path: str) -> None:
        self.system.makedirs(path, exist_ok=True)

    def remove_directory(self, path: str) -> None:
        """Remove a directory and its contents if it exists."""
        import shutil

        shutil.rmtree(path, ignore_errors=True)

    def exists(self, path: str) -> bool:
        """Whether the file exists; raises `OSError` if that cannot be determined."""
        try:
            self.system.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def names(self, path: str) -> list[str]:
        return self.system.listdir(path)

    def subdirectories(self, path: str) -> list[str]:
        with self.system.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir()]

    def size(self, path: str) -> int:
        return self.system.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return self.system.stat(path).st_mtime_ns // 1_000_000

    def space(self, path: str) -> tuple[int, int]:
        """Total and usable bytes of the file system that holds `path`."""
        stats = self.system.statvfs(path)
        return stats.f_frsize * stats.f_blocks, stats.f_frsize * stats.f_bavail

    def lock(self, path: str) -> FileLock | None:
        """Take the exclusive lock on `path`, or return `None` while another process holds it."""
        fd = self.system.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.system.close(fd)
            return None
        return FileLock(fd)
