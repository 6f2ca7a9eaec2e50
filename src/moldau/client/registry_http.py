"""HTTP client of a schema registry: keeps connections, and fails over to the next of several instances.

Built on the standard library, for one thread at a time. Used by `client.schema_registry` and by the broker's check of
schema ids. Start at `RegistryHttp.ask`.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from moldau.client.errors import ClientError, UnreachableError
from moldau.security.keystores import trusted_certificates_pem

__all__ = ["MEDIA_TYPE", "RegistryHttp", "RegistryRefusalError", "RegistryServers", "read_answer"]

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"


class RegistryRefusalError(ClientError):
    """The registry answered with an error; `status` and `registry_code` are its numbers."""

    def __init__(self, message: str, status: int, registry_code: int) -> None:
        super().__init__(message)
        self.status = status
        self.registry_code = registry_code


@dataclass(frozen=True, slots=True)
class RegistryServers:
    """Addresses and credentials of a registry."""

    urls: tuple[str, ...]
    user_info: str | None = field(default=None, repr=False)
    """`user:password`; a URL may hold them too."""
    truststore: tuple[str, str] | None = field(default=None, repr=False)
    """The trust store for https, and its password; by default the system's trust store is used."""


class RegistryHttp:
    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._connections: dict[str, http.client.HTTPConnection] = {}

    def ask(self, servers: RegistryServers, method: str, path: str, body: Any = None) -> Any:
        """The document of the first instance that answers.

        Raises `RegistryRefusalError` for an error response, and `UnreachableError` where none answers. A status of 500
        and up is returned only by the last instance; before that, the next one is tried.
        """
        failures = []
        refusal: RegistryRefusalError | None = None
        for url in servers.urls:
            try:
                return self._ask_at(url, servers, method, path, body)
            except (OSError, http.client.HTTPException) as error:
                failures.append(f"{_without_password(url)}: {error or type(error).__name__}")
            except RegistryRefusalError as error:
                if error.status < 500:
                    raise
                refusal = error
        raise refusal or UnreachableError(f"the schema registry cannot be reached at {'; '.join(failures)}")

    def _ask_at(self, url: str, servers: RegistryServers, method: str, path: str, body: Any) -> Any:
        address = urlsplit(url)
        content = None if body is None else json.dumps(body).encode()
        headers = {"Accept": MEDIA_TYPE, "Content-Type": MEDIA_TYPE, **_authorization(address, servers.user_info)}
        target = address.path.rstrip("/") + path
        kept = self._connections.pop(url, None)
        if kept is not None:
            try:
                return self._exchange(url, kept, method, target, content, headers)
            except (OSError, http.client.HTTPException):
                # The kept connection may have been closed by the server since: retry with a new one.
                pass
        return self._exchange(url, self._connect(address, servers), method, target, content, headers)

    def _exchange(  # noqa: PLR0917
        self,
        url: str,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        content: bytes | None,
        headers: Mapping[str, str],
    ) -> Any:
        try:
            connection.request(method, target, content, dict(headers))
            answer = connection.getresponse()
            text = answer.read()
        except BaseException:
            connection.close()
            raise
        self._connections[url] = connection
        return read_answer(url, answer.status, text)

    def _connect(self, address: SplitResult, servers: RegistryServers) -> http.client.HTTPConnection:
        host = address.hostname or ""
        if address.scheme == "http":
            return http.client.HTTPConnection(host, address.port, timeout=self._timeout_s)
        trusted = None if servers.truststore is None else trusted_certificates_pem(*servers.truststore)
        context = ssl.create_default_context(cadata=trusted)
        return http.client.HTTPSConnection(host, address.port, timeout=self._timeout_s, context=context)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()


def _authorization(address: SplitResult, user_info: str | None) -> dict[str, str]:
    if not user_info and address.username:
        user_info = f"{unquote(address.username)}:{unquote(address.password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(user_info.encode()).decode()}"} if user_info else {}


def read_answer(url: str, status: int, text: bytes) -> Any:
    """The document of a response; raises `RegistryRefusalError`, or `ClientError` where it is not a registry's."""
    try:
        document = json.loads(text)
    except ValueError:
        where = _without_password(url)
        raise ClientError(f"{where} answered with status {status} and no JSON: is a schema registry there?") from None
    if status >= 400:
        known = document if isinstance(document, dict) else {}
        code = int(known.get("error_code", status))
        message = known.get("message", "no reason was given")
        raise RegistryRefusalError(f"{message} (schema registry, error code {code})", status, code)
    return document


def _without_password(url: str) -> str:
    """The URL without the password that it may hold."""
    address = urlsplit(url)
    return address._replace(netloc=address.netloc.rpartition("@")[2]).geturl()
