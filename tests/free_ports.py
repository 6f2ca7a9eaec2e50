"""Ports that nobody else takes between being chosen and being listened on.

A port of the kernel's choice is one that outgoing connections are given too, so a client of another test can have it
before the server that is to listen there has started. These lie below that range, and no two workers choose alike.
Start at `free_port`; `free_cluster_port` is for what takes a row of ports.
"""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path

__all__ = ["free_cluster_port", "free_port"]

FIRST = 12_000
_STRIDE = 16
"""More than there are workers: each takes the ports with its own remainder."""
_FIRST_OF_ROWS = 8
"""From this remainder on ports are for rows, four for each of two workers."""
CONTROLLERS_ABOVE = 10_000
"""How far above its broker's port `--brokers` has a controller's."""


def free_port() -> int:
    """A port of 127.0.0.1 on which nothing listens; this process gets it once."""
    for port in _candidates:
        if _is_free(port):
            return port
    raise RuntimeError("every port that tests may use has been used by this process")


def free_cluster_port() -> int:
    """The first port of `--brokers 3`: it and the next two are free, and so are those of the controllers above them."""
    for port in _cluster_candidates:
        if all(_is_free(port + place + above) for place in range(3) for above in (0, CONTROLLERS_ABOVE)):
            return port
    raise RuntimeError("every row of ports that tests may use has been used by this process")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _first_outgoing() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        return 32_768


def _shuffled(remainder: int, end: int) -> list[int]:
    ports = list(range(FIRST + remainder, end, _STRIDE))
    random.Random().shuffle(ports)  # a source of its own: hypothesis sets the seed of the shared one
    return ports


_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_end = max(_first_outgoing(), FIRST + CONTROLLERS_ABOVE + 4_096)
_candidates = iter(_shuffled(_worker % _FIRST_OF_ROWS, _end))
_cluster_candidates = iter(_shuffled(_FIRST_OF_ROWS + _worker % 2 * 4, _end - CONTROLLERS_ABOVE - _STRIDE))
