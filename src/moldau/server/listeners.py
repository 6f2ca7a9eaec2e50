"""Binds the configured listeners, and builds the endpoints that clients connect to. Start at `listen`."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from moldau.broker.context import Listener
from moldau.controller.image import Endpoint
from moldau.core.config import BrokerConfig
from moldau.core.errors import StartupError
from moldau.net.server import Server

__all__ = ["Listening", "listen"]

_ANY_HOST = ("", "0.0.0.0", "::")
_SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


@dataclass(frozen=True, slots=True)
class Listening:
    """A listener that is bound."""

    listener: Listener

    @property
    def host(self) -> str:
        return self.listener.host

    @property
    def port(self) -> int:
        return self.listener.port

    @property
    def endpoint(self) -> Endpoint:
        """The entry of this listener in the cluster's metadata."""
        one = self.listener
        host = one.advertised_host or socket.gethostname()
        return Endpoint(one.name, host, one.advertised_port, _SECURITY_PROTOCOLS[one.security_protocol])


def listen(server: Server, config: BrokerConfig) -> dict[str, Listening]:
    """Bind every client listener; connections are not accepted yet.

    Controller listeners are skipped: the single-node quorum runs in this process, and no other process calls it.
    """
    advertised = {one.name: one for one in config.advertised_listeners}
    bound = {}
    for wanted in config.listeners:
        if wanted.name in config.controller_listener_names:
            continue
        protocol = config.security_protocols.get(wanted.name, "PLAINTEXT")
        if protocol != "PLAINTEXT":
            raise StartupError(f"listeners: {wanted.name} wants {protocol}, and only PLAINTEXT is supported so far")
        try:
            port = server.listen(wanted.name, wanted.host, wanted.port)
        except OSError as error:
            raise StartupError(f"cannot listen on {wanted}: {error.strerror}; choose another port or host") from None
        told = advertised.get(wanted.name, wanted)
        host = "" if told.host in _ANY_HOST else told.host
        listener = Listener(wanted.name, wanted.host or "0.0.0.0", port, host, told.port or port, protocol)
        bound[wanted.name] = Listening(listener)
    if not bound:
        raise StartupError("listeners has no listener for clients; add one, for example PLAINTEXT://:9092")
    return bound
