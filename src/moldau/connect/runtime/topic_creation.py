"""Creates topics for source connectors, as `topic.creation.*` says. Start at `TopicCreation`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from moldau.client.admin import Admin
from moldau.client.errors import ClientError
from moldau.connect.runtime.record_steps import below, listed
from moldau.core.errors import ErrorCode

__all__ = ["CreationGroup", "TopicCreation", "creation_groups"]

_OWN = ("partitions", "replication.factor", "include", "exclude")


@dataclass(frozen=True, slots=True)
class CreationGroup:
    """How the topics of a group are created; -1 leaves a number to the broker."""

    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def holds(self, topic: str) -> bool:
        return any(re.fullmatch(one, topic) for one in self.include) and not any(
            re.fullmatch(one, topic) for one in self.exclude
        )


def creation_groups(config: Mapping[str, str]) -> tuple[CreationGroup, ...]:
    """The groups of a configuration, the default one last; none if the configuration leaves it to the brokers."""
    default = below("topic.creation.default.", config)
    if "partitions" not in default or "replication.factor" not in default:
        return ()
    groups = []
    for name in (*(one for one in listed(config.get("topic.creation.groups")) if one != "default"), "default"):
        own = below(f"topic.creation.{name}.", config)
        groups.append(
            CreationGroup(
                partitions=int(own.get("partitions", default["partitions"])),
                replication_factor=int(own.get("replication.factor", default["replication.factor"])),
                configs={key: text for key, text in own.items() if key not in _OWN},
                include=(".*",) if name == "default" else tuple(listed(own.get("include"))),
                exclude=() if name == "default" else tuple(listed(own.get("exclude"))),
            )
        )
    return tuple(groups)


class TopicCreation:
    """Remembers the topics it has seen. `servers` and `properties` are those of the task's admin client."""

    def __init__(self, groups: tuple[CreationGroup, ...], servers: str, properties: Mapping[str, str]) -> None:
        self._groups = groups
        self._servers = servers
        self._properties = properties
        self._seen: set[str] = set()
        self._admin: Admin | None = None

    def ensure(self, topic: str) -> None:
        """Create a topic that is not there."""
        if not self._groups or topic in self._seen:
            return
        if self._admin is None:
            self._admin = Admin(self._servers, self._properties)
        if topic not in self._admin.topic_names():
            self._create(self._admin, topic)
        self._seen.add(topic)

    def _create(self, admin: Admin, topic: str) -> None:
        group = next(one for one in self._groups if one.holds(topic))
        try:
            admin.create_topic(
                topic,
                partitions=group.partitions if group.partitions > 0 else None,
                replication_factor=group.replication_factor if group.replication_factor > 0 else None,
                configs=dict(group.configs),
            )
        except ClientError as error:
            if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
