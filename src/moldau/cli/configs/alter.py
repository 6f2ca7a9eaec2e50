"""kafka-configs --alter for topics, brokers and the other resources that have configs."""

from __future__ import annotations

from moldau.cli.configs.changes import Changes
from moldau.cli.configs.describe import own_overrides
from moldau.cli.configs.entities import Entity
from moldau.cli.configs.resources import KINDS, change_configs
from moldau.cli.options import UsageError
from moldau.cli.tool import ToolError, say
from moldau.client.admin import Admin

__all__ = ["alter"]


def alter(admin: Admin, entity: Entity, changes: Changes, *, is_zookeeper: bool) -> None:
    if entity.name is None and not entity.is_default:
        raise UsageError(f"an entity-name must be specified with --alter of {entity.type}")
    if is_zookeeper:
        _refuse_absent(admin, entity, changes)
    change_configs(admin, entity, changes)
    if is_zookeeper:
        say(f"Completed updating config for entity: {entity.zookeeper_words}.")
    elif entity.is_default:
        say(f"Completed updating default config for {entity.type} in the cluster.")
    else:
        say(f"Completed updating config for {KINDS[entity.type].word} {entity.name}.")


def _refuse_absent(admin: Admin, entity: Entity, changes: Changes) -> None:
    """Refuse to delete configs that are not set, as ZooKeeper-mode tools did; brokers accept it."""
    absent = sorted(set(changes.delete) - set(own_overrides(admin, entity))) if changes.delete else []
    if absent:
        raise ToolError(f"Invalid config(s): {','.join(absent)}")
