"""Authentication: credentials from the `Authorization` header, and the hook that turns them into a principal.

No users are stored here. A service gives `build_app` an `Authenticate`: a coroutine that takes the credentials and
returns a `Principal`, or raises `UnauthenticatedError` (401) or `ForbiddenError` (403), which are rendered in the
service's own error format. Start at `Authenticate`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from moldau.http.errors import HttpError

__all__ = [
    "ANONYMOUS",
    "Authenticate",
    "BasicCredentials",
    "BearerCredentials",
    "Credentials",
    "ForbiddenError",
    "Principal",
    "UnauthenticatedError",
    "parse_credentials",
]

DEFAULT_CHALLENGE = 'Basic realm="moldau", charset="UTF-8"'


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller, written as Kafka writes principals: `User:alice`."""

    name: str
    kind: str = "User"

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal("ANONYMOUS")


@dataclass(frozen=True, slots=True)
class BasicCredentials:
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class BearerCredentials:
    token: str = field(repr=False)


Credentials = BasicCredentials | BearerCredentials | None
"""`None` from a client that sent none: the hook may reject it, or return `ANONYMOUS`."""

Authenticate = Callable[[Credentials], Awaitable[Principal]]
"""Turns credentials into a principal; raises `UnauthenticatedError` or `ForbiddenError`."""


class UnauthenticatedError(HttpError):
    """The caller is not authenticated. The response is a 401 with a challenge."""

    def __init__(self, message: str = "Authentication is required", *, challenge: str = DEFAULT_CHALLENGE) -> None:
        super().__init__(401, message, headers={"www-authenticate": challenge})


class ForbiddenError(HttpError):
    """The caller is authenticated but not authorized."""

    def __init__(self, message: str = "Not allowed") -> None:
        super().__init__(403, message)


def parse_credentials(authorization: str | None) -> Credentials:
    """Read an `Authorization` header; raises `UnauthenticatedError` for one that cannot be read."""
    if not authorization:
        return None
    scheme, _, value = authorization.strip().partition(" ")
    value = value.strip()
    if scheme.lower() == "basic":
        return _parse_basic(value)
    if scheme.lower() == "bearer" and value:
        return BearerCredentials(value)
    raise UnauthenticatedError("The Authorization header must be of the form 'Basic ...' or 'Bearer ...'")


def _parse_basic(value: str) -> BasicCredentials:
    try:
        # RFC 7617 with charset="UTF-8"; the password may contain colons, the name may not.
        user, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise UnauthenticatedError("The Basic credentials are not base64 of UTF-8 text") from None
    if not colon:
        raise UnauthenticatedError("The Basic credentials have no ':' between name and password")
    return BasicCredentials(user, password)
