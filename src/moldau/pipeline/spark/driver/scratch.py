"""The temporary files of a Spark driver, in its own folder; if the driver was killed, the next start removes it.

A killed Java process leaves about 25 MB behind: unpacked libraries, blocks, artifacts. A folder is removed only if its
lock is free: the owner holds the lock while it runs, and the kernel releases it with the process, independent of
process ids and containers. If it is not certain that the owner has ended, the folder stays. Start at `open_scratch`.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import secrets
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["Scratch", "base_folder", "has_room_for_sockets", "open_scratch", "sweep"]

LOCK_SUFFIX = ".lock"
DEAD_STATES = ("Z", "X")
"""The states of a process that has ended and whose parent has not read its exit status yet."""

SOCKET_NAME_BYTES = 48
"""The length that Spark adds to a folder for the path of a socket to its workers."""

SOCKET_PATH_BYTES = 104
"""The maximum length of a socket's path that every system allows."""

logger = logging.getLogger("moldau.streams")


def has_room_for_sockets(folder: str | os.PathLike[str]) -> bool:
    return len(os.fsencode(folder)) + SOCKET_NAME_BYTES <= SOCKET_PATH_BYTES


class Scratch:
    """A folder that belongs to this process until `close`, or until the process ends."""

    def __init__(self, folder: Path, lock_file: Path, lock: int) -> None:
        self.folder = folder
        self._lock_file = lock_file
        self._lock = lock

    @property
    def has_room_for_sockets(self) -> bool:
        """Whether the folder's path is short enough for sockets in it."""
        return has_room_for_sockets(self.folder)

    def note_java(self, pid: int) -> None:
        """Record the Java process that also uses the folder and runs on for a moment if this process is killed."""
        _write(self._lock_file, {**_identity(os.getpid()), "java": _identity(pid)})

    def close(self) -> None:
        """Remove the folder; a second call does nothing."""
        lock, self._lock = self._lock, -1
        if lock >= 0:
            _remove(self.folder, self._lock_file)
            os.close(lock)


def base_folder() -> Path:
    """The parent folder of all drivers of this user."""
    return Path(tempfile.gettempdir()) / f"moldau-spark-{os.getuid()}"


def open_scratch(base: Path | None = None) -> Scratch | None:
    """A new folder, after those of killed drivers are removed; `None` if no private base folder can be used."""
    base = base or base_folder()
    try:
        base.mkdir(mode=0o700, exist_ok=True)
        if not _is_ours_alone(base):
            logger.warning("%s is not private to this user; Spark's temporary files go elsewhere", base)
            return None
        sweep(base)
        return _create_scratch(base)
    except OSError as error:
        logger.warning("no folder for Spark's temporary files in %s: %s", base, error)
        return None


def sweep(base: Path) -> int:
    """Remove the folders of drivers that have certainly ended; returns their number."""
    swept = 0
    for lock_file in base.glob(f"*{LOCK_SUFFIX}"):
        try:
            lock = os.open(lock_file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue  # another start has removed it first
        try:
            if _try_lock(lock) and not _java_lives(lock):
                _remove(lock_file.with_suffix(""), lock_file)
                swept += 1
        except OSError:
            continue  # locks do not work here, so it is not certain that the owner has ended
        finally:
            os.close(lock)
    if swept:
        logger.info("removed the temporary files of %d killed drivers", swept)
    return swept


def _create_scratch(base: Path) -> Scratch:
    """Create the lock before the folder: a lock without a folder, or the reverse, has no owner."""
    while True:
        lock_file = base / f"{secrets.token_hex(4)}{LOCK_SUFFIX}"
        lock = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            if _try_lock(lock) and lock_file.exists():
                _write(lock_file, _identity(os.getpid()))
                folder = lock_file.with_suffix("")
                folder.mkdir(mode=0o700)
                return Scratch(folder, lock_file, lock)
        except BaseException:
            os.close(lock)
            lock_file.unlink(missing_ok=True)
            raise
        # Another process removed the lock file between our two steps.
        os.close(lock)


def _try_lock(lock: int) -> bool:
    """Try to lock; returns whether it succeeded. Raises `OSError` if locks do not work at all."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _java_lives(lock: int) -> bool:
    """Whether the driver's Java process still runs. For another system only the driver's lock counts."""
    try:
        java: dict[str, Any] = json.loads(os.pread(lock, 4096, 0) or b"{}").get("java") or {}
    except (OSError, ValueError, AttributeError):
        return False
    return bool(java) and java.get("started") is not None and _identity(int(java.get("pid", 0))) == java


def _identity(pid: int) -> dict[str, Any]:
    """A unique identity of a process: its id, its start time, and the system in which these are counted."""
    return {"pid": pid, "started": _start_ticks(pid), "system": _system()}


def _start_ticks(pid: int) -> str | None:
    """A process's start time in ticks since boot; `None` if there is no such process, or it cannot be found out."""
    try:
        # The program's name, in parentheses, may contain blanks.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] in DEAD_STATES else fields[19]
    except (OSError, IndexError):
        return None


def _system() -> str:
    """The boot id of this machine, and the process id namespace of this container."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _write(lock_file: Path, content: dict[str, Any]) -> None:
    lock_file.write_text(json.dumps(content))


def _remove(folder: Path, lock_file: Path) -> None:
    """Remove the folder, then the lock: if this is interrupted, the rest can be swept again."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        lock_file.unlink(missing_ok=True)


def _is_ours_alone(base: Path) -> bool:
    found = base.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
