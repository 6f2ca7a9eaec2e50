"""A `zookeeper.properties` file: what it says about the controller that runs in ZooKeeper's place.

`dataDir`, `clientPort`, `clientPortAddress`, `maxClientCnxns` and the lines of servers have ZooKeeper's meaning; keys
of Kafka's controllers may stand there too, and other keys of ZooKeeper have no effect. Start at `ZooKeeperFile.of`.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from moldau.core.config import BROKER_KEYS
from moldau.core.errors import InvalidConfigError

__all__ = ["FIRST_NODE_ID", "ZooKeeperFile"]

DEFAULT_PORT = 2181
FIRST_NODE_ID = 3001
"""The node id of the only controller; that of `server.2` is one above: high enough to leave 0, 1, 2 to brokers."""

NO_LIMIT = 2**31 - 1

_SERVER_LINE = re.compile(r"server\.(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperFile:
    data_dir: str
    client_port: int = DEFAULT_PORT
    host: str = ""
    """`clientPortAddress`; empty for all interfaces, as in ZooKeeper."""
    node_id: int = FIRST_NODE_ID
    voters: tuple[str, ...] = ()
    """The controllers of an ensemble as id@host:port; empty for one alone."""
    given: Mapping[str, str] = field(default_factory=dict)
    """The file as it was read."""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ZooKeeperFile:
        """Check the keys; raises `InvalidConfigError` with a one-line message."""
        given = {name: text.strip() for name, text in properties.items()}
        if not given.get("dataDir"):
            raise InvalidConfigError(
                "dataDir is missing: name a folder for the cluster's metadata, such as /tmp/zookeeper"
            )
        data_dir = os.path.abspath(given["dataDir"])
        port = _number(given, "clientPort", DEFAULT_PORT, largest=65_535)
        _number(given, "maxClientCnxns", 60)
        servers = {
            int(found[1]): text for name, text in given.items() if (found := _SERVER_LINE.fullmatch(name)) is not None
        }
        voters = [f"{_node_id(number)}@{_address(text, port)}" for number, text in sorted(servers.items())]
        mine = _my_number(data_dir, servers) if len(servers) > 1 else 1
        return cls(
            data_dir=data_dir,
            client_port=port,
            host=given.get("clientPortAddress", ""),
            node_id=_node_id(mine),
            voters=tuple(voters) if len(servers) > 1 else (),
            given=given,
        )

    def settings(self) -> dict[str, str]:
        """The same as settings of a controller."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        known = self.host or socket.gethostname()
        kafka = {name: text for name, text in self.given.items() if name in BROKER_KEYS}
        return {
            "max.connections.per.ip": str(_number(self.given, "maxClientCnxns", 60) or NO_LIMIT),
            **kafka,
            "process.roles": "controller",
            "node.id": str(self.node_id),
            "listeners": f"CONTROLLER://{host}:{self.client_port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": ",".join(self.voters) or f"{self.node_id}@{known}:{self.client_port}",
            "log.dirs": self.data_dir,
        }


def _node_id(number: int) -> int:
    return FIRST_NODE_ID - 1 + number


def _address(text: str, client_port: int) -> str:
    """The address of `host:2888:3888[:role][;[address:]port]`: only the client port is used here."""
    servers, _, client = text.partition(";")
    host = servers.partition(":")[0].strip()
    port = client.rpartition(":")[2].strip() or str(client_port)
    if not host or not port.isdecimal():
        raise InvalidConfigError(f"server line {text!r}: write host:2888:3888;2181, with the client port at the end")
    return f"{host}:{port}"


def _my_number(data_dir: str, servers: Mapping[int, str]) -> int:
    path = os.path.join(data_dir, "myid")
    try:
        with open(path, encoding="utf-8") as file:
            number = int(file.read().strip())
    except (OSError, ValueError):
        raise InvalidConfigError(f"{path} must hold this server's number, one of {sorted(servers)}") from None
    if number not in servers:
        raise InvalidConfigError(f"{path} says {number}, and there is no line server.{number}")
    return number


def _number(given: Mapping[str, str], name: str, default: int, largest: int = 2**31 - 1) -> int:
    text = given.get(name)
    if text is None:
        return default
    if not text.isdecimal() or int(text) > largest:
        raise InvalidConfigError(f"{name}={text}: write a number from 0 to {largest}")
    return int(text)
