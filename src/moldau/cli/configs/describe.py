"""kafka-configs --describe for topics, brokers and the other resources that have configs."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.cli.configs.entities import Entity
from moldau.cli.configs.resources import KINDS, config_entries, names_of
from moldau.cli.options import Parsed
from moldau.cli.tool import say
from moldau.client.admin import Admin, ConfigEntry
from moldau.client.errors import ClientError
from moldau.core.errors import ErrorCode
from moldau.core.java_order import java_hash_order

__all__ = ["describe", "describe_for_zookeeper", "entry_line"]

_OWN_LEVEL = {
    "topics": "DYNAMIC_TOPIC_CONFIG",
    "brokers": "DYNAMIC_BROKER_CONFIG",
    "broker-loggers": "DYNAMIC_BROKER_LOGGER_CONFIG",
    "client-metrics": "CLIENT_METRICS_CONFIG",
    "groups": "GROUP_CONFIG",
}
DEFAULT_LEVEL = "DYNAMIC_DEFAULT_BROKER_CONFIG"


def describe(admin: Admin, parsed: Parsed, entity: Entity) -> None:
    for target in _targets(admin, entity):
        if target.type == "topics" and target.name not in admin.topic_names():
            say(f"The topic '{target.name}' doesn't exist and doesn't have dynamic config.")
            return
        entries = config_entries(admin, target)
        say(_title(target, is_all=parsed.has("all")))
        for entry in _entries_to_show(target, entries, is_all=parsed.has("all")):
            say(entry_line(entry))


def describe_for_zookeeper(admin: Admin, entity: Entity) -> None:
    """Print one line per entity, in the format of the ZooKeeper-mode tools."""
    for target in _targets(admin, entity):
        overrides = own_overrides(admin, target)
        listed = ",".join(f"{key}={overrides[key]}" for key in java_hash_order(overrides))
        say(f"Configs for {target.zookeeper_words} are {listed}")


def own_overrides(admin: Admin, entity: Entity) -> dict[str, str]:
    """The configs set on this entity itself; empty for a topic that does not exist."""
    try:
        entries = config_entries(admin, entity)
    except ClientError as error:
        if error.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return {}
        raise
    return {entry.name: entry.value or "" for entry in _entries_to_show(entity, entries, is_all=False)}


def entry_line(entry: ConfigEntry) -> str:
    synonyms = ", ".join(f"{s.source}:{s.name}={_text(s.value)}" for s in entry.synonyms)
    sensitive = "true" if entry.is_sensitive else "false"
    return f"  {entry.name}={_text(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _targets(admin: Admin, entity: Entity) -> list[Entity]:
    """The entity, or all of its type if it has no name; for brokers, also the cluster's default."""
    if entity.name is not None or entity.is_default:
        return [entity]
    targets = [Entity(entity.type, name) for name in names_of(admin, entity.type)]
    return [*targets, Entity("brokers", is_default=True)] if entity.type == "brokers" else targets


def _entries_to_show(entity: Entity, entries: Sequence[ConfigEntry], *, is_all: bool) -> list[ConfigEntry]:
    level = DEFAULT_LEVEL if entity.is_default else _OWN_LEVEL[entity.type]
    shown = [entry for entry in entries if is_all or entity.is_default or entry.source == level]
    return sorted(shown, key=lambda entry: entry.name)


def _title(entity: Entity, *, is_all: bool) -> str:
    if entity.is_default:
        return "Default configs for brokers in the cluster are:"
    return f"{'All' if is_all else 'Dynamic'} configs for {KINDS[entity.type].word} {entity.name} are:"


def _text(value: str | None) -> str:
    return "null" if value is None else value
