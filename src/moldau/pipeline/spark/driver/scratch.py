"""The temporary files of a Spark driver: in a folder of its own, which the next start removes if the driver was killed.

Java leaves some 25 MB behind when it is killed: unpacked libraries, blocks, artifacts. Whose folder may go is decided
by a lock that its owner holds for as long as it lives: the kernel frees it with the process, whatever number that had,
in whichever container it ran. A folder that is not surely nobody's stays. Start at `open_scratch`.
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

__all__ = ["Scratch", "base_folder", "open_scratch", "sweep"]

LOCK_SUFFIX = ".lock"
DEAD_STATES = ("Z", "X")
"""Of a process that has ended and that nobody has asked about yet."""

SOCKET_NAME_BYTES = 48
"""What Spark adds to a folder for the name of a socket to its workers."""

SOCKET_PATH_BYTES = 104
"""How long the path of a socket may be on every system."""

logger = logging.getLogger("moldau.streams")


class Scratch:
    """A folder that is ours until `close`, or until this process ends."""

    def __init__(self, folder: Path, lock_file: Path, lock: int) -> None:
        self.folder = folder
        self._lock_file = lock_file
        self._lock = lock

    @property
    def has_room_for_sockets(self) -> bool:
        """Whether the path is short enough for sockets inside."""
        return len(os.fsencode(self.folder)) + SOCKET_NAME_BYTES <= SOCKET_PATH_BYTES

    def note_java(self, pid: int) -> None:
        """Remember the Java process that uses the folder too, and lives on for a moment when we are killed."""
        _write(self._lock_file, {**_identity(os.getpid()), "java": _identity(pid)})

    def close(self) -> None:
        """Remove the folder; called again it does nothing."""
        lock, self._lock = self._lock, -1
        if lock >= 0:
            _remove(self.folder, self._lock_file)
            os.close(lock)


def base_folder() -> Path:
    """Where the folders of all drivers of this user are."""
    return Path(tempfile.gettempdir()) / f"moldau-spark-{os.getuid()}"


def open_scratch(base: Path | None = None) -> Scratch | None:
    """A new folder, after those of killed drivers are removed; `None` where there is no place that is ours alone."""
    base = base or base_folder()
    try:
        base.mkdir(mode=0o700, exist_ok=True)
        if not _is_ours_alone(base):
            logger.warning("%s is not a folder of ours alone; Spark's temporary files go elsewhere", base)
            return None
        sweep(base)
        return _created(base)
    except OSError as error:
        logger.warning("no folder for Spark's temporary files in %s: %s", base, error)
        return None


def sweep(base: Path) -> int:
    """Remove the folders of drivers that are surely dead; how many those were."""
    swept = 0
    for lock_file in base.glob(f"*{LOCK_SUFFIX}"):
        try:
            lock = os.open(lock_file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue  # another start was quicker
        try:
            if _is_taken(lock) and not _java_lives(lock):
                _remove(lock_file.with_suffix(""), lock_file)
                swept += 1
        except OSError:
            continue  # without locks nothing is sure
        finally:
            os.close(lock)
    if swept:
        logger.info("removed the temporary files of %d killed drivers", swept)
    return swept


def _created(base: Path) -> Scratch:
    """The lock comes before the folder: one without the other is nobody's."""
    while True:
        lock_file = base / f"{secrets.token_hex(4)}{LOCK_SUFFIX}"
        lock = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            if _is_taken(lock) and lock_file.exists():
                _write(lock_file, _identity(os.getpid()))
                folder = lock_file.with_suffix("")
                folder.mkdir(mode=0o700)
                return Scratch(folder, lock_file, lock)
        except BaseException:
            os.close(lock)
            lock_file.unlink(missing_ok=True)
            raise
        # Somebody swept between our two steps.
        os.close(lock)


def _is_taken(lock: int) -> bool:
    """Whether the lock is ours now. Raises `OSError` where locks do not work at all."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _java_lives(lock: int) -> bool:
    """Whether the Java process of a driver still runs. Elsewhere than here the driver's lock alone decides."""
    try:
        java: dict[str, Any] = json.loads(os.pread(lock, 4096, 0) or b"{}").get("java") or {}
    except (OSError, ValueError, AttributeError):
        return False
    return bool(java) and java.get("started") is not None and _identity(int(java.get("pid", 0))) == java


def _identity(pid: int) -> dict[str, Any]:
    """A process as nobody else will ever be: its number, when it started, and in which system that was counted."""
    return {"pid": pid, "started": _started(pid), "system": _system()}


def _started(pid: int) -> str | None:
    """In ticks since the system started; `None` where there is no such process, or no way to tell."""
    try:
        # The name of the program, in brackets, may have blanks in it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] in DEAD_STATES else fields[19]
    except (OSError, IndexError):
        return None


def _system() -> str:
    """The start of this machine, and the process numbers that are counted in this container."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _write(lock_file: Path, content: dict[str, Any]) -> None:
    lock_file.write_text(json.dumps(content))


def _remove(folder: Path, lock_file: Path) -> None:
    """The lock last: whoever is killed in between leaves what can be swept again."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        lock_file.unlink(missing_ok=True)


def _is_ours_alone(base: Path) -> bool:
    found = base.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
