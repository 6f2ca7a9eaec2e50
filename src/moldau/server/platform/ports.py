"""Whether a port is free, and which process has it if not. Start at `check_ports`."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Mapping
from pathlib import Path

from moldau.core.errors import StartupError

__all__ = ["check_ports", "owner_of"]

LISTENING = "0A"


def check_ports(host: str, ports: Mapping[str, int]) -> None:
    """Raise one error that names every port which is taken, and by whom."""
    problems = [text for name, port in ports.items() if (text := _problem(host, name, port)) is not None]
    if problems:
        raise StartupError("; ".join(problems))


def _problem(host: str, name: str, port: int) -> str | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                return f"{name} cannot listen on {host}:{port}: {error.strerror}"
            by = owner_of(port)
            who = f" by {by}" if by else ""
            return f"port {port} of {name} is taken{who}; stop that, or choose another: --port {name}=PORT"
    return None


def owner_of(port: int) -> str | None:
    """The process that listens on a port, as `name (pid 123)`; None where the system does not tell."""
    inodes = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(link) in inodes for link in (folder / "fd").iterdir()):
                return f"{(folder / 'comm').read_text().strip()} (pid {folder.name})"
        except OSError:
            continue  # another user's process, or one that has just ended
    return None


def _listening_inodes(port: int) -> set[str]:
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = [line.split() for line in Path(table).read_text().splitlines()[1:]]
        except OSError:
            continue
        found |= {row[9] for row in rows if row[3] == LISTENING and int(row[1].rpartition(":")[2], 16) == port}
    return found
