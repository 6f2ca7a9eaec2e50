"""A schema registry as tools ask it: schemas by id, and ids for schemas. Answers are kept, since ids never change.

Any registry with Confluent's API will do; the way to it is `client.registry_http`. Programs of users have
`confluent_kafka.schema_registry`. Start at `RegistryClient.schema`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import quote, urlsplit

from moldau.client.registry_http import RegistryHttp, RegistryRefusalError, RegistryServers
from moldau.core.errors import InvalidConfigError
from moldau.schemas.identity import SchemaReference
from moldau.schemas.schema import ParsedSchema, parse

__all__ = ["DEFAULT_URL", "MOCK_SCHEME", "RegisteredSchema", "RegistryClient", "RegistryRefusalError", "subject_name"]

DEFAULT_URL = "http://localhost:8081"
MOCK_SCHEME = "mock"
TIMEOUT_S = 30.0
_MOCK_PROVIDER: Final = "moldau.registry.mock:mock_registry"
"""Gives the registry that a `mock://` URL names. Looked up by its name and only when needed: the registry is built on
this package, so it cannot be imported here, and commands that start often should not load it."""


class InProcessRegistry(Protocol):
    """A registry that answers without HTTP."""

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """As `RegistryHttp.ask`: the answer's document; raises `RegistryRefusalError`."""
        ...


class RegisteredSchema(NamedTuple):
    id: int
    parsed: ParsedSchema
    references: tuple[SchemaReference, ...] = ()


class RegistryClient:
    """Asks one of several instances, and the next one where that is gone; a `mock://` URL names one in this process."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        """`schema.registry.url` may list several; `basic.auth.user.info` is sent where it is given."""
        urls = [url.strip() for url in properties.get("schema.registry.url", DEFAULT_URL).split(",")]
        self._servers = RegistryServers(tuple(url for url in urls if url), properties.get("basic.auth.user.info"))
        self._http = RegistryHttp(TIMEOUT_S)
        self._by_id: dict[int | str, RegisteredSchema] = {}
        self._in_process: InProcessRegistry | None = None
        if self._servers.urls and urlsplit(self._servers.urls[0]).scheme == MOCK_SCHEME:
            provide: Callable[[str], InProcessRegistry] = pkgutil.resolve_name(_MOCK_PROVIDER)
            self._in_process = provide(self._servers.urls[0])
            return
        for url in self._servers.urls:
            if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
                raise InvalidConfigError(f"schema.registry.url={url}: write http://host:port, such as {DEFAULT_URL}")
        if not self._servers.urls:
            raise InvalidConfigError(f"schema.registry.url is empty: write http://host:port, such as {DEFAULT_URL}")

    def schema(self, schema_id: int | str) -> RegisteredSchema:
        """The schema with an id, or with a guid."""
        found = self._by_id.get(schema_id)
        if found is None:
            kind = "ids" if isinstance(schema_id, int) else "guids"
            document = self._ask("GET", f"/schemas/{kind}/{schema_id}")
            number = schema_id if isinstance(schema_id, int) else -1
            found = self._by_id[schema_id] = self._registered(number, document)
        return found

    def latest(self, subject: str) -> RegisteredSchema:
        document = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/latest")
        return self._registered(document["id"], document)

    def register(
        self, subject: str, schema_type: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> RegisteredSchema:
        """Have a schema registered, or learn that it is."""
        return self._send_schema(f"/subjects/{quote(subject, safe='')}/versions", schema_type, text, references)

    def look_up(
        self, subject: str, schema_type: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> RegisteredSchema:
        """The id of a schema that must be registered already."""
        return self._send_schema(f"/subjects/{quote(subject, safe='')}", schema_type, text, references)

    def parsed(self, schema_type: str, text: str, references: Sequence[SchemaReference] = ()) -> ParsedSchema:
        """A schema's text understood, with what it refers to fetched."""
        return parse(schema_type, text, self._resolved(references))

    def _send_schema(
        self, path: str, schema_type: str, text: str, references: Sequence[SchemaReference]
    ) -> RegisteredSchema:
        listed = [{"name": one.name, "subject": one.subject, "version": one.version} for one in references]
        body = {"schema": text, "schemaType": schema_type, **({"references": listed} if listed else {})}
        number = self._ask("POST", path, body)["id"]
        return RegisteredSchema(number, self.parsed(schema_type, text, references), tuple(references))

    def _registered(self, number: int, document: Mapping[str, Any]) -> RegisteredSchema:
        references = tuple(
            SchemaReference(one["name"], one["subject"], one["version"]) for one in document.get("references") or ()
        )
        schema_type = document.get("schemaType") or "AVRO"
        parsed = parse(schema_type, document["schema"], self._resolved(references), validate=False)
        return RegisteredSchema(number, parsed, references)

    def _resolved(self, references: Sequence[SchemaReference]) -> dict[str, ParsedSchema | str]:
        """Texts of all that is referred to, by name, each after those it builds on."""
        found: dict[str, ParsedSchema | str] = {}
        for reference in references:
            version = "latest" if reference.version == -1 else reference.version
            path = f"/subjects/{quote(reference.subject, safe='')}/versions/{version}?deleted=true"
            document = self._ask("GET", path)
            parts = [SchemaReference(**part) for part in document.get("references") or ()]
            found = {**found, **self._resolved(parts), reference.name: document["schema"]}
        return found

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        if self._in_process is not None:
            return self._in_process.ask(method, path, body)
        try:
            return self._http.ask(self._servers, method, path, body)
        finally:
            # A tool asks a few times and then works for hours: nobody should keep a connection for that.
            self._http.close()


def subject_name(strategy: str, topic: str, record_name: str | None, *, is_key: bool) -> str:
    """The subject that a strategy class names; raises where it needs a record's name and there is none."""
    simple = strategy.rsplit(".", 1)[-1]
    if simple == "TopicNameStrategy":
        return f"{topic}-{'key' if is_key else 'value'}"
    if simple not in ("RecordNameStrategy", "TopicRecordNameStrategy"):
        raise InvalidConfigError(
            f"{strategy} is not a subject name strategy: use TopicNameStrategy, RecordNameStrategy or "
            "TopicRecordNameStrategy"
        )
    if not record_name:
        raise InvalidConfigError(f"{simple} needs a schema with a name, and this one has none")
    return record_name if simple == "RecordNameStrategy" else f"{topic}-{record_name}"
