"""Replay: applies records to an image and returns the next image with what changed.

All metadata changes go through it, whether the records come from a snapshot, from the log at startup or
from the controller. Maps are copied once per group of records, so replaying a group of thousands stays cheap.
Start at `replay_records`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from moldau.controller.image import (
    BrokerImage,
    ConfigResource,
    ConfigResourceType,
    Endpoint,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from moldau.core.ids import TopicPartition
from moldau.protocol import metadata_records as records
from moldau.protocol.metadata_records import MetadataRecord

__all__ = ["ImageDelta", "apply_partition_change", "replay_records"]

NO_LEADER_CHANGE = records.PartitionChangeRecord.LEADER_UNCHANGED
NO_CHANGE = 0

Item = TypeVar("Item")


@dataclass(slots=True)
class ImageDelta:
    """What a group of records changed, for subscribers: names only; the states are in `image`."""

    before: MetadataImage
    image: MetadataImage
    deleted_topics: list[TopicImage] = field(default_factory=list)
    """Their state before; a topic deleted and created again under the same name is here and in `partitions`."""
    partitions: set[TopicPartition] = field(default_factory=set)
    """New or changed partitions that still exist."""
    configs: set[ConfigResource] = field(default_factory=set)
    brokers: set[int] = field(default_factory=set)
    features: set[str] = field(default_factory=set)


def replay_records(image: MetadataImage, group: Iterable[MetadataRecord], *, offset: int, epoch: int) -> ImageDelta:
    """Apply a group that ends at `offset`. Raises `LookupError` for a record type this release does not know."""
    draft = _Draft(image)
    for record in group:
        _APPLY[type(record)](draft, record)
    return draft.finish(offset, epoch)


class _Draft:
    """An image being built: maps are copied on the first write, the others are shared with the old image."""

    def __init__(self, image: MetadataImage) -> None:
        self.before = image
        self.delta = ImageDelta(image, image)
        self.next_producer_id = image.next_producer_id
        self._maps: dict[str, dict[Any, Any]] = {}
        self._partitions: dict[str, dict[int, PartitionImage]] = {}

    def read(self, name: str) -> Mapping[Any, Any]:
        found = self._maps.get(name)
        if found is not None:
            return found
        unchanged: Mapping[Any, Any] = getattr(self.before, name)
        return unchanged

    def write(self, name: str) -> dict[Any, Any]:
        found = self._maps.get(name)
        if found is None:
            found = self._maps[name] = dict(getattr(self.before, name))
        return found

    def topic(self, topic_id: uuid.UUID | None) -> TopicImage:
        name = self.read("topic_names")[topic_id]
        topic: TopicImage = self.read("topics")[name]
        return topic

    def partitions_of(self, topic: TopicImage) -> dict[int, PartitionImage]:
        """The topic's partitions in the draft, as a dict that may be changed."""
        found = self._partitions.get(topic.name)
        if found is None:
            found = self._partitions[topic.name] = dict(topic.partitions)
            self.write("topics")[topic.name] = topic._replace(partitions=found)
        return found

    def forget_partitions(self, topic: str) -> None:
        self._partitions.pop(topic, None)
        self.delta.partitions = {one for one in self.delta.partitions if one.topic != topic}

    def finish(self, offset: int, epoch: int) -> ImageDelta:
        maps = {name: self.read(name) for name in ("topics", "topic_names", "brokers", "configs", "features", "kept")}
        self.delta.image = MetadataImage(offset=offset, epoch=epoch, next_producer_id=self.next_producer_id, **maps)
        return self.delta


# --- topics -----------------------------------------------------------------------------------------


def _topic(draft: _Draft, record: records.TopicRecord) -> None:
    if record.topic_id is None:
        raise records.MalformedRecordError(f"topic {record.name!r} without an id")
    draft.write("topics")[record.name] = TopicImage(record.name, record.topic_id, {})
    draft.write("topic_names")[record.topic_id] = record.name


def _partition(draft: _Draft, record: records.PartitionRecord) -> None:
    topic = draft.topic(record.topic_id)
    draft.partitions_of(topic)[record.partition_id] = PartitionImage(
        replicas=record.replicas,
        isr=record.isr,
        leader=record.leader,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        adding_replicas=record.adding_replicas,
        removing_replicas=record.removing_replicas,
        leader_recovery_state=record.leader_recovery_state,
        directories=record.directories,
        eligible_leader_replicas=record.eligible_leader_replicas or (),
        last_known_elr=record.last_known_elr or (),
    )
    draft.delta.partitions.add(TopicPartition(topic.name, record.partition_id))


def _partition_change(draft: _Draft, record: records.PartitionChangeRecord) -> None:
    topic = draft.topic(record.topic_id)
    partitions = draft.partitions_of(topic)
    partitions[record.partition_id] = apply_partition_change(partitions[record.partition_id], record)
    draft.delta.partitions.add(TopicPartition(topic.name, record.partition_id))


def apply_partition_change(partition: PartitionImage, record: records.PartitionChangeRecord) -> PartitionImage:
    """Return the changed partition. A record that names a leader, even the current one, starts a new leader epoch."""
    keeps_leader = record.leader == NO_LEADER_CHANGE
    return PartitionImage(
        replicas=_given_or_present(record.replicas, partition.replicas),
        isr=_given_or_present(record.isr, partition.isr),
        leader=partition.leader if keeps_leader else record.leader,
        leader_epoch=partition.leader_epoch if keeps_leader else partition.leader_epoch + 1,
        partition_epoch=partition.partition_epoch + 1,
        adding_replicas=_given_or_present(record.adding_replicas, partition.adding_replicas),
        removing_replicas=_given_or_present(record.removing_replicas, partition.removing_replicas),
        leader_recovery_state=partition.leader_recovery_state
        if record.leader_recovery_state < 0
        else record.leader_recovery_state,
        directories=_given_or_present(record.directories, partition.directories),
        eligible_leader_replicas=_given_or_present(record.eligible_leader_replicas, partition.eligible_leader_replicas),
        last_known_elr=_given_or_present(record.last_known_elr, partition.last_known_elr),
    )


def _given_or_present(given: tuple[Item, ...] | None, present: tuple[Item, ...]) -> tuple[Item, ...]:
    return present if given is None else given


def _remove_topic(draft: _Draft, record: records.RemoveTopicRecord) -> None:
    """Remove a topic and its settings; ACLs and quotas stay."""
    topic = draft.topic(record.topic_id)
    if topic.name in draft.before.topics and draft.before.topics[topic.name].topic_id == record.topic_id:
        draft.delta.deleted_topics.append(draft.before.topics[topic.name])
    draft.forget_partitions(topic.name)
    del draft.write("topics")[topic.name]
    del draft.write("topic_names")[record.topic_id]
    resource = ConfigResource(ConfigResourceType.TOPIC, topic.name)
    if resource in draft.read("configs"):
        del draft.write("configs")[resource]
        draft.delta.configs.add(resource)


def _clear_elr(draft: _Draft, record: records.ClearElrRecord) -> None:
    """Forget who else could lead, except where nobody leads: nothing more was committed there since."""
    for topic in [one for one in draft.read("topics").values() if record.topic_name in ("", one.name)]:
        for number, partition in topic.partitions.items():
            if partition.leader >= 0 and (partition.eligible_leader_replicas or partition.last_known_elr):
                cleared = records.PartitionChangeRecord(
                    partition_id=number, topic_id=topic.topic_id, eligible_leader_replicas=(), last_known_elr=()
                )
                _partition_change(draft, cleared)


# --- brokers ----------------------------------------------------------------------------------------


def _register_broker(draft: _Draft, record: records.RegisterBrokerRecord) -> None:
    draft.write("brokers")[record.broker_id] = BrokerImage(
        node_id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        endpoints={
            one.name: Endpoint(one.name, one.host, one.port, one.security_protocol) for one in record.end_points
        },
        features={one.name: (one.min_supported_version, one.max_supported_version) for one in record.features},
        rack=record.rack,
        is_fenced=record.fenced,
        is_in_controlled_shutdown=record.in_controlled_shutdown,
        log_dirs=_known_directories(record.log_dirs),
    )
    draft.delta.brokers.add(record.broker_id)


def _known_directories(directories: Iterable[uuid.UUID | None]) -> tuple[uuid.UUID, ...]:
    return tuple(directory for directory in directories if directory is not None)


def _unregister_broker(draft: _Draft, record: records.UnregisterBrokerRecord) -> None:
    draft.write("brokers").pop(record.broker_id, None)
    draft.delta.brokers.add(record.broker_id)


def _broker_registration_change(draft: _Draft, record: records.BrokerRegistrationChangeRecord) -> None:
    broker: BrokerImage = draft.read("brokers")[record.broker_id]
    draft.write("brokers")[record.broker_id] = broker._replace(
        is_fenced=broker.is_fenced if record.fenced == NO_CHANGE else record.fenced > 0,
        is_in_controlled_shutdown=broker.is_in_controlled_shutdown or record.in_controlled_shutdown > 0,
        log_dirs=_known_directories(record.log_dirs) or broker.log_dirs,
    )
    draft.delta.brokers.add(record.broker_id)


def _fence_broker(draft: _Draft, record: records.FenceBrokerRecord) -> None:
    _set_fenced(draft, record.id, True)


def _unfence_broker(draft: _Draft, record: records.UnfenceBrokerRecord) -> None:
    _set_fenced(draft, record.id, False)


def _set_fenced(draft: _Draft, node_id: int, is_fenced: bool) -> None:
    broker: BrokerImage = draft.read("brokers")[node_id]
    draft.write("brokers")[node_id] = broker._replace(is_fenced=is_fenced)
    draft.delta.brokers.add(node_id)


# --- settings ---------------------------------------------------------------------------------------


def _config(draft: _Draft, record: records.ConfigRecord) -> None:
    resource = ConfigResource(record.resource_type, record.resource_name)
    settings = dict(draft.read("configs").get(resource, {}))
    if record.value is None:
        settings.pop(record.name, None)
    else:
        settings[record.name] = record.value
    configs = draft.write("configs")
    if settings:
        configs[resource] = settings
    else:
        configs.pop(resource, None)
    draft.delta.configs.add(resource)


def _feature_level(draft: _Draft, record: records.FeatureLevelRecord) -> None:
    # A level of 0 is kept, too: it tells a feature that was disabled from one that the log's writer did not know.
    draft.write("features")[record.name] = record.feature_level
    draft.delta.features.add(record.name)


def _producer_ids(draft: _Draft, record: records.ProducerIdsRecord) -> None:
    draft.next_producer_id = record.next_producer_id


# --- records stored as they are ---------------------------------------------------------------------


def _keep(key: Callable[[Any], tuple[Any, ...]]) -> Callable[[_Draft, Any], None]:
    def apply(draft: _Draft, record: Any) -> None:
        draft.write("kept")[key(record)] = record

    return apply


def _drop(key: Callable[[Any], tuple[Any, ...]]) -> Callable[[_Draft, Any], None]:
    def apply(draft: _Draft, record: Any) -> None:
        draft.write("kept").pop(key(record), None)

    return apply


def _client_quota(draft: _Draft, record: records.ClientQuotaRecord) -> None:
    entity = tuple(sorted((one.entity_type, one.entity_name or "") for one in record.entity))
    key = ("quota", entity, record.key)
    if record.remove:
        draft.write("kept").pop(key, None)
    else:
        draft.write("kept")[key] = record


def _nothing(draft: _Draft, record: Any) -> None:
    """Ignore a record that does not change the image."""


_APPLY: dict[type, Callable[[_Draft, Any], None]] = {
    records.RegisterBrokerRecord: _register_broker,
    records.UnregisterBrokerRecord: _unregister_broker,
    records.TopicRecord: _topic,
    records.PartitionRecord: _partition,
    records.ConfigRecord: _config,
    records.PartitionChangeRecord: _partition_change,
    records.FenceBrokerRecord: _fence_broker,
    records.UnfenceBrokerRecord: _unfence_broker,
    records.RemoveTopicRecord: _remove_topic,
    records.DelegationTokenRecord: _keep(lambda record: ("token", record.token_id)),
    records.RemoveDelegationTokenRecord: _drop(lambda record: ("token", record.token_id)),
    records.UserScramCredentialRecord: _keep(lambda record: ("scram", record.name, record.mechanism)),
    records.RemoveUserScramCredentialRecord: _drop(lambda record: ("scram", record.name, record.mechanism)),
    records.FeatureLevelRecord: _feature_level,
    records.ClientQuotaRecord: _client_quota,
    records.ProducerIdsRecord: _producer_ids,
    records.BrokerRegistrationChangeRecord: _broker_registration_change,
    records.AccessControlEntryRecord: _keep(lambda record: ("acl", record.id)),
    records.RemoveAccessControlEntryRecord: _drop(lambda record: ("acl", record.id)),
    records.NoOpRecord: _nothing,
    records.ZkMigrationStateRecord: _nothing,
    records.BeginTransactionRecord: _nothing,
    records.EndTransactionRecord: _nothing,
    records.AbortTransactionRecord: _nothing,
    records.RegisterControllerRecord: _keep(lambda record: ("controller", record.controller_id)),
    records.ClearElrRecord: _clear_elr,
}
