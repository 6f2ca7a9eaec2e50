"""Who is at the other end of a connection, and through which listener they came. Start at `Session`."""

from __future__ import annotations

from typing import Final

__all__ = ["ANONYMOUS", "Session"]

ANONYMOUS: Final = "User:ANONYMOUS"
"""Kafka's principal for a client that nobody has authenticated."""


class Session:
    """One for each connection, as long as the connection lives; handlers see it as `connection.session`.

    Whoever authenticates the client (the TLS transport by its certificate, a SASL exchange by its password) replaces
    `principal`; a request is handled for the principal of the moment it arrived.
    """

    __slots__ = ("client_host", "client_port", "listener_name", "local_host", "principal")

    def __init__(self, listener_name: str, client_host: str, client_port: int, local_host: str) -> None:
        self.listener_name = listener_name
        self.client_host = client_host
        self.client_port = client_port
        self.local_host = local_host
        """The address of ours that the client connected to."""
        self.principal = ANONYMOUS
