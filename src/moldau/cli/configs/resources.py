"""Configs of entities by direct requests: librdkafka does not return synonyms, nor support the default broker."""

from __future__ import annotations

from typing import NamedTuple

from moldau.cli.configs.changes import Changes
from moldau.cli.configs.entities import Entity
from moldau.client import wire_admin
from moldau.client.admin import Admin, ConfigEntry
from moldau.client.wire import WireClient
from moldau.client.wire_admin import ResourceKind

__all__ = ["KINDS", "change_configs", "config_entries", "names_of"]


class _Kind(NamedTuple):
    kind: ResourceKind
    word: str


KINDS = {
    "topics": _Kind(ResourceKind.TOPIC, "topic"),
    "brokers": _Kind(ResourceKind.BROKER, "broker"),
    "broker-loggers": _Kind(ResourceKind.BROKER_LOGGER, "broker-logger"),
    "client-metrics": _Kind(ResourceKind.CLIENT_METRICS, "client-metric"),
    "groups": _Kind(ResourceKind.GROUP, "group"),
}


def names_of(admin: Admin, type_: str) -> list[str]:
    """Every entity of a type that has configs."""
    if type_ == "topics":
        return admin.topic_names()
    if type_ in ("brokers", "broker-loggers"):
        return [str(node.id) for node in admin.describe_cluster().nodes]
    with admin.wire() as client:
        return wire_admin.list_config_resources(client, KINDS[type_].kind)


def config_entries(admin: Admin, entity: Entity) -> list[ConfigEntry]:
    with _broker_for(admin, entity) as client:
        return wire_admin.describe_configs(client, KINDS[entity.type].kind, entity.name or "")


def change_configs(admin: Admin, entity: Entity, changes: Changes) -> None:
    with _broker_for(admin, entity) as client:
        kind = KINDS[entity.type].kind
        wire_admin.alter_configs(client, kind, entity.name or "", add=changes.add, delete=changes.delete)


def _broker_for(admin: Admin, entity: Entity) -> WireClient:
    """A client of the broker to ask: a broker's own configs are available only from that broker."""
    is_one_broker = entity.type in ("brokers", "broker-loggers") and entity.name is not None
    return admin.wire(int(entity.name)) if is_one_broker and entity.name else admin.wire()
