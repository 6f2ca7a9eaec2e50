"""The controllers as the settings name them: voters, bootstrap servers, this node's own endpoint.

Start at `configured_voters`.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence

from moldau.core.config import BrokerConfig
from moldau.core.errors import InvalidConfigError, StartupError
from moldau.core.ids import parse_uuid
from moldau.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet

__all__ = ["bootstrap_addresses", "configured_voters", "controller_endpoint", "parse_initial_controllers"]

_ANY_HOST = ("", "0.0.0.0", "::")


def configured_voters(config: BrokerConfig) -> VoterSet:
    """The voters of `controller.quorum.voters`, whose form is checked with the settings."""
    listener = next(iter(config.controller_listener_names), "CONTROLLER")
    voters = []
    for entry in config.value("controller.quorum.voters"):
        node_id, _, address = entry.partition("@")
        host, _, port = address.rpartition(":")
        endpoints = (Endpoint(listener, host.strip("[]"), int(port)),)
        voters.append(Voter(ReplicaKey(int(node_id)), endpoints))
    return VoterSet.of(voters)


def controller_endpoint(config: BrokerConfig) -> Endpoint:
    """Where other controllers reach this one: its entry among the voters, or its controller listener."""
    voters = configured_voters(config)
    if config.node_id in voters.by_id:
        return voters.by_id[config.node_id].endpoints[0]
    for one in config.listeners:
        if one.name in config.controller_listener_names:
            return Endpoint(one.name, socket.gethostname() if one.host in _ANY_HOST else one.host, one.port)
    raise StartupError(
        "listeners has no listener that controller.listener.names names; add one, such as CONTROLLER://:9093"
    )


def bootstrap_addresses(config: BrokerConfig) -> list[tuple[str, int]]:
    """The addresses of `controller.quorum.bootstrap.servers`."""
    found = []
    for server in config.value("controller.quorum.bootstrap.servers"):
        host, colon, port = server.strip().rpartition(":")
        if not colon or not host or not port.isdigit():
            raise StartupError(f"controller.quorum.bootstrap.servers: {server!r} is not of the form host:port")
        found.append((host.strip("[]"), int(port)))
    return found


def parse_initial_controllers(text: str, listener: str) -> Sequence[Voter]:
    """Parse `--initial-controllers`: `id@host:port:directory`, separated by commas."""
    voters = []
    for entry in text.split(","):
        node_id, _, rest = entry.strip().partition("@")
        address, _, directory = rest.rpartition(":")
        host, _, port = address.rpartition(":")
        try:
            key = ReplicaKey(int(node_id), parse_uuid(directory))
            voters.append(Voter(key, (Endpoint(listener, host.strip("[]"), int(port)),)))
        except ValueError:
            raise InvalidConfigError(
                f"--initial-controllers: {entry!r} is not of the form id@host:port:directory, where the directory is "
                "an id from kafka-storage random-uuid"
            ) from None
    if len({one.key.id for one in voters}) != len(voters):
        raise InvalidConfigError("--initial-controllers names a node twice")
    return voters
