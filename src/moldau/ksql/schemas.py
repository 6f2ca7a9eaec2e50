"""The schema registry as the server uses it: asked anew for each request, since others register schemas too.

Start at `request_schemas`.
"""

from __future__ import annotations

from moldau.client.schema_registry import RegisteredSchemas, RegistryClient, registered_schemas
from moldau.formats.columns import Column
from moldau.formats.format import RowFormat
from moldau.formats.registry.topic_schemas import TopicSchemas
from moldau.formats.row_serde import RegistryAddress, RowSerde
from moldau.ksql.api.errors import ErrorKind, RequestError
from moldau.ksql.settings import KsqlSettings
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.ksql.catalogue.services import Schemas
from moldau.serdes.schema_source import SchemaSource
from moldau.serdes.serde import ready_serde

__all__ = ["fresh_schemas", "known_schemas", "prepared_serdes", "request_schemas", "row_serde"]


def prepared_serdes(topology: Topology, settings: KsqlSettings) -> Topology:
    """The topology with serdes that know the server's registry."""
    url = settings["ksql.schema.registry.url"]
    user_info = settings.given.get("ksql.schema.registry.basic.auth.user.info")
    found = {"schema.registry.url": url} | ({"basic.auth.user.info": user_info} if user_info else {})
    return topology.with_prepared_serdes(
        lambda serde, part: ready_serde(serde, found if url else {}, part, registered_schemas)
    )


def row_serde(row_format: RowFormat, columns: tuple[Column, ...], settings: KsqlSettings) -> RowSerde:
    """A serde of rows that knows the server's registry."""
    url = settings["ksql.schema.registry.url"]
    user_info = settings.given.get("ksql.schema.registry.basic.auth.user.info")
    return RowSerde(row_format, columns, RegistryAddress(registered_schemas, str(url), user_info) if url else None)


def request_schemas(settings: KsqlSettings) -> Schemas:
    """The registry for one request; without one, formats that need it are refused."""
    url = settings["ksql.schema.registry.url"]
    if not url:
        return _NoSchemas()
    return TopicSchemas(fresh_schemas(settings))


def fresh_schemas(settings: KsqlSettings) -> SchemaSource:
    """The registry's schemas as they are now; raises `RequestError` if none is configured."""
    url = settings["ksql.schema.registry.url"]
    if not url:
        raise RequestError(
            "KSQL is not configured to use a schema registry: set ksql.schema.registry.url, such as "
            "http://localhost:8081",
            ErrorKind.NO_SCHEMA_REGISTRY,
        )
    user_info = settings.given.get("ksql.schema.registry.basic.auth.user.info")
    properties = {"schema.registry.url": str(url)} | ({} if not user_info else {"basic.auth.user.info": user_info})
    return RegisteredSchemas(RegistryClient(properties))


def known_schemas(settings: KsqlSettings) -> SchemaSource | None:
    """The schemas of the registry, which are kept once they are known; None without a registry."""
    url = settings["ksql.schema.registry.url"]
    user_info = settings.given.get("ksql.schema.registry.basic.auth.user.info")
    return registered_schemas(str(url), user_info) if url else None


class _NoSchemas:
    """No registry is configured."""

    def inferred(self, topic: str, row_format: RowFormat) -> tuple[Column, ...]:
        raise _needed(row_format)

    def check(self, topic: str, row_format: RowFormat, columns: tuple[Column, ...]) -> None:
        _check(row_format, columns)

    def register_if_absent(self, topic: str, row_format: RowFormat, columns: tuple[Column, ...]) -> None:
        _check(row_format, columns)

    def register(self, topic: str, row_format: RowFormat, columns: tuple[Column, ...]) -> None:
        _check(row_format, columns)


def _check(row_format: RowFormat, columns: tuple[Column, ...]) -> None:
    if columns and row_format.format.uses_registry:
        raise _needed(row_format)


def _needed(row_format: RowFormat) -> RequestError:
    return RequestError(
        f"KSQL is not configured to use a schema registry, which format {row_format.format.name} needs; set "
        "ksql.schema.registry.url, such as http://localhost:8081",
        ErrorKind.NO_SCHEMA_REGISTRY,
    )
