"""kafka-configs for users, clients and IPs: quotas, and the passwords of SCRAM users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moldau.cli.configs.changes import Changes, parse_add_config
from moldau.cli.configs.entities import Entity
from moldau.cli.options import UsageError
from moldau.cli.tool import say
from moldau.client import wire_admin
from moldau.client.admin import (
    SCRAM_MECHANISMS,
    Admin,
    alter_scram_credentials,
    describe_scram_credentials,
)
from moldau.client.errors import ClientError

__all__ = ["alter_quotas", "describe_quotas"]

_QUOTA_ENTITIES = {"users": "user", "clients": "client-id", "ips": "ip"}
_TYPES = {quota: type_ for type_, quota in _QUOTA_ENTITIES.items()}
DEFAULT_ITERATIONS = 4096


def describe_quotas(admin: Admin, entities: Sequence[Entity]) -> None:
    with admin.wire() as client:
        filters = {_QUOTA_ENTITIES[entity.type]: _filter_name(entity) for entity in entities}
        found = wire_admin.describe_client_quotas(client, filters)
    for key, quotas in sorted(found.items(), key=lambda item: str(item[0])):
        named = [Entity(_TYPES[kind], name, is_default=name is None) for kind, name in key]
        words = ", ".join(entity.quota_words for entity in sorted(named, key=lambda entity: entity.type != "users"))
        listed = ", ".join(f"{name}={value}" for name, value in sorted(quotas.items()))
        say(f"Quota configs for {words} are {listed}")
    if [entity.type for entity in entities] == ["users"] and not entities[0].is_default:
        _describe_credentials(admin, entities[0])


def alter_quotas(admin: Admin, entities: Sequence[Entity], changes: Changes) -> None:
    if any(entity.name is None and not entity.is_default for entity in entities):
        raise UsageError("an entity-name or default entity must be specified with --alter of users, clients or ips")
    credentials = {key: value for key, value in changes.add.items() if key in SCRAM_MECHANISMS}
    dropped = [key for key in changes.delete if key in SCRAM_MECHANISMS]
    if credentials or dropped:
        _alter_credentials(admin, entities, credentials, dropped)
    quotas = {key: _number(key, value) for key, value in changes.add.items() if key not in credentials}
    deleted = [key for key in changes.delete if key not in dropped]
    if quotas or deleted:
        key = tuple((_QUOTA_ENTITIES[entity.type], entity.name) for entity in entities)
        with admin.wire() as client:
            wire_admin.alter_client_quotas(client, key, add=quotas, delete=deleted)
    first = entities[0]
    if first.is_default:
        say(f"Completed updating default config for {first.type} in the cluster.")
    else:
        say(f"Completed updating config for {first.singular} {first.name}.")


def _filter_name(entity: Entity) -> str | None:
    return None if entity.is_default else entity.name or ""


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"Cannot parse quota configuration value for {key}: {text}") from None


def _describe_credentials(admin: Admin, user: Entity) -> None:
    try:
        found = describe_scram_credentials(admin, [user.name] if user.name else [])
    except ClientError:
        # Most users have no password, and brokers without SCRAM return an error.
        return
    for name, credentials in sorted(found.items()):
        listed = ", ".join(f"{mechanism}=iterations={iterations}" for mechanism, iterations in credentials)
        say(f"SCRAM credential configs for user-principal '{name}' are {listed}")


def _alter_credentials(
    admin: Admin, entities: Sequence[Entity], credentials: Mapping[str, str], dropped: Sequence[str]
) -> None:
    if len(entities) != 1 or entities[0].type != "users" or entities[0].name is None:
        raise UsageError("SCRAM credentials belong to one user: name it with --entity-type users --entity-name")
    wanted = {}
    for mechanism, text in credentials.items():
        options = parse_add_config(text)
        if "password" not in options:
            raise UsageError(f"A password must be specified: {mechanism}=[iterations=8192,password=...]")
        wanted[mechanism] = (options["password"], int(options.get("iterations", DEFAULT_ITERATIONS)))
    alter_scram_credentials(admin, entities[0].name, wanted, dropped)
