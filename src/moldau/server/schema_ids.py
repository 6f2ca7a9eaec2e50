"""Looks up the schema ids of records in a schema registry, with a cache.

The broker's check of ids (`broker.data.schema_rules`) reads the cache; one thread requests the ids that are not
cached. A broker that checks no ids must not load HTTP, schemas and groups for it, so those modules are imported where
they are first used. Start at `RegistrySchemaIds`.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from moldau.broker.data.schema_rules import Question, RegisteredSchema, RegistryUnreachableError, SchemaId
from moldau.core.config import BrokerConfig
from moldau.core.config.sections import setting
from moldau.core.errors import ErrorCode, MoldauError

if TYPE_CHECKING:
    from moldau.broker.coordination.coordinators import Coordinators
    from moldau.client.registry_http import RegistryServers

__all__ = ["RegistryAddress", "RegistryLookup", "RegistrySchemaIds", "announced_registries"]

SETTLED_S: Final = 300.0
"""How long a valid id is cached: subjects are rarely deleted."""
MISSING_S: Final = 0.1
"""The minimum time for which an invalid id is refused without a request, to protect the registry from floods."""
PAUSE_S: Final = 1.0
"""How long no request is sent after the registry was unreachable: producers retry anyway."""
TIMEOUT_S: Final = 3.0
"""The request timeout of one registry."""
GROUP_ID: Final = "schema-registry"
DEFAULT_CONTEXT: Final = "."
SCHEMA_NOT_FOUND: Final = 40403

Key = TypeVar("Key")
Value = TypeVar("Value")

_logger = logging.getLogger("moldau.server.schema_ids")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySettings:
    urls: list[str] = setting("confluent.schema.registry.url")
    credentials_source: str = setting("confluent.basic.auth.credentials.source")
    user_info: str | None = setting("confluent.basic.auth.user.info")
    truststore: str | None = setting("confluent.ssl.truststore.location")
    truststore_password: str | None = setting("confluent.ssl.truststore.password")
    missing_ttl_s: float = setting("confluent.missing.id.cache.ttl.sec")
    max_ids: int = setting("confluent.schema.registry.max.cache.size")


@dataclass(frozen=True, slots=True)
class RegistryAddress:
    """The registry's servers, and the limits of the cache."""

    servers: RegistryServers
    missing_ttl_s: float = 0
    max_ids: int = 10_000

    @classmethod
    def of(cls, config: BrokerConfig, announced: Callable[[], Sequence[str]] = tuple) -> RegistryAddress:
        """The address from the broker's settings; if they have no URL, from the registries found in the cluster."""
        from moldau.client.registry_http import RegistryServers

        settings = config.section(RegistrySettings)
        in_url = settings.credentials_source == "URL"
        store = settings.truststore
        return cls(
            RegistryServers(
                urls=tuple(settings.urls or announced()),
                user_info=None if in_url else settings.user_info,
                truststore=(store, settings.truststore_password or "") if store else None,
            ),
            missing_ttl_s=settings.missing_ttl_s,
            max_ids=settings.max_ids,
        )


def announced_registries(coordinators: Coordinators) -> tuple[str, ...]:
    """URLs of this cluster's registries, from the metadata of their group's members. Thread-safe.

    Empty if the group is empty or another broker coordinates it.
    """
    from moldau.coordinator.group.classic.group import ClassicGroup
    from moldau.registry.leadership import PROTOCOL_TYPE, InstanceIdentity

    shard = coordinators.groups.shard_of(GROUP_ID)
    group = None if isinstance(shard, ErrorCode) else shard.core.groups.get(GROUP_ID)
    if not isinstance(group, ClassicGroup) or group.protocol_type != PROTOCOL_TYPE:
        return ()
    # Copied in one step, because members may join or leave meanwhile.
    members = list(group.members.values())
    identities = [InstanceIdentity.decode(one.metadata) for member in members for one in member.protocols]
    return tuple(sorted({identity.url for identity in identities if identity is not None}))


class RegistrySchemaIds:
    """A `SchemaIds`. Any thread may read the cache; only one thread at a time may call `ask`."""

    def __init__(
        self,
        address: Callable[[], RegistryAddress],
        *,
        lookup: RegistryLookup | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address = address
        self._lookup = lookup
        self._now_s = now_s
        self._remembered: dict[SchemaId, tuple[RegisteredSchema, float]] = {}
        self._misfits: dict[Question, float] = {}
        """When an id was last found invalid, per id and rule: invalid for one topic may be valid for another."""
        self._failure: RegistryUnreachableError | None = None
        self._failed_at = 0.0

    def current(self, question: Question) -> RegisteredSchema | None:
        schema_id, rule = question
        schema, asked_at = self._remembered.get(schema_id, (None, 0.0))
        if schema is None:
            return None
        if rule.fits(schema):
            good_for_s = SETTLED_S
        else:
            asked_at = self._misfits.get(question, -math.inf)
            good_for_s = max(MISSING_S, self._address().missing_ttl_s)
        return schema if self._now_s() - asked_at < good_for_s else None

    def last_known(self, schema_id: SchemaId) -> RegisteredSchema | None:
        found = self._remembered.get(schema_id)
        return None if found is None else found[0]

    def ask(self, questions: Iterable[Question]) -> Mapping[SchemaId, RegisteredSchema]:
        answers: dict[SchemaId, RegisteredSchema] = {}
        for schema_id, rule in questions:
            if schema_id not in answers:
                answers[schema_id] = self._ask(schema_id)
                _put(self._remembered, schema_id, (answers[schema_id], self._now_s()), self._address().max_ids)
            if not rule.fits(answers[schema_id]):
                _put(self._misfits, (schema_id, rule), self._now_s(), self._address().max_ids)
        return answers

    def _ask(self, schema_id: SchemaId) -> RegisteredSchema:
        if self._failure is not None and self._now_s() - self._failed_at < PAUSE_S:
            raise RegistryUnreachableError(str(self._failure))
        if self._lookup is None:
            self._lookup = RegistryLookup()
        try:
            schema = self._lookup.find(schema_id, self._address().servers)
        except RegistryUnreachableError as error:
            if self._failure is None:
                _logger.warning("schema ids cannot be checked: %s", error)
            self._failure, self._failed_at = error, self._now_s()
            raise
        if self._failure is not None:
            _logger.info("schema ids can be checked again")
            self._failure = None
        return schema

    def close(self) -> None:
        if self._lookup is not None:
            self._lookup.close()


class RegistryLookup:
    """The HTTP requests to the registry, without a cache. Not thread-safe."""

    def __init__(self) -> None:
        from moldau.client.registry_http import RegistryHttp

        self._http = RegistryHttp(TIMEOUT_S)

    def find(self, schema_id: SchemaId, servers: RegistryServers) -> RegisteredSchema:
        """The current subjects of this id, and the names of its records; raises `RegistryUnreachableError`."""
        if not servers.urls:
            raise RegistryUnreachableError(
                "no schema registry is known: set confluent.schema.registry.url, or start a registry on this cluster"
            )
        try:
            return self._find(schema_id, servers)
        except MoldauError as error:
            raise RegistryUnreachableError(f"schema {schema_id} cannot be looked up: {error}") from None
        except (TypeError, KeyError, AttributeError) as error:
            what = f"an answer that cannot be understood ({error})"
            raise RegistryUnreachableError(f"schema {schema_id} cannot be looked up: {what}") from None

    def _find(self, schema_id: SchemaId, servers: RegistryServers) -> RegisteredSchema:
        from moldau.schemas.parsed_schema import SchemaType
        from moldau.schemas.record_names import record_names

        number = schema_id if isinstance(schema_id, int) else self._number_of(schema_id, servers)
        subjects = None if number is None else self._get(servers, f"/schemas/ids/{number}/subjects")
        document = self._get(servers, f"/schemas/ids/{number}") if subjects else None
        if not subjects or document is None:
            return RegisteredSchema()
        names = record_names(SchemaType.of(document.get("schemaType")), document["schema"])
        return RegisteredSchema(frozenset(subjects), names)

    def _number_of(self, guid: str, servers: RegistryServers) -> int | None:
        """The id of a guid in the default context, which topics use; `None` if there is none."""
        ids = self._get(servers, f"/schemas/guids/{guid}/ids") or ()
        return next((one["id"] for one in ids if one["context"] == DEFAULT_CONTEXT), None)

    def _get(self, servers: RegistryServers, path: str) -> Any:
        """The document at a path, or `None` if the registry has no such schema."""
        from moldau.client.registry_http import RegistryRefusalError

        try:
            return self._http.ask(servers, "GET", path)
        except RegistryRefusalError as error:
            if error.registry_code == SCHEMA_NOT_FOUND:
                return None
            raise

    def close(self) -> None:
        self._http.close()


def _put(memory: dict[Key, Value], key: Key, value: Value, largest: int) -> None:
    """Insert at the end; the oldest entries are removed when there are more than `largest`."""
    memory.pop(key, None)
    memory[key] = value
    while len(memory) > largest:
        memory.pop(next(iter(memory)))
