"""A `zookeeper.properties` file: the ZooKeeper keys that a registration point needs.

Start at `RegistrationSettings.of`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from moldau.core.errors import InvalidConfigError

__all__ = ["RegistrationSettings"]

DEFAULT_PORT = 2181
DEFAULT_SESSION_TIMEOUT_MS = 9000


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationSettings:
    data_dir: str
    client_port: int = DEFAULT_PORT
    """0 picks a free port."""
    host: str = ""
    """`clientPortAddress`; empty for all interfaces, as in ZooKeeper."""
    max_connections_per_ip: int = 60
    """`maxClientCnxns`; 0 for no limit."""
    session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS
    """`broker.session.timeout.ms`, a controller's key: a broker without heartbeats for this long is dead."""
    given: Mapping[str, str] = field(default_factory=dict)
    """The file as it was read."""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> RegistrationSettings:
        """Check the keys; raises `InvalidConfigError` with a one-line message. Other keys of ZooKeeper are ignored."""
        given = {name: text.strip() for name, text in properties.items()}
        data_dir = given.get("dataDir", "")
        if not data_dir:
            raise InvalidConfigError("dataDir is missing: name a folder for the cluster's id, such as /tmp/zookeeper")
        servers = sorted(name for name in given if name.startswith("server."))
        if len(servers) > 1:
            raise InvalidConfigError(
                f"{', '.join(servers)}: an ensemble of {len(servers)} is not built yet; keep one line or none"
            )
        return cls(
            data_dir=os.path.abspath(data_dir),
            client_port=_number(given, "clientPort", DEFAULT_PORT, largest=65_535),
            host=given.get("clientPortAddress", ""),
            max_connections_per_ip=_number(given, "maxClientCnxns", 60),
            session_timeout_ms=_number(given, "broker.session.timeout.ms", DEFAULT_SESSION_TIMEOUT_MS),
            given=given,
        )


def _number(given: Mapping[str, str], name: str, default: int, largest: int = 2**31 - 1) -> int:
    text = given.get(name)
    if text is None:
        return default
    if not text.isdecimal() or int(text) > largest:
        raise InvalidConfigError(f"{name}={text}: write a number from 0 to {largest}")
    return int(text)
