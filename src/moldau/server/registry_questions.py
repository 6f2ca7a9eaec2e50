"""Questions of the broker to a schema registry: which subjects have an id, and what its records are called.

Nothing is remembered here, that is `server.schema_ids`. Start at `RegistryQuestions.registered`.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.data.schema_rules import RegisteredSchema, RegistryUnreachableError, SchemaId
from moldau.client.registry_http import RegistryHttp, RegistryRefusalError, RegistryServers
from moldau.core.errors import MoldauError
from moldau.schemas.parsed_schema import SchemaType
from moldau.schemas.record_names import record_names

__all__ = ["RegistryQuestions"]

TIMEOUT_S = 3.0
"""How long one instance may take to answer."""
DEFAULT_CONTEXT = "."
SCHEMA_NOT_FOUND = 40403


class RegistryQuestions:
    """For one thread at a time."""

    def __init__(self) -> None:
        self._http = RegistryHttp(TIMEOUT_S)

    def registered(self, schema_id: SchemaId, servers: RegistryServers) -> RegisteredSchema:
        """What the registry says now; raises `RegistryUnreachableError`."""
        if not servers.urls:
            raise RegistryUnreachableError(
                "no schema registry is known: set confluent.schema.registry.url, or start a registry on this cluster"
            )
        try:
            return self._registered(schema_id, servers)
        except MoldauError as error:
            raise RegistryUnreachableError(f"schema {schema_id} cannot be asked about: {error}") from None
        except (TypeError, KeyError, AttributeError) as error:
            what = f"an answer that cannot be understood ({error})"
            raise RegistryUnreachableError(f"schema {schema_id} cannot be asked about: {what}") from None

    def _registered(self, schema_id: SchemaId, servers: RegistryServers) -> RegisteredSchema:
        number = schema_id if isinstance(schema_id, int) else self._number_of(schema_id, servers)
        subjects = None if number is None else self._get(servers, f"/schemas/ids/{number}/subjects")
        document = self._get(servers, f"/schemas/ids/{number}") if subjects else None
        if not subjects or document is None:
            return RegisteredSchema()
        names = record_names(SchemaType.of(document.get("schemaType")), document["schema"])
        return RegisteredSchema(frozenset(subjects), names)

    def _number_of(self, guid: str, servers: RegistryServers) -> int | None:
        """The id behind a guid, in the context that topics live in."""
        ids = self._get(servers, f"/schemas/guids/{guid}/ids") or ()
        return next((one["id"] for one in ids if one["context"] == DEFAULT_CONTEXT), None)

    def _get(self, servers: RegistryServers, path: str) -> Any:
        """The document there, or `None` where the registry knows no such schema."""
        try:
            return self._http.ask(servers, "GET", path)
        except RegistryRefusalError as error:
            if error.registry_code == SCHEMA_NOT_FOUND:
                return None
            raise

    def close(self) -> None:
        self._http.close()
