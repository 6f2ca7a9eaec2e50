"""The running servers of this user: a small file for each process, so that they can be found and stopped.

Start at `announce`.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["RunningServer", "announce", "running_servers", "start_ticks"]


@dataclass(frozen=True, slots=True)
class RunningServer:
    pid: int
    start_ticks: int
    """The start time of the process in kernel ticks: the pid alone may have been reused by another process."""
    node_id: int
    process_roles: tuple[str, ...]


@contextmanager
def announce(node_id: int, process_roles: tuple[str, ...]) -> Iterator[None]:
    """List this process among the running servers until the block ends."""
    folder = _folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    me = RunningServer(os.getpid(), start_ticks(os.getpid()) or 0, node_id, process_roles)
    path = folder / f"{me.pid}.json"
    path.write_text(json.dumps(asdict(me)))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def running_servers() -> list[RunningServer]:
    """All announced servers that are still running; removes the files of killed ones."""
    found = []
    for path in sorted(_folder().glob("*.json")):
        server = _load(path)
        if server is not None and start_ticks(server.pid) == server.start_ticks:
            found.append(server)
        else:
            path.unlink(missing_ok=True)
    return found


def _folder() -> Path:
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(base) / f"moldau-{os.getuid()}"


def _load(path: Path) -> RunningServer | None:
    try:
        entry = json.loads(path.read_text())
        return RunningServer(entry["pid"], entry["start_ticks"], entry["node_id"], tuple(entry["process_roles"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def start_ticks(pid: int) -> int | None:
    """When a process started, in kernel ticks; None if none with this pid runs (any more)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The command may contain blanks and brackets; the fields after it do not. Field 22 is the start time.
    fields = stat.rpartition(")")[2].split()
    is_zombie = fields[0] == "Z"  # it has ended, but nobody has asked for its status
    return None if is_zombie else int(fields[19])
