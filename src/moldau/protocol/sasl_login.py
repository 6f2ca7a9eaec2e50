"""A SASL login in Kafka's protocol, client side: SaslHandshake, then SaslAuthenticate until the login is complete.

No I/O: a generator yields each request and is sent its response, so that blocking and asynchronous clients share it.
The mechanism creates the tokens (`security.sasl`). Start at `sasl_login`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol

from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

__all__ = ["FIRST_HANDSHAKE_VERSION", "AuthenticationError", "SaslMechanism", "sasl_login"]

FIRST_HANDSHAKE_VERSION = 1
"""After a handshake of version 0 tokens are sent without a request around them; no supported broker needs that."""


class AuthenticationError(MoldauError):
    """The broker rejected the login, or could not prove that it knows the password."""

    code = ErrorCode.SASL_AUTHENTICATION_FAILED


class SaslMechanism(Protocol):
    """The client side of one login; a new object for each login."""

    @property
    def name(self) -> str:
        """As in `sasl.mechanism`: PLAIN, SCRAM-SHA-256, …"""
        ...

    def first_token(self) -> bytes: ...

    def answer(self, challenge: bytes) -> bytes | None:
        """The next token, or `None` when the login is complete; raises `ValueError` for an invalid answer."""
        ...


def sasl_login(mechanism: SaslMechanism) -> Generator[tuple[ApiKey, Message], Message, int]:
    """Log in; returns after how many milliseconds the broker requires a new login, 0 for never."""
    handshake = yield ApiKey.SASL_HANDSHAKE, Message(mechanism=mechanism.name)
    if handshake.error_code:
        raise AuthenticationError(
            f"the broker does not accept {mechanism.name}; it accepts {', '.join(handshake.mechanisms) or 'nothing'}"
        )
    token: bytes | None = mechanism.first_token()
    lifetime_ms = 0
    while token is not None:
        answer = yield ApiKey.SASL_AUTHENTICATE, Message(auth_bytes=token)
        if answer.error_code:
            raise AuthenticationError(answer.error_message or "the broker refused the login without saying why")
        lifetime_ms = answer.session_lifetime_ms
        try:
            token = mechanism.answer(answer.auth_bytes)
        except ValueError as error:
            raise AuthenticationError(f"{mechanism.name}: {error}") from None
    return lifetime_ms
