"""What `moldau status`, `down` and a second `up` know of a running platform: a file that its supervisor writes.

A process is known by its pid and its start time, because pids are used again. Start at `PlatformStatus`.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from moldau.core.errors import StartupError
from moldau.server.process.running import start_ticks

__all__ = [
    "PlatformStatus",
    "ProcessId",
    "ServiceStatus",
    "hold_lock",
    "load_status",
    "request_restart",
    "save_status",
    "take_restart_requests",
]


@dataclass(frozen=True, slots=True)
class ProcessId:
    pid: int
    start_ticks: int

    @classmethod
    def of(cls, pid: int) -> ProcessId:
        return cls(pid, start_ticks(pid) or 0)

    @property
    def is_alive(self) -> bool:
        return start_ticks(self.pid) == self.start_ticks


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    phase: str
    address: str
    process: ProcessId | None
    restarts: int
    since_ms: int
    """When this phase began, as wall-clock time."""
    note: str = ""
    """Why it does not run, as far as known."""


@dataclass(frozen=True, slots=True)
class PlatformStatus:
    supervisor: ProcessId
    options: Mapping[str, object]
    """The words of `moldau up`, so that a restart in the background gets the same."""
    services: Mapping[str, ServiceStatus] = field(default_factory=dict)


def _file(folder: Path) -> Path:
    return folder / "run" / "platform.json"


def save_status(folder: Path, status: PlatformStatus) -> None:
    """Write the file; on a full disk over the old one, which needs no room. Raises `OSError`."""
    path, content = _file(folder), json.dumps(asdict(status), indent=1).encode()
    beside = path.with_suffix(".new")
    try:
        beside.write_bytes(content)
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        _overwrite(path, content)


def _overwrite(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.pwrite(descriptor, content, 0)
        os.ftruncate(descriptor, len(content))
    finally:
        os.close(descriptor)


def load_status(folder: Path) -> PlatformStatus | None:
    """The last status of a platform; None if there never was one in this folder."""
    try:
        document = json.loads(_file(folder).read_text())
        services = {
            name: ServiceStatus(
                **{**entry, "process": None if entry["process"] is None else ProcessId(**entry["process"])}
            )
            for name, entry in document["services"].items()
        }
        return PlatformStatus(ProcessId(**document["supervisor"]), document["options"], services)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StartupError(
            f"{_file(folder)}: cannot be read ({error}); remove it if no service runs any more"
        ) from None


@contextmanager
def hold_lock(folder: Path) -> Iterator[bool]:
    """Yields whether this process is the one supervisor of the folder. The kernel frees the lock of a killed one."""
    run = folder / "run"
    try:
        run.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(run / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StartupError(f"{run}: cannot be written ({error.strerror}); choose another folder with --data") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(descriptor)


def request_restart(folder: Path, name: str) -> None:
    """Ask the supervisor, which looks for these files several times a second."""
    (folder / "run" / f"restart.{name}").touch()


def take_restart_requests(folder: Path) -> list[str]:
    names = []
    for path in (folder / "run").glob("restart.*"):
        path.unlink(missing_ok=True)
        names.append(path.name.partition(".")[2])
    return names
