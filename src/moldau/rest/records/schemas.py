"""The schemas of records: resolved through the registry once, then kept. Start at `Schemas.of_text`.

The registry's client is for one thread at a time; methods that may ask it block, and are called in a thread unless
`is_known` says that the answer is here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from moldau.client.errors import ClientError, SchemaRegistryError
from moldau.client.registry_http import RegistryRefusalError
from moldau.rest.errors import RestError
from moldau.schemas.errors import SchemaError
from moldau.schemas.parsed_schema import ParsedSchema

if TYPE_CHECKING:
    from moldau.client.schema_registry import RegistryClient
    from moldau.schemas.values import ValueCodec

__all__ = ["SCHEMA_TYPES", "KnownSchema", "Schemas"]

SCHEMA_TYPES: Final = {"avro": "AVRO", "jsonschema": "JSON", "protobuf": "PROTOBUF"}
"""The registry's name of each format's schemas."""
LATEST_FOR_S: Final = 1.0
"""How long the latest version of a subject is taken for the latest."""
MAX_KEPT: Final = 2000
INVALID_SCHEMA, SERIALIZATION = 42205, 42207


@dataclass(frozen=True, slots=True)
class KnownSchema:
    """A registered schema and its codec; subject and version are known where it was found by them."""

    id: int
    schema_type: str
    codec: ValueCodec
    subject: str | None = None
    version: int | None = None


class Schemas:
    """Asks the registry. What parses schemas is loaded with the first one: most proxies never see any."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._lock = threading.Lock()
        self._kept: dict[Hashable, KnownSchema] = {}
        self._until: dict[Hashable, float] = {}
        self._codecs: dict[int, ValueCodec] = {}

    @cached_property
    def _client(self) -> RegistryClient:
        from moldau.client.schema_registry import RegistryClient

        return RegistryClient(self._properties)

    def is_known(self, *key: Hashable) -> bool:
        """Whether the method of this name answers these arguments without the registry."""
        return self._find(key) is not None

    def of_id(self, schema_id: int) -> KnownSchema:
        """The schema with an id; raises 42207 if there is none."""

        def ask() -> KnownSchema:
            found = self._client.schema(schema_id)
            return KnownSchema(schema_id, found.parsed.schema_type, self._codec(schema_id, found.parsed))

        return self._get(("of_id", schema_id), ask, f"schema {schema_id}")

    def of_text(self, subject: str, schema_type: str, text: str) -> KnownSchema:
        """A schema by its text, registered under a subject if it is not; raises 42205 for one that is invalid."""

        def ask() -> KnownSchema:
            parsed = self._client.parse_schema(schema_type, text)
            number, version = self._find_or_register(subject, schema_type, text)
            return KnownSchema(number, schema_type, self._codec(number, parsed), subject, version)

        return self._get(("of_text", subject, schema_type, text), ask, f"the schema for subject {subject}")

    def of_version(self, subject: str, version: int | None) -> KnownSchema:
        """A version of a subject, the latest if `None`."""

        def ask() -> KnownSchema:
            found, number = self._client.version(subject, "latest" if version is None else version)
            return KnownSchema(found.id, found.parsed.schema_type, self._codec(found.id, found.parsed), subject, number)

        about = f"version {version or 'latest'} of subject {subject}"
        return self._get(("of_version", subject, version), ask, about, for_s=LATEST_FOR_S if version is None else None)

    def of_subject_and_id(self, subject: str, schema_id: int) -> KnownSchema:
        """The schema with an id, and its version under a subject where it has one."""
        with_id = self.of_id(schema_id)

        def ask() -> KnownSchema:
            text = self._client.schema(schema_id).parsed.canonical
            try:
                version: int | None = self._client.version_of(subject, with_id.schema_type, text)[1]
            except RegistryRefusalError:
                version = None
            return KnownSchema(schema_id, with_id.schema_type, with_id.codec, subject, version)

        return self._get(("of_subject_and_id", subject, schema_id), ask, f"schema {schema_id}")

    def record_name(self, schema_type: str, text: str) -> str | None:
        """The name of a schema's record."""
        try:
            with self._lock:
                return self._client.parse_schema(schema_type, text).name
        except SchemaError as error:
            raise RestError(INVALID_SCHEMA, f"Invalid schema: {error}") from None
        except ClientError as error:
            raise RestError(SERIALIZATION, str(error)) from None

    def record_name_of_id(self, schema_id: int) -> str | None:
        self.of_id(schema_id)
        with self._lock:
            return self._client.schema(schema_id).parsed.name

    def _find_or_register(self, subject: str, schema_type: str, text: str) -> tuple[int, int | None]:
        try:
            return self._client.version_of(subject, schema_type, text)
        except RegistryRefusalError as error:
            if error.status != 404:
                raise
        number = self._client.register(subject, schema_type, text).id
        try:
            return number, self._client.version_of(subject, schema_type, text)[1]
        except RegistryRefusalError:
            return number, None

    def _codec(self, number: int, parsed: ParsedSchema) -> ValueCodec:
        if number not in self._codecs:
            if len(self._codecs) >= MAX_KEPT:
                self._codecs.clear()
            from moldau.schemas.values import codec_of

            self._codecs[number] = codec_of(parsed)
        return self._codecs[number]

    def _find(self, key: Hashable) -> KnownSchema | None:
        known = self._kept.get(key)
        return known if known is not None and time.monotonic() < self._until.get(key, float("inf")) else None

    def _get(
        self, key: Hashable, ask: Callable[[], KnownSchema], about: str, *, for_s: float | None = None
    ) -> KnownSchema:
        known = self._find(key)
        if known is not None:
            return known
        try:
            with self._lock:
                found = ask()
        except SchemaError as error:
            raise RestError(INVALID_SCHEMA, f"Invalid schema: {error}") from None
        except (RegistryRefusalError, SchemaRegistryError) as error:
            raise RestError(SERIALIZATION, f"The schema registry does not have {about}: {error}") from None
        except ClientError as error:
            raise RestError(SERIALIZATION, f"{about} cannot be fetched from the schema registry: {error}") from None
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
            self._until.clear()
        self._kept[key] = found
        if for_s is not None:
            self._until[key] = time.monotonic() + for_s
        return found
