"""Questions to a schema registry over HTTP: which subjects have an id, and what its records are called.

One connection to each instance is kept; the first instance that answers is believed. Nothing is remembered here, that
is `server.schema_ids`. Start at `RegistryQuestions.registered`.
"""

from __future__ import annotations

import http.client
import json
import ssl
from base64 import b64encode
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from moldau.broker.schema_rules import RegisteredSchema, RegistryUnreachableError, SchemaId
from moldau.client.keystores import trusted_certificates_pem
from moldau.core.errors import InvalidConfigError
from moldau.schemas.errors import SchemaError
from moldau.schemas.parsed_schema import SchemaType
from moldau.schemas.record_names import record_names
from moldau.server.schema_ids import RegistryAddress

__all__ = ["RegistryQuestions"]

TIMEOUT_S = 3.0
"""How long one instance may take to answer."""
DEFAULT_CONTEXT = "."

_OK, _NOT_FOUND = 200, 404
_SCHEMA_NOT_FOUND = 40403
_ACCEPTED = "application/vnd.schemaregistry.v1+json, application/json"


class RegistryQuestions:
    """For one thread at a time."""

    def __init__(self) -> None:
        self._connections: dict[str, http.client.HTTPConnection] = {}

    def registered(self, schema_id: SchemaId, address: RegistryAddress) -> RegisteredSchema:
        """What the registry says now; raises `RegistryUnreachableError`."""
        if not address.urls:
            raise RegistryUnreachableError(
                "no schema registry is known: set confluent.schema.registry.url, or start a registry on this cluster"
            )
        problems = []
        for url in address.urls:
            try:
                return _Instance(self._connections, url, address).registered(schema_id)
            except (OSError, http.client.HTTPException, InvalidConfigError) as error:
                problems.append(f"{_shown(url)}: {error or type(error).__name__}")
            except (ValueError, TypeError, KeyError, AttributeError, SchemaError) as error:
                problems.append(f"{_shown(url)}: an answer that cannot be understood ({error})")
        raise RegistryUnreachableError(f"the schema registry cannot be asked: {'; '.join(problems)}")

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()


class _Instance:
    """One registry, for one question."""

    def __init__(self, connections: dict[str, http.client.HTTPConnection], url: str, address: RegistryAddress) -> None:
        self._connections = connections
        self._url = url
        self._parts = urlsplit(url)
        self._address = address
        self._headers = _headers(self._parts, address.user_info)

    def registered(self, schema_id: SchemaId) -> RegisteredSchema:
        number = schema_id if isinstance(schema_id, int) else self._number_of(schema_id)
        subjects = None if number is None else self._get(f"/schemas/ids/{number}/subjects")
        document = self._get(f"/schemas/ids/{number}") if subjects else None
        if not subjects or document is None:
            return RegisteredSchema()
        names = record_names(SchemaType.of(document.get("schemaType")), document["schema"])
        return RegisteredSchema(frozenset(subjects), names)

    def _number_of(self, guid: str) -> int | None:
        """The id behind a guid, in the context that topics live in."""
        ids = self._get(f"/schemas/guids/{guid}/ids") or ()
        return next((one["id"] for one in ids if one["context"] == DEFAULT_CONTEXT), None)

    def _get(self, path: str) -> Any:
        """The document there, or `None` where the registry knows no such schema."""
        status, content = self._exchange(self._parts.path.rstrip("/") + path)
        document = json.loads(content) if status in (_OK, _NOT_FOUND) else None
        if status == _OK:
            return document
        if isinstance(document, dict) and document.get("error_code") == _SCHEMA_NOT_FOUND:
            return None
        raise http.client.HTTPException(f"status {status}")

    def _exchange(self, path: str) -> tuple[int, bytes]:
        kept = self._connections.pop(self._url, None)
        if kept is not None:
            try:
                return self._sent(kept, path)
            except (OSError, http.client.HTTPException):
                # Closed at the other end since it was last used, perhaps: a new one tells.
                kept.close()
        return self._sent(_connection(self._parts, self._address), path)

    def _sent(self, connection: http.client.HTTPConnection, path: str) -> tuple[int, bytes]:
        try:
            connection.request("GET", path, headers=dict(self._headers))
            response = connection.getresponse()
            content = response.read()
        except BaseException:
            connection.close()
            raise
        self._connections[self._url] = connection
        return response.status, content


def _connection(parts: SplitResult, address: RegistryAddress) -> http.client.HTTPConnection:
    host = parts.hostname or ""
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, parts.port, timeout=TIMEOUT_S)
    trusted = None if address.truststore is None else trusted_certificates_pem(*address.truststore)
    context = ssl.create_default_context(cadata=trusted)
    return http.client.HTTPSConnection(host, parts.port, timeout=TIMEOUT_S, context=context)


def _headers(parts: SplitResult, user_info: str | None) -> Mapping[str, str]:
    if user_info is None and parts.username:
        user_info = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    if not user_info:
        return {"Accept": _ACCEPTED}
    return {"Accept": _ACCEPTED, "Authorization": f"Basic {b64encode(user_info.encode()).decode()}"}


def _shown(url: str) -> str:
    """Without the password that a URL may hold."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
