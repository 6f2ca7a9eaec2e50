"""Who may use a server, and over what: logins from a file of users, and the certificate of an https listener.

The file has a line for each user, as Jetty's files have them: `name: password, role, role`. Start at `authenticator`
and `server_tls`.
"""

from __future__ import annotations

import base64
import hmac
import http.client
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from moldau.core.errors import InvalidConfigError
from moldau.http.auth import (
    Authenticate,
    BasicCredentials,
    Credentials,
    ForbiddenError,
    Principal,
    UnauthenticatedError,
)
from moldau.http.tls import listener_context, peer_context
from moldau.ksql.settings import KsqlSettings

__all__ = ["PeerAccess", "authenticator", "server_tls"]

ANY_ROLE = "*"


@dataclass(frozen=True, slots=True)
class _User:
    password: str = field(repr=False)
    roles: frozenset[str]


def authenticator(settings: KsqlSettings) -> Authenticate | None:
    """Checks the login of each request; None if nobody has to log in. Raises `InvalidConfigError`."""
    method = settings["authentication.method"].upper()
    if method == "NONE":
        return None
    if method != "BASIC":
        raise InvalidConfigError(f"authentication.method={method}: use NONE or BASIC")
    users = _users(settings)
    allowed = frozenset(settings["authentication.roles"])
    challenge = f'Basic realm="{settings["authentication.realm"]}", charset="UTF-8"'

    async def authenticate(credentials: Credentials) -> Principal:
        if not isinstance(credentials, BasicCredentials):
            raise UnauthenticatedError("This server asks for a name and password", challenge=challenge)
        user = users.get(credentials.user)
        # Compared for unknown names too, so that the time of an answer does not tell which names there are.
        is_right = hmac.compare_digest(credentials.password.encode(), (user.password if user else "").encode())
        if user is None or not is_right:
            raise UnauthenticatedError("Name or password is wrong", challenge=challenge)
        if ANY_ROLE not in allowed and not allowed & user.roles:
            raise ForbiddenError(f"{credentials.user} has none of the roles {', '.join(sorted(allowed))}")
        return Principal(credentials.user)

    return authenticate


def _users(settings: KsqlSettings) -> dict[str, _User]:
    location = settings["moldau.users.file"]
    if location is None:
        raise InvalidConfigError("authentication.method=BASIC needs moldau.users.file, a file of names and passwords")
    try:
        lines = Path(location).expanduser().read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfigError(f"moldau.users.file: {location} cannot be read: {error}") from None
    users = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, colon, rest = line.partition(":")
        password, *roles = (part.strip() for part in rest.split(","))
        if not colon or not name.strip() or not password:
            raise InvalidConfigError(f"moldau.users.file: line {number} of {location} is not `name: password, role`")
        users[name.strip()] = _User(password, frozenset(roles))
    if not users:
        raise InvalidConfigError(f"moldau.users.file: {location} has no users")
    return users


def server_tls(settings: KsqlSettings) -> ssl.SSLContext | None:
    """The certificate of an https listener; None for http. Raises `InvalidConfigError`."""
    return listener_context(settings.listener, settings.tls)


class PeerAccess:
    """Connections to the other servers with this one's service id, which have the same users and authority."""

    def __init__(self, settings: KsqlSettings) -> None:
        self.headers: dict[str, str] = {}
        if authenticator(settings) is not None:
            name, user = next(iter(_users(settings).items()))
            login = base64.b64encode(f"{name}:{user.password}".encode()).decode()
            self.headers["Authorization"] = f"Basic {login}"
        self._tls = peer_context(settings.given) if settings.listener.is_tls else None

    def connect(self, url: str, timeout_s: float) -> http.client.HTTPConnection:
        """A connection to a server, not opened yet."""
        address = urlsplit(url)
        host = address.hostname or ""
        if address.scheme == "https":
            return http.client.HTTPSConnection(host, address.port, timeout=timeout_s, context=self._tls)
        return http.client.HTTPConnection(host, address.port, timeout=timeout_s)
