"""The client of a connection: its address, its principal and its listener. Start at `Session`."""

from __future__ import annotations

from typing import Final

__all__ = ["ANONYMOUS", "Session"]

ANONYMOUS: Final = "User:ANONYMOUS"
"""Kafka's principal for a client that is not authenticated."""


class Session:
    """One for each connection, with the same lifetime; handlers see it as `connection.session`.

    Authentication (a certificate in the TLS transport, a password in a SASL exchange) replaces `principal`; a request
    is handled for the principal at the time it arrived.
    """

    __slots__ = ("client_host", "client_port", "listener_name", "local_host", "principal")

    def __init__(self, listener_name: str, client_host: str, client_port: int, local_host: str) -> None:
        self.listener_name = listener_name
        self.client_host = client_host
        self.client_port = client_port
        self.local_host = local_host
        """The local address that the client connected to."""
        self.principal = ANONYMOUS
