"""Topics: decides from the image alone which records are needed to create, grow and delete them.

Each function returns the records to commit and, for each item, the result to return once they are
committed. Nothing is changed here. Start at `decide_topic_creation`.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from moldau.controller.decisions.placement import UsableBroker, place
from moldau.controller.errors import RefusedError, refusal_of
from moldau.controller.image import BrokerImage, ConfigResourceType, MetadataImage, TopicImage
from moldau.controller.topic_names import METADATA_TOPIC, check_topic_name, first_collision
from moldau.core.config import BrokerConfig, parse_topic_overrides
from moldau.core.config.sections import TopicSettings
from moldau.core.errors import ErrorCode, MoldauError
from moldau.core.ids import random_uuid
from moldau.protocol.metadata_records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

__all__ = [
    "Assignment",
    "MorePartitions",
    "NewTopic",
    "TopicDecision",
    "TopicRef",
    "TopicResult",
    "decide_partition_creation",
    "decide_topic_creation",
    "decide_topic_deletion",
]

PARTITIONS_PER_REQUEST = 10_000
BROKER_DEFAULT = -1


class Assignment(NamedTuple):
    partition: int
    replicas: tuple[int, ...]


class NewTopic(NamedTuple):
    name: str
    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    assignments: tuple[Assignment, ...] = ()
    configs: Mapping[str, str | None] = MappingProxyType({})


class MorePartitions(NamedTuple):
    name: str
    total: int
    """The partition count after the change."""
    assignments: tuple[tuple[int, ...], ...] | None = None
    """Replicas of each new partition, or `None` to let the controller place them."""


class TopicRef(NamedTuple):
    """A topic by name or by id, as in DeleteTopics v6."""

    name: str | None
    topic_id: uuid.UUID | None = None


class TopicResult(NamedTuple):
    name: str | None
    topic_id: uuid.UUID | None = None
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = MappingProxyType({})


Named = TypeVar("Named", NewTopic, MorePartitions)


class TopicDecision(NamedTuple):
    records: list[MetadataRecord]
    results: list[TopicResult]


# --- creating ---------------------------------------------------------------------------------------


def decide_topic_creation(
    image: MetadataImage,
    topics: Sequence[NewTopic],
    config: BrokerConfig,
    *,
    random: Random,
    new_id: Callable[[], uuid.UUID] = random_uuid,
) -> TopicDecision:
    """Create each valid topic; the result of an invalid one has the error."""
    decision = TopicDecision([], [])
    asked = Counter(topic.name for topic in topics)
    metric_names = _metric_names(image) if any("." in name or "_" in name for name in asked) else {}
    partitions = 0
    for topic in _each_once(topics):
        try:
            if asked[topic.name] > 1:
                raise RefusedError(ErrorCode.INVALID_REQUEST, f"Topic '{topic.name}' is in the request more than once.")
            _check_new_name(topic.name, image, metric_names)
            records, result = _creation_records(image, topic, config, random, new_id)
            partitions += result.partitions
            if partitions > PARTITIONS_PER_REQUEST:
                raise RefusedError(
                    ErrorCode.POLICY_VIOLATION, f"More than {PARTITIONS_PER_REQUEST} partitions in one request."
                )
        except MoldauError as error:
            code, message = refusal_of(error)
            decision.results.append(TopicResult(name=topic.name, error=code, message=message))
            continue
        metric_names.setdefault(topic.name.replace(".", "_"), topic.name)
        decision.records.extend(records)
        decision.results.append(result)
    return decision


def _each_once(topics: Sequence[Named]) -> Iterable[Named]:
    """The topics without duplicate names; the last one of a name counts."""
    return {topic.name: topic for topic in topics}.values()


def _metric_names(image: MetadataImage) -> dict[str, str]:
    return {name.replace(".", "_"): name for name in image.topics}


def _check_new_name(name: str, image: MetadataImage, metric_names: Mapping[str, str]) -> None:
    check_topic_name(name)
    if name == METADATA_TOPIC:
        raise RefusedError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"'{name}' is an internal topic of the cluster.")
    if name in image.topics:
        raise RefusedError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    rival = metric_names.get(name.replace(".", "_"))
    if rival is not None and first_collision(name, [rival]) is not None:
        raise RefusedError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topics: {rival}")


def _creation_records(
    image: MetadataImage, topic: NewTopic, config: BrokerConfig, random: Random, new_id: Callable[[], uuid.UUID]
) -> tuple[list[MetadataRecord], TopicResult]:
    parse_topic_overrides(topic.configs, config)
    configs = {name: value for name, value in topic.configs.items() if value is not None}
    replicas = _replicas_of_new_topic(image, topic, config, random)
    topic_id = new_id()
    records: list[MetadataRecord] = [TopicRecord(name=topic.name, topic_id=topic_id)]
    records += [
        ConfigRecord(resource_type=ConfigResourceType.TOPIC, resource_name=topic.name, name=name, value=value)
        for name, value in configs.items()
    ]
    records += [_new_partition(image, topic_id, number, one) for number, one in enumerate(replicas)]
    result = TopicResult(
        name=topic.name,
        topic_id=topic_id,
        partitions=len(replicas),
        replication_factor=len(replicas[0]),
        configs=configs,
    )
    return records, result


def _replicas_of_new_topic(
    image: MetadataImage, topic: NewTopic, config: BrokerConfig, random: Random
) -> list[tuple[int, ...]]:
    if topic.assignments:
        return _manual_assignment(image, topic)
    factor, partitions = topic.replication_factor, topic.partitions
    if factor == 0 or factor < BROKER_DEFAULT:
        raise RefusedError(
            ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0, or -1 for the default."
        )
    if partitions == 0 or partitions < BROKER_DEFAULT:
        raise RefusedError(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0, or -1 for the default."
        )
    if partitions == BROKER_DEFAULT:
        partitions = config.section(TopicSettings).num_partitions
    if partitions > PARTITIONS_PER_REQUEST:
        raise RefusedError(ErrorCode.POLICY_VIOLATION, f"More than {PARTITIONS_PER_REQUEST} partitions in one request.")
    if factor == BROKER_DEFAULT:
        factor = config.section(TopicSettings).default_replication_factor
    return _place_replicas(image, partitions, factor, random)


def _place_replicas(
    image: MetadataImage, partitions: int, replication_factor: int, random: Random
) -> list[tuple[int, ...]]:
    usable = [_usable(broker) for broker in image.brokers.values() if not broker.is_in_controlled_shutdown]
    placed = place(usable, partitions=partitions, replication_factor=replication_factor, random=random)
    return [tuple(replicas) for replicas in placed]


def _usable(broker: BrokerImage) -> UsableBroker:
    return UsableBroker(broker.node_id, broker.rack, broker.is_fenced)


def _manual_assignment(image: MetadataImage, topic: NewTopic) -> list[tuple[int, ...]]:
    if topic.replication_factor != BROKER_DEFAULT or topic.partitions != BROKER_DEFAULT:
        raise RefusedError(
            ErrorCode.INVALID_REQUEST,
            "Give either an assignment of replicas, or a number of partitions and a replication factor, not both.",
        )
    by_number = {assignment.partition: assignment.replicas for assignment in topic.assignments}
    if sorted(by_number) != list(range(len(topic.assignments))):
        raise RefusedError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Assigned partitions must be numbered from 0 on, each once."
        )
    factor = len(by_number[0])
    for number, replicas in by_number.items():
        _check_assignment(image, number, replicas, factor)
    return [by_number[number] for number in range(len(by_number))]


def _check_assignment(image: MetadataImage, partition: int, replicas: tuple[int, ...], factor: int) -> None:
    problem = None
    if not replicas:
        problem = "has no replicas"
    elif len(set(replicas)) != len(replicas):
        problem = f"names a broker twice: {list(replicas)}"
    elif len(replicas) != factor:
        problem = f"has {len(replicas)} replicas, the others have {factor}"
    elif any(node_id not in image.brokers for node_id in replicas):
        problem = f"names a broker that is not registered: {list(replicas)}"
    elif not any(image.brokers[node_id].is_active for node_id in replicas):
        problem = f"names only brokers that are fenced or shutting down: {list(replicas)}"
    if problem is not None:
        raise RefusedError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The assignment of partition {partition} {problem}.")


def _new_partition(
    image: MetadataImage, topic_id: uuid.UUID, number: int, replicas: tuple[int, ...]
) -> PartitionRecord:
    isr = tuple(node_id for node_id in replicas if image.brokers[node_id].is_active)
    return PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple(_directory(image.brokers[node_id]) for node_id in replicas),
    )


def _directory(broker: BrokerImage) -> uuid.UUID | None:
    """The broker's log directory if it has only one; a broker with several reports its choice later."""
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else None


# --- growing ----------------------------------------------------------------------------------------


def decide_partition_creation(
    image: MetadataImage, topics: Sequence[MorePartitions], *, random: Random
) -> TopicDecision:
    decision = TopicDecision([], [])
    asked = Counter(topic.name for topic in topics)
    for topic in _each_once(topics):
        try:
            if asked[topic.name] > 1:
                raise RefusedError(ErrorCode.INVALID_REQUEST, f"Topic '{topic.name}' is in the request more than once.")
            decision.records.extend(_growth_records(image, topic, random))
        except MoldauError as error:
            code, message = refusal_of(error)
            decision.results.append(TopicResult(name=topic.name, error=code, message=message))
            continue
        decision.results.append(TopicResult(name=topic.name, partitions=topic.total))
    return decision


def _growth_records(image: MetadataImage, topic: MorePartitions, random: Random) -> Iterable[MetadataRecord]:
    found = image.topics.get(topic.name)
    if found is None:
        raise RefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{topic.name}' does not exist.")
    present = len(found.partitions)
    _check_growth(topic, present)
    replicas = _replicas_of_new_partitions(image, found, topic, random)
    return [_new_partition(image, found.topic_id, present + index, assigned) for index, assigned in enumerate(replicas)]


def _check_growth(topic: MorePartitions, present: int) -> None:
    if topic.total == present:
        raise RefusedError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if topic.total < present:
        raise RefusedError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); {topic.total} would not be an increase.",
        )
    if topic.total - present > PARTITIONS_PER_REQUEST:
        raise RefusedError(ErrorCode.POLICY_VIOLATION, f"More than {PARTITIONS_PER_REQUEST} partitions in one request.")
    if topic.assignments is not None and len(topic.assignments) != topic.total - present:
        raise RefusedError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{topic.total - present} partition(s) are to be added, but {len(topic.assignments)} are assigned.",
        )


def _replicas_of_new_partitions(
    image: MetadataImage, found: TopicImage, topic: MorePartitions, random: Random
) -> Sequence[tuple[int, ...]]:
    factor = len(found.partitions[0].replicas)
    if topic.assignments is None:
        return _place_replicas(image, topic.total - len(found.partitions), factor, random)
    for index, replicas in enumerate(topic.assignments):
        _check_assignment(image, len(found.partitions) + index, replicas, factor)
    return topic.assignments


# --- deleting ---------------------------------------------------------------------------------------


def decide_topic_deletion(image: MetadataImage, topics: Sequence[TopicRef]) -> TopicDecision:
    decision = TopicDecision([], [])
    resolved = [_find_topic(image, ref) for ref in topics]
    asked = Counter(result.name for result in resolved if result.name is not None)
    twice = {name for name, count in asked.items() if count > 1}
    for result in resolved:
        if result.name in twice:
            continue
        if result.error is ErrorCode.NONE:
            decision.records.append(RemoveTopicRecord(topic_id=result.topic_id))
        decision.results.append(result)
    decision.results.extend(
        TopicResult(name=name, error=ErrorCode.INVALID_REQUEST, message=f"Topic '{name}' is named more than once.")
        for name in sorted(twice)
    )
    return decision


def _find_topic(image: MetadataImage, ref: TopicRef) -> TopicResult:
    if (ref.name is None) == (ref.topic_id is None):
        return TopicResult(
            name=ref.name,
            topic_id=ref.topic_id,
            error=ErrorCode.INVALID_REQUEST,
            message="Name a topic by its name or by its id, and not by both.",
        )
    if ref.name is None:
        found = image.topic_by_id(ref.topic_id)
        if found is None:
            return TopicResult(
                name=None, topic_id=ref.topic_id, error=ErrorCode.UNKNOWN_TOPIC_ID, message="No topic has this id."
            )
    else:
        found = image.topics.get(ref.name)
        if found is None:
            return TopicResult(
                name=ref.name,
                error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                message=f"Topic '{ref.name}' does not exist.",
            )
    return TopicResult(name=found.name, topic_id=found.topic_id)
