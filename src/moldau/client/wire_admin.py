"""Administration that librdkafka does not offer, as calls over `client.wire`.

Synonyms of broker configs, cluster-wide defaults, log directories, reassignments, quotas, transactions. Each function
takes a connection to the broker that must answer, such as the coordinator of a transactional id or the leader of a
partition. Start at `describe_configs` and `list_transactions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from moldau.client.admin import CONFIG_SOURCES, ConfigEntry, ConfigSynonym
from moldau.client.errors import ClientError
from moldau.client.wire import WireClient
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

__all__ = [
    "ActiveProducer",
    "CoordinatorKey",
    "LogDir",
    "QuotaEntity",
    "Reassignment",
    "Replica",
    "ResourceKind",
    "TransactionDescription",
    "TransactionListing",
    "abort_in_partition",
    "active_producers",
    "alter_client_quotas",
    "alter_configs",
    "describe_client_quotas",
    "describe_configs",
    "describe_log_dirs",
    "describe_transaction",
    "eligible_leader_replicas",
    "find_coordinator",
    "is_elr_enabled",
    "list_config_resources",
    "list_offsets",
    "list_reassignments",
    "list_transactions",
    "terminate_transaction",
    "transaction_coordinator",
    "unregister_broker",
]


SET, DELETE = 0, 1


class ResourceKind(IntEnum):
    """Kafka's numbers of config resource types."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


def raise_for(error_code: int, message: str | None = None, *, about: str = "") -> None:
    """Raise when a response carries an error; the broker's text is preferred to the bare name."""
    if error_code:
        code = ErrorCode(error_code) if error_code in ErrorCode._value2member_map_ else None
        text = message or (code.name if code is not None else f"error {error_code}")
        raise ClientError(f"{about}: {text}" if about else text, code)


# Coordinators


class CoordinatorKey(IntEnum):
    """Kafka's numbers of coordinator key types."""

    GROUP = 0
    TRANSACTION = 1


def find_coordinator(client: WireClient, key: str, kind: CoordinatorKey) -> int:
    """The broker that coordinates a group or a transactional id; any broker can answer."""
    request = Message(key=key, key_type=int(kind), coordinator_keys=[key])
    answer = client.send(ApiKey.FIND_COORDINATOR, request)
    found = answer.coordinators[0] if answer.coordinators else answer
    raise_for(found.error_code, found.error_message, about=key)
    node_id: int = found.node_id
    return node_id


# Configs


def describe_configs(client: WireClient, kind: ResourceKind, name: str) -> list[ConfigEntry]:
    """Every entry of one resource with its synonyms, in the broker's order."""
    resource = Message(resource_type=int(kind), resource_name=name, configuration_keys=None)
    request = Message(resources=[resource], include_synonyms=True, include_documentation=False)
    result = client.send(ApiKey.DESCRIBE_CONFIGS, request).results[0]
    raise_for(result.error_code, result.error_message)
    return [_config_entry(config) for config in result.configs]


def alter_configs(
    client: WireClient,
    kind: ResourceKind,
    name: str,
    *,
    add: Mapping[str, str],
    delete: Iterable[str],
    validate_only: bool = False,
) -> None:
    """Set and unset single keys, leaving the others as they are. The empty broker name is the cluster's default."""
    changes = [Message(name=key, config_operation=SET, value=value) for key, value in add.items()]
    changes += [Message(name=key, config_operation=DELETE, value=None) for key in delete]
    resource = Message(resource_type=int(kind), resource_name=name, configs=changes)
    answer = client.send(ApiKey.INCREMENTAL_ALTER_CONFIGS, Message(resources=[resource], validate_only=validate_only))
    result = answer.responses[0]
    raise_for(result.error_code, result.error_message)


def list_config_resources(client: WireClient, kind: ResourceKind) -> list[str]:
    answer = client.send(ApiKey.LIST_CONFIG_RESOURCES, Message(resource_types=[int(kind)]))
    raise_for(answer.error_code)
    return sorted(resource.resource_name for resource in answer.config_resources)


def _config_entry(config: Any) -> ConfigEntry:
    synonyms = tuple(
        ConfigSynonym(synonym.name, synonym.value, CONFIG_SOURCES.get(synonym.source, "UNKNOWN"))
        for synonym in config.synonyms
    )
    source = CONFIG_SOURCES.get(config.config_source, "UNKNOWN")
    return ConfigEntry(config.name, config.value, source, config.is_sensitive, config.read_only, synonyms)


# Log directories


@dataclass(frozen=True, slots=True)
class Replica:
    partition: TopicPartition
    size: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    path: str
    error: ErrorCode | None
    replicas: tuple[Replica, ...]
    total_bytes: int
    usable_bytes: int


def describe_log_dirs(client: WireClient, topics: Sequence[str] | None = None) -> list[LogDir]:
    """The log directories of the broker at the other end, with all replicas or only those of `topics`.

    Topics are filtered here, since the request would have to list every partition.
    """
    answer = client.send(ApiKey.DESCRIBE_LOG_DIRS, Message(topics=None))
    raise_for(answer.error_code)
    wanted = None if topics is None else set(topics)
    return [_log_dir(result, wanted) for result in answer.results]


def _log_dir(result: Any, wanted: set[str] | None) -> LogDir:
    replicas = tuple(
        Replica(
            TopicPartition(topic.name, partition.partition_index),
            partition.partition_size,
            partition.offset_lag,
            partition.is_future_key,
        )
        for topic in result.topics
        if wanted is None or topic.name in wanted
        for partition in topic.partitions
    )
    error = ErrorCode(result.error_code) if result.error_code else None
    return LogDir(result.log_dir, error, replicas, result.total_bytes, result.usable_bytes)


# Offsets


def list_offsets(client: WireClient, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | ClientError]:
    """As `Admin.try_list_offsets`, for the special timestamps librdkafka does not know; sent to one leader."""
    topics: dict[str, list[Message]] = {}
    for partition, timestamp in wanted.items():
        entry = Message(partition_index=partition.partition, current_leader_epoch=-1, timestamp=timestamp)
        topics.setdefault(partition.topic, []).append(entry)
    request = Message(
        replica_id=-1,
        isolation_level=0,
        topics=[Message(name=name, partitions=partitions) for name, partitions in topics.items()],
    )
    answer = client.send(ApiKey.LIST_OFFSETS, request)
    return {
        TopicPartition(topic.name, partition.partition_index): _offset(partition)
        for topic in answer.topics
        for partition in topic.partitions
    }


def _offset(partition: Any) -> int | ClientError:
    try:
        raise_for(partition.error_code)
    except ClientError as error:
        return error
    return int(partition.offset)


# Reassignments and eligible leaders


class Reassignment(NamedTuple):
    adding: tuple[int, ...]
    removing: tuple[int, ...]


def list_reassignments(client: WireClient) -> dict[TopicPartition, Reassignment]:
    """Reassignments under way; none for brokers that have no such API."""
    if ApiKey.LIST_PARTITION_REASSIGNMENTS not in client.api_versions():
        return {}
    answer = client.send(ApiKey.LIST_PARTITION_REASSIGNMENTS, Message(timeout_ms=30_000, topics=None))
    raise_for(answer.error_code, answer.error_message)
    return {
        TopicPartition(topic.name, partition.partition_index): Reassignment(
            tuple(partition.adding_replicas), tuple(partition.removing_replicas)
        )
        for topic in answer.topics
        for partition in topic.partitions
    }


def is_elr_enabled(client: WireClient) -> bool:
    """Whether the cluster keeps eligible leader replicas (KIP-966)."""
    software = Message(client_software_name="moldau", client_software_version="0")
    features = client.send(ApiKey.API_VERSIONS, software).finalized_features
    return any(f.name == "eligible.leader.replicas.version" and f.max_version_level > 0 for f in features)


def eligible_leader_replicas(
    client: WireClient, topics: Sequence[str]
) -> dict[TopicPartition, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Eligible leader replicas and the last known ones, by partition."""
    found = {}
    cursor = None
    while True:
        request = Message(topics=[Message(name=name) for name in topics], response_partition_limit=2000, cursor=cursor)
        answer = client.send(ApiKey.DESCRIBE_TOPIC_PARTITIONS, request)
        for topic in answer.topics:
            for partition in topic.partitions:
                key = TopicPartition(topic.name, partition.partition_index)
                found[key] = (tuple(partition.eligible_leader_replicas or ()), tuple(partition.last_known_elr or ()))
        if answer.next_cursor is None:
            return found
        cursor = Message(topic_name=answer.next_cursor.topic_name, partition_index=answer.next_cursor.partition_index)


# Cluster


def unregister_broker(client: WireClient, broker_id: int) -> None:
    answer = client.send(ApiKey.UNREGISTER_BROKER, Message(broker_id=broker_id))
    raise_for(answer.error_code, answer.error_message)


# Quotas


QuotaEntity = tuple[tuple[str, str | None], ...]
"""Pairs of entity type and name, such as `(("user", "alice"), ("client-id", None))`; `None` is the default entity."""

EXACT, DEFAULT, ANY = 0, 1, 2


def describe_client_quotas(
    client: WireClient, filters: Mapping[str, str | None]
) -> dict[QuotaEntity, dict[str, float]]:
    """Quotas of the entities that have exactly these types; `""` stands for any name, `None` for the default."""
    components = [
        Message(
            entity_type=kind,
            match_type=DEFAULT if name is None else ANY if name == "" else EXACT,
            match=name or None,
        )
        for kind, name in filters.items()
    ]
    answer = client.send(ApiKey.DESCRIBE_CLIENT_QUOTAS, Message(components=components, strict=True))
    raise_for(answer.error_code, answer.error_message)
    return {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): {v.key: v.value for v in entry.values}
        for entry in answer.entries or []
    }


def alter_client_quotas(
    client: WireClient, entity: QuotaEntity, *, add: Mapping[str, float], delete: Iterable[str]
) -> None:
    changes = [Message(key=key, value=value, remove=False) for key, value in add.items()]
    changes += [Message(key=key, value=0.0, remove=True) for key in delete]
    parts = [Message(entity_type=kind, entity_name=name) for kind, name in entity]
    request = Message(entries=[Message(entity=parts, ops=changes)], validate_only=False)
    for entry in client.send(ApiKey.ALTER_CLIENT_QUOTAS, request).entries:
        raise_for(entry.error_code, entry.error_message)


ONE_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class TransactionListing:
    transactional_id: str
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_ms: int | None
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """A partition's state of a producer."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    """-1 before its first marker."""
    transaction_start: int | None
    """The offset its open transaction begins at."""


def transaction_coordinator(client: WireClient, transactional_id: str) -> int:
    """The broker that coordinates a transactional id; any broker can answer."""
    return find_coordinator(client, transactional_id, CoordinatorKey.TRANSACTION)


def list_transactions(
    client: WireClient, *, longer_than_ms: int = -1, pattern: str | None = None
) -> list[TransactionListing]:
    """Transactions that this broker coordinates, filtered by duration and by an RE2 pattern of the id where given."""
    request = Message(
        state_filters=[], producer_id_filters=[], duration_filter=longer_than_ms, transactional_id_pattern=pattern
    )
    answer = client.send(ApiKey.LIST_TRANSACTIONS, request)
    raise_for(answer.error_code)
    return [
        TransactionListing(one.transactional_id, one.producer_id, one.transaction_state)
        for one in answer.transaction_states
    ]


def describe_transaction(client: WireClient, transactional_id: str) -> TransactionDescription:
    answer = client.send(ApiKey.DESCRIBE_TRANSACTIONS, Message(transactional_ids=[transactional_id]))
    (found,) = answer.transaction_states
    raise_for(found.error_code, about=transactional_id)
    return TransactionDescription(
        found.producer_id,
        found.producer_epoch,
        found.transaction_state,
        found.transaction_timeout_ms,
        _none_if_negative(found.transaction_start_time_ms),
        tuple(TopicPartition(topic.topic, one) for topic in found.topics for one in topic.partitions),
    )


def active_producers(client: WireClient, partition: TopicPartition) -> list[ActiveProducer]:
    request = Message(topics=[Message(name=partition.topic, partition_indexes=[partition.partition])])
    answer = client.send(ApiKey.DESCRIBE_PRODUCERS, request)
    found = answer.topics[0].partitions[0]
    raise_for(found.error_code, found.error_message, about=str(partition))
    return [
        ActiveProducer(
            one.producer_id,
            one.producer_epoch,
            one.last_sequence,
            one.last_timestamp,
            one.coordinator_epoch,
            _none_if_negative(one.current_txn_start_offset),
        )
        for one in found.active_producers
    ]


def abort_in_partition(client: WireClient, partition: TopicPartition, producer: ActiveProducer) -> None:
    """Abort a producer's open transaction in one partition, regardless of the coordinator's state."""
    marker = Message(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        coordinator_epoch=max(producer.coordinator_epoch, 0),
        topics=[Message(name=partition.topic, partition_indexes=[partition.partition])],
    )
    answer = client.send(ApiKey.WRITE_TXN_MARKERS, Message(markers=[marker]))
    raise_for(answer.markers[0].topics[0].partitions[0].error_code, about=str(partition))


def terminate_transaction(client: WireClient, transactional_id: str) -> int:
    """Take over a transactional id, which aborts its transaction; returns the coordinator's error code."""
    request = Message(
        transactional_id=transactional_id, transaction_timeout_ms=ONE_MINUTE_MS, producer_id=-1, producer_epoch=-1
    )
    error_code: int = client.send(ApiKey.INIT_PRODUCER_ID, request).error_code
    return error_code


def _none_if_negative(number: Any) -> int | None:
    """Kafka's -1 for an unknown value becomes `None`."""
    return None if number < 0 else int(number)
