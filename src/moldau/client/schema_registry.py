"""Schema registry client of tools and serdes: schemas by id, and ids for schemas.

`RegistryClient` sends the requests (over `client.registry_http`; any registry with Confluent's API will do),
`RegisteredSchemas` is the schema source of all serdes of a process, and caches the answers. A record with an unknown
schema id is a bad record (`UnfitValueError`). A registry that does not answer, or that rejects a schema, is a
`SchemaRegistryError`, for which no record may be skipped. Start at `RegistryClient.schema` and `registered_schemas`.
"""

from __future__ import annotations

import pkgutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol
from urllib.parse import quote, urlsplit

from moldau.client.errors import ClientError, SchemaRegistryError, UnreachableError
from moldau.client.registry_http import RegistryHttp, RegistryRefusalError, RegistryServers
from moldau.core.errors import InvalidConfigError
from moldau.schemas.errors import SchemaError
from moldau.schemas.identity import SchemaReference
from moldau.schemas.schema import ParsedSchema, parse
from moldau.serdes.schema_source import RegisteredSchema, SchemaText, UnfitValueError

__all__ = [
    "DEFAULT_URL",
    "MOCK_SCHEME",
    "RegisteredSchemas",
    "RegistryClient",
    "RegistryRefusalError",
    "registered_schemas",
]

DEFAULT_URL = "http://localhost:8081"
MOCK_SCHEME = "mock"
TIMEOUT_S = 30.0
NOT_FOUND, CONFLICT = 404, 409
UNKNOWN_FOR_S = 1.0
"""How long an unknown id is not looked up again, since bad records come in large numbers."""
MAX_UNKNOWN = 1000
"""How many unknown ids are remembered, since every record may have another one."""
_MOCK_PROVIDER: Final = "moldau.registry.mock:mock_registry"
"""Returns the registry of a `mock://` URL. Resolved by name and only when needed: the registry is built on this
package, so it cannot be imported here, and command-line tools should not load it at startup."""


class InProcessRegistry(Protocol):
    """A registry that answers without HTTP."""

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """As `RegistryHttp.ask`: the answer's document; raises `RegistryRefusalError`."""
        ...


class RegistryClient:
    """Requests to one of several instances, with failover; a `mock://` URL means a registry in this process."""

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
            found = self._by_id[schema_id] = self._registered_schema(number, document)
        return found

    def latest(self, subject: str) -> RegisteredSchema:
        document = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/latest")
        return self._registered_schema(document["id"], document)

    def version(self, subject: str, version: int | str) -> tuple[RegisteredSchema, int]:
        """A version of a subject, or `latest`, and its number."""
        document = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/{version}")
        return self._registered_schema(document["id"], document), int(document["version"])

    def version_of(self, subject: str, schema_type: str, text: str) -> tuple[int, int]:
        """The id and version that a schema has under a subject."""
        body = {"schema": text, "schemaType": schema_type}
        document = self._ask("POST", f"/subjects/{quote(subject, safe='')}", body)
        return int(document["id"]), int(document["version"])

    def register(
        self, subject: str, schema_type: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> RegisteredSchema:
        """Register a schema, or get the id it already has."""
        return self._send_schema(f"/subjects/{quote(subject, safe='')}/versions", schema_type, text, references)

    def look_up(
        self, subject: str, schema_type: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> RegisteredSchema:
        """The id of a schema that must be registered already."""
        return self._send_schema(f"/subjects/{quote(subject, safe='')}", schema_type, text, references)

    def parse_schema(self, schema_type: str, text: str, references: Sequence[SchemaReference] = ()) -> ParsedSchema:
        """Parse a schema; its references are fetched."""
        return parse(schema_type, text, self._resolve(references))

    def _send_schema(
        self, path: str, schema_type: str, text: str, references: Sequence[SchemaReference]
    ) -> RegisteredSchema:
        listed = [{"name": one.name, "subject": one.subject, "version": one.version} for one in references]
        body = {"schema": text, "schemaType": schema_type, **({"references": listed} if listed else {})}
        number = self._ask("POST", path, body)["id"]
        return RegisteredSchema(number, self.parse_schema(schema_type, text, references), tuple(references))

    def _registered_schema(self, number: int, document: Mapping[str, Any]) -> RegisteredSchema:
        references = tuple(
            SchemaReference(one["name"], one["subject"], one["version"]) for one in document.get("references") or ()
        )
        schema_type = document.get("schemaType") or "AVRO"
        parsed = parse(schema_type, document["schema"], self._resolve(references), validate=False)
        return RegisteredSchema(number, parsed, references)

    def _resolve(self, references: Sequence[SchemaReference]) -> dict[str, ParsedSchema | str]:
        """All referenced schemas by name, each after the ones it references itself."""
        found: dict[str, ParsedSchema | str] = {}
        for reference in references:
            version = "latest" if reference.version == -1 else reference.version
            path = f"/subjects/{quote(reference.subject, safe='')}/versions/{version}?deleted=true"
            document = self._ask("GET", path)
            parts = [SchemaReference(**part) for part in document.get("references") or ()]
            found = {**found, **self._resolve(parts), reference.name: document["schema"]}
        return found

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        if self._in_process is not None:
            return self._in_process.ask(method, path, body)
        try:
            return self._http.ask(self._servers, method, path, body)
        finally:
            # A tool sends a few requests and then runs for hours, so no connection is kept.
            self._http.close()


class RegisteredSchemas:
    """One registry, as seen by all serdes of a process. May be used by any thread."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client
        self._lock = threading.RLock()
        self._latest: dict[str, RegisteredSchema] = {}
        self._written: dict[tuple[str, SchemaText], RegisteredSchema] = {}
        self._unknown: dict[int | str, tuple[float, str]] = {}

    def schema(self, name: int | str) -> RegisteredSchema:
        """The schema with an id or a guid; raises `UnfitValueError` where there is none."""
        with self._lock:
            until, message = self._unknown.get(name, (0.0, ""))
            if time.monotonic() < until:
                raise UnfitValueError(message)
            try:
                with _as_service_errors(f"schema {name}"):
                    return self._client.schema(name)
            except RegistryRefusalError as error:
                message = f"it names schema {name}, which the registry does not have: {error}"
                if len(self._unknown) >= MAX_UNKNOWN:
                    self._unknown.clear()
                self._unknown[name] = (time.monotonic() + UNKNOWN_FOR_S, message)
                raise UnfitValueError(message) from None
            except SchemaError as error:
                raise UnfitValueError(f"schema {name} of the registry cannot be used: {error}") from None

    def latest(self, subject: str) -> RegisteredSchema | None:
        """The latest version of a subject, or None where it has none; found versions are cached."""
        with self._lock:
            if subject not in self._latest:
                try:
                    with _as_service_errors(f"subject {subject}"):
                        self._latest[subject] = self._client.latest(subject)
                except RegistryRefusalError:
                    return None
            return self._latest[subject]

    def registered(self, subject: str, schema: SchemaText, *, may_register: bool) -> RegisteredSchema:
        """A schema with its id under a subject; registered there first where that is allowed."""
        with self._lock:
            known = self._written.get((subject, schema))
            if known is None:
                send = self._client.register if may_register else self._client.look_up
                known = self._written[subject, schema] = self._ask_for_id(send, subject, schema)
            return known

    def parsed_name(self, schema: SchemaText) -> str | None:
        """The record name of a schema, for the subject name strategies that use it."""
        try:
            with self._lock, _as_service_errors("the schema's references"):
                return self._client.parse_schema(*schema[:3]).name
        except (SchemaError, RegistryRefusalError) as error:
            raise SchemaRegistryError(f"the schema cannot be used: {error}") from None

    @staticmethod
    def _ask_for_id(send: Callable[..., RegisteredSchema], subject: str, schema: SchemaText) -> RegisteredSchema:
        try:
            with _as_service_errors(f"subject {subject}"):
                return send(subject, *schema[:3])
        except RegistryRefusalError as error:
            raise SchemaRegistryError(
                f"the schema is not registered under subject {subject}: {error}; register it, or set "
                "auto.register.schemas=true"
            ) from None
        except SchemaError as error:
            raise SchemaRegistryError(f"the schema for subject {subject} cannot be used: {error}") from None


@contextmanager
def _as_service_errors(about: str) -> Iterator[None]:
    """Let "not found" errors through; all other errors of a registry become `SchemaRegistryError`."""
    try:
        yield
    except UnreachableError as error:
        raise SchemaRegistryError(f"{error} ({about}); start it, or correct schema.registry.url") from None
    except RegistryRefusalError as error:
        if error.status == NOT_FOUND:
            raise
        raise SchemaRegistryError(f"the schema registry refuses {about}: {error}{_advice(error)}") from None
    except ClientError as error:
        raise SchemaRegistryError(f"the request to the schema registry for {about} failed: {error}") from None


def _advice(refusal: RegistryRefusalError) -> str:
    if refusal.status == CONFLICT:
        return (
            "; make the schema fit what was written before (a new field needs a default), write to another topic, or "
            "change the compatibility level of the subject"
        )
    return "; check basic.auth.user.info" if refusal.status in (401, 403) else ""


_known: dict[tuple[str, str | None], RegisteredSchemas] = {}
_known_lock = threading.Lock()


def registered_schemas(url: str, user_info: str | None) -> RegisteredSchemas:
    """The process's view of the registry at a URL (several with commas between); connects on first use."""
    with _known_lock:
        found = _known.get((url, user_info))
        if found is None:
            properties = {"schema.registry.url": url}
            if user_info:
                properties["basic.auth.user.info"] = user_info
            found = _known[url, user_info] = RegisteredSchemas(RegistryClient(properties))
        return found
