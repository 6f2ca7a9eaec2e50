"""Listeners: the addresses of `listeners` and `advertised.listeners`, parsed.

Start at `parse_listeners`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from moldau.core.errors import InvalidConfigError

__all__ = ["Listener", "advertised_hosts_are_real", "parse_listeners", "parse_security_protocols"]

_ADDRESS = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)://(?P<host>\[[0-9A-Fa-f:.%]+\]|[^\[\]:/]*):(?P<port>\d{1,5})")

UNREACHABLE_HOSTS = ("0.0.0.0", "::", "[::]")


class Listener(NamedTuple):
    """A named address. An empty host is the default interface, port 0 a free one."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_listeners(key: str, addresses: Iterable[str], *, ports_unique: bool = False) -> tuple[Listener, ...]:
    """Parse `NAME://host:port` entries; names must be unique, and ports too if `ports_unique`."""
    listeners = tuple(_parse(key, address) for address in addresses)
    names = [listener.name for listener in listeners]
    if len(set(names)) != len(names):
        raise InvalidConfigError(f"{key}: every listener needs a name of its own, got {', '.join(names)}")
    ports = [(listener.host, listener.port) for listener in listeners if listener.port]
    if ports_unique and len(set(ports)) != len(ports):
        raise InvalidConfigError(f"{key}: every listener needs a port of its own")
    return listeners


def _parse(key: str, address: str) -> Listener:
    found = _ADDRESS.fullmatch(address.strip())
    if found is None or int(found["port"]) > 65535:
        raise InvalidConfigError(f"{key}: {address!r} is not of the form NAME://host:port")
    return Listener(found["name"].upper(), found["host"].strip("[]"), int(found["port"]))


def advertised_hosts_are_real(listeners: Iterable[Listener]) -> None:
    """Reject the wildcard address: clients cannot connect to it."""
    for listener in listeners:
        if listener.host in UNREACHABLE_HOSTS:
            raise InvalidConfigError(
                f"advertised.listeners: {listener} cannot be reached by clients; name a host or address instead"
            )


def parse_security_protocols(text: str) -> Mapping[str, str]:
    """Parse `NAME:PROTOCOL` pairs."""
    protocols = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = pair.partition(":")
        if not colon or protocol.strip() not in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"):
            raise InvalidConfigError(f"listener.security.protocol.map: {pair!r} is not of the form NAME:PROTOCOL")
        protocols[name.strip().upper()] = protocol.strip()
    return protocols
