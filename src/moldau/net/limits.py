"""Limits on what clients may use of a server: sizes, counts and times. Start at `Limits`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moldau.core.config.sections import setting

__all__ = ["Limits", "parse_overrides"]

KAFKA_BUFFER_BYTES = 102_400
"""Kafka's default for both socket buffers. The kernel starts near it and grows them with the load, which a fixed
size would prevent; so this value means "let the kernel choose", as -1 does."""


def _chosen_buffer(configured: int) -> int:
    return -1 if configured == KAFKA_BUFFER_BYTES else configured


def parse_overrides(text: str) -> dict[str, int]:
    """Parse `host:n,host:n`; the last colon is the separator, so IPv6 addresses work."""
    overrides = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        host, colon, count = entry.rpartition(":")
        if not colon or not host or not count.strip().isdigit():
            raise ValueError(f"max.connections.per.ip.overrides: {entry!r} is not of the form host:count")
        overrides[host.strip().strip("[]")] = int(count)
    return overrides


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    request_max_bytes: int = setting("socket.request.max.bytes")
    """A larger request closes its connection."""
    queued_request_bytes: int = setting("queued.max.request.bytes")
    """Above it no further large request is read; -1 for no limit."""
    max_connections: int = setting("max.connections")
    """At the limit new connections wait in the backlog."""
    max_connections_per_ip: int = setting("max.connections.per.ip")
    """Above it a new connection is closed at once."""
    per_ip_overrides: Mapping[str, int] = setting("max.connections.per.ip.overrides", parse_overrides)
    max_connections_per_second: int = setting("max.connection.creation.rate")
    """Above it new connections wait for the next second."""
    idle_ms: int = setting("connections.max.idle.ms")
    """Negative for never."""
    listen_backlog: int = setting("socket.listen.backlog.size")
    receive_buffer_bytes: int = setting("socket.receive.buffer.bytes", _chosen_buffer)
    """-1 leaves it to the kernel."""
    send_buffer_bytes: int = setting("socket.send.buffer.bytes", _chosen_buffer)
    """-1 leaves it to the kernel."""

    network_threads: int = setting("num.network.threads")
    """How many threads may send large replies beside the loop; read once."""

    def connections_of(self, host: str) -> int:
        """How many connections one address may have."""
        return self.per_ip_overrides.get(host, self.max_connections_per_ip)
