"""The metadata image: the cluster's whole metadata at one offset of the metadata log.

Immutable. Records are applied in groups by `controller.replay`, which returns the next image and what
changed; recovery, live changes and (later) replicated changes all use it. Start at `MetadataImage`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.core.ids import TopicPartition

if TYPE_CHECKING:
    from moldau.protocol.metadata_records import MetadataRecord

__all__ = [
    "CLUSTER_DEFAULT",
    "NO_LEADER",
    "BrokerImage",
    "ConfigResource",
    "ConfigResourceType",
    "Endpoint",
    "MetadataImage",
    "PartitionImage",
    "TopicImage",
]

NO_LEADER = -1
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

_NOTHING: Mapping[Any, Any] = MappingProxyType({})


class ConfigResourceType(IntEnum):
    """The kinds of resource that have settings, with the numbers that ConfigRecord and the config APIs use."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    type: int
    name: str


CLUSTER_DEFAULT = ConfigResource(ConfigResourceType.BROKER, "")
"""The resource whose settings apply to every broker that has none of its own."""


class Endpoint(NamedTuple):
    """The address of a broker on one of its listeners."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


class PartitionImage(NamedTuple):
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    directories: tuple[uuid.UUID | None, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


class TopicImage(NamedTuple):
    name: str
    topic_id: uuid.UUID
    partitions: Mapping[int, PartitionImage]

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS


class BrokerImage(NamedTuple):
    node_id: int
    epoch: int
    """The offset of its registration record: a newer incarnation has a higher one."""
    incarnation_id: uuid.UUID | None
    endpoints: Mapping[str, Endpoint]
    features: Mapping[str, tuple[int, int]] = _NOTHING
    rack: str | None = None
    is_fenced: bool = True
    is_in_controlled_shutdown: bool = False
    log_dirs: tuple[uuid.UUID, ...] = ()

    @property
    def is_active(self) -> bool:
        return not (self.is_fenced or self.is_in_controlled_shutdown)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataImage:
    offset: int = -1
    """The offset of the last record applied; -1 before the first."""
    epoch: int = 0
    """The epoch of the controller that wrote it."""
    topics: Mapping[str, TopicImage] = field(default_factory=lambda: _NOTHING)
    topic_names: Mapping[uuid.UUID, str] = field(default_factory=lambda: _NOTHING)
    brokers: Mapping[int, BrokerImage] = field(default_factory=lambda: _NOTHING)
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=lambda: _NOTHING)
    features: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    next_producer_id: int = 0
    kept: Mapping[tuple[Any, ...], MetadataRecord] = field(default_factory=lambda: _NOTHING)
    """Whole records that nothing interprets yet, by `(kind, …)`: credentials, ACLs, quotas, tokens, controllers.

    The keys are made in `_APPLY` of `controller.replay`; a later record with the same key replaces one.
    """

    def topic_by_id(self, topic_id: uuid.UUID | None) -> TopicImage | None:
        if topic_id is None:
            return None
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics[name]

    def partition(self, topic: str, partition: int) -> PartitionImage | None:
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(partition)

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionImage]]:
        for topic in self.topics.values():
            for number, partition in topic.partitions.items():
                yield TopicPartition(topic.name, number), partition

    def topic_config(self, topic: str) -> Mapping[str, str]:
        """The settings of the topic itself, without defaults."""
        return self.configs.get(ConfigResource(ConfigResourceType.TOPIC, topic), _NOTHING)

    def broker_config(self, node_id: int) -> Mapping[str, str]:
        """The dynamic settings of one broker."""
        return self.configs.get(ConfigResource(ConfigResourceType.BROKER, str(node_id)), _NOTHING)

    @property
    def cluster_config(self) -> Mapping[str, str]:
        """The dynamic settings for all brokers."""
        return self.configs.get(CLUSTER_DEFAULT, _NOTHING)

    def alive_brokers(self) -> list[BrokerImage]:
        """The unfenced brokers, which metadata responses may list, sorted by id."""
        return [self.brokers[node_id] for node_id in sorted(self.brokers) if not self.brokers[node_id].is_fenced]

    def is_alive(self, node_id: int) -> bool:
        broker = self.brokers.get(node_id)
        return broker is not None and not broker.is_fenced
