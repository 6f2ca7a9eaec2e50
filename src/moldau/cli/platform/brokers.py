"""The brokers of `moldau up --brokers 3` one by one, for `moldau status`: the platform knows them as one service.

`moldau.cli.server.several` runs them, each with a file of settings and as a child of its process. Start at
`broker_statuses`.
"""

from __future__ import annotations

import socket
from pathlib import Path

from moldau.core.properties import parse_properties
from moldau.server.platform.status_file import ProcessId, ServiceStatus

__all__ = ["broker_statuses"]

CONNECT_TIMEOUT_S = 2.0


def broker_statuses(folder: Path, service: ServiceStatus) -> dict[str, ServiceStatus]:
    """The brokers of the platform in `folder` by name; none if it has only one, or it does not run."""
    if service.process is None:
        return {}
    pids = _children_by_file(service.process.pid)
    files = [*(folder / "log").glob("broker-*.properties"), *folder.glob("log*.properties")]
    found: dict[int, ServiceStatus] = {}
    for file in files:
        try:
            settings = parse_properties(file.read_text(encoding="utf-8"))
            node_id, address = int(settings["node.id"]), _address(settings["listeners"])
        except (OSError, KeyError, ValueError):
            continue  # written at this moment, or not of a broker
        pid = pids.get(file.name)
        process = None if pid is None else ProcessId.of(pid)
        found[node_id] = ServiceStatus(_phase(process, address), address, process, 0, 0)
    return {f"broker {node_id}": found[node_id] for node_id in sorted(found)}


def _phase(process: ProcessId | None, address: str) -> str:
    if process is None:
        return "restarting"
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S).close()
    except OSError:
        return "starting"
    return "running"


def _address(listeners: str) -> str:
    """Where clients on this machine reach the broker: its first listener."""
    address = listeners.partition(",")[0].partition("://")[2]
    host, _, port = address.rpartition(":")
    return f"{'127.0.0.1' if host in ('', '0.0.0.0', '[::]') else host}:{port}"


def _children_by_file(pid: int) -> dict[str, int]:
    """The children of a process by the name of the file of settings that their command line has."""
    found = {}
    for child in _read(f"/proc/{pid}/task/{pid}/children").split():
        words = _read(f"/proc/{child}/cmdline").split("\0")
        found.update({Path(word).name: int(child) for word in words if word.endswith(".properties")})
    return found


def _read(path: str) -> str:
    """The text of a file of a process, empty once it has ended."""
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
