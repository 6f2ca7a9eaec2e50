"""Ports that nobody else takes between being chosen and being listened on.

A port of the kernel's choice is one that outgoing connections are given too, so a client of another test can have it
before the server that is to listen there has started. These lie below that range, and no two workers choose alike.
Start at `free_port`.
"""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path

__all__ = ["free_port"]

FIRST = 12_000
_STRIDE = 16
"""More than there are workers: each takes the ports with its own remainder."""


def free_port() -> int:
    """A port of 127.0.0.1 on which nothing listens; this process gets it once."""
    for port in _candidates:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("every port that tests may use has been used by this process")


def _first_outgoing() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        return 32_768


def _shuffled() -> list[int]:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    ports = list(range(FIRST + int(worker) % _STRIDE, max(_first_outgoing(), FIRST + 4_096), _STRIDE))
    random.Random().shuffle(ports)  # a source of its own: hypothesis sets the seed of the shared one
    return ports


_candidates = iter(_shuffled())
