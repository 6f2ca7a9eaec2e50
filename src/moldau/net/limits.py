"""What clients may take of a server: sizes, counts and time. Start at `Limits.of`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Limits", "parse_overrides"]

KAFKA_BUFFER_BYTES = 102_400
"""Kafka's default for both socket buffers. The kernel starts near it and grows them with the load, which a fixed
size would forbid; so this one value leaves the choice to the kernel, as -1 does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    request_max_bytes: int = 104_857_600
    """Kafka key: `socket.request.max.bytes`. A larger request closes its connection."""
    queued_request_bytes: int = -1
    """Kafka key: `queued.max.request.bytes`. Over it no further large request begins to be read; -1 for no limit."""
    max_connections: int = 2_147_483_647
    """Kafka key: `max.connections`. At the limit new connections wait in the backlog."""
    max_connections_per_ip: int = 2_147_483_647
    """Kafka key: `max.connections.per.ip`. Over it a new connection is closed at once."""
    per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    """Kafka key: `max.connections.per.ip.overrides`."""
    max_connections_per_second: int = 2_147_483_647
    """Kafka key: `max.connection.creation.rate`. Over it new connections wait for the next second."""
    idle_ms: int = 600_000
    """Kafka key: `connections.max.idle.ms`; negative for never."""
    listen_backlog: int = 50
    """Kafka key: `socket.listen.backlog.size`."""
    receive_buffer_bytes: int = -1
    """Kafka key: `socket.receive.buffer.bytes`; -1 leaves it to the kernel."""
    send_buffer_bytes: int = -1
    """Kafka key: `socket.send.buffer.bytes`; -1 leaves it to the kernel."""

    @classmethod
    def of(cls, value: Callable[[str], Any]) -> Limits:
        """Read them from a configuration, given as its lookup by Kafka's key."""
        return cls(
            request_max_bytes=value("socket.request.max.bytes"),
            queued_request_bytes=value("queued.max.request.bytes"),
            max_connections=value("max.connections"),
            max_connections_per_ip=value("max.connections.per.ip"),
            per_ip_overrides=parse_overrides(value("max.connections.per.ip.overrides")),
            max_connections_per_second=value("max.connection.creation.rate"),
            idle_ms=value("connections.max.idle.ms"),
            listen_backlog=value("socket.listen.backlog.size"),
            receive_buffer_bytes=_chosen_buffer(value("socket.receive.buffer.bytes")),
            send_buffer_bytes=_chosen_buffer(value("socket.send.buffer.bytes")),
        )

    def connections_of(self, host: str) -> int:
        """How many connections one address may have."""
        return self.per_ip_overrides.get(host, self.max_connections_per_ip)


def _chosen_buffer(configured: int) -> int:
    return -1 if configured == KAFKA_BUFFER_BYTES else configured


def parse_overrides(text: str) -> dict[str, int]:
    """Read `host:n,host:n`; the last colon separates, so that IPv6 addresses pass."""
    overrides = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        host, colon, count = entry.rpartition(":")
        if not colon or not host or not count.strip().isdigit():
            raise ValueError(f"max.connections.per.ip.overrides: {entry!r} is not of the form host:count")
        overrides[host.strip().strip("[]")] = int(count)
    return overrides
