"""The records of `__cluster_metadata`, in Kafka's own encoding.

Each type is a frozen dataclass that decodes every version of Kafka 3.3 to 4.3, and is encoded in the version that
metadata.version 25 (Kafka 4.0) requires. A uuid of zeros, such as a directory not yet assigned, is `None`.
`controller.image` interprets the records.
Start at `encode_metadata_record` and `decode_metadata_record`.
"""

# ruff: noqa: RUF009 (`wire` is `dataclasses.field` with a wire type, not a default computed at import)

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final
from uuid import UUID

from moldau.protocol.field_reader import DAMAGE, Cursor, read_uvarint
from moldau.protocol.field_writer import write_uvarint
from moldau.protocol.record_schemas import MalformedRecordError, array_of, decode_record, record_codec, wire

__all__ = [
    "METADATA_RECORDS",
    "AbortTransactionRecord",
    "AccessControlEntryRecord",
    "BeginTransactionRecord",
    "BrokerEndpoint",
    "BrokerFeature",
    "BrokerRegistrationChangeRecord",
    "ClearElrRecord",
    "ClientQuotaEntity",
    "ClientQuotaRecord",
    "ConfigRecord",
    "DelegationTokenRecord",
    "EndTransactionRecord",
    "FeatureLevelRecord",
    "FenceBrokerRecord",
    "MalformedRecordError",
    "MetadataRecord",
    "NoOpRecord",
    "PartitionChangeRecord",
    "PartitionRecord",
    "ProducerIdsRecord",
    "RegisterBrokerRecord",
    "RegisterControllerRecord",
    "RemoveAccessControlEntryRecord",
    "RemoveDelegationTokenRecord",
    "RemoveTopicRecord",
    "RemoveUserScramCredentialRecord",
    "TopicRecord",
    "UnfenceBrokerRecord",
    "UnregisterBrokerRecord",
    "UserScramCredentialRecord",
    "ZkMigrationStateRecord",
    "decode_metadata_record",
    "encode_metadata_record",
]

_FRAME_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRecord:
    """Base of all metadata records."""

    TYPE: ClassVar[int]
    WRITTEN: ClassVar[int] = 0
    """The version that is written."""
    NEWEST: ClassVar[int] = 0
    """The newest version that can be read."""


def encode_metadata_record(record: MetadataRecord, version: int | None = None) -> bytes:
    """Encode a record's value: frame version, type and version, then its fields."""
    chosen = record.WRITTEN if version is None else version
    output = bytearray()
    for number in (_FRAME_VERSION, record.TYPE, chosen):
        write_uvarint(output, number)
    kind: Any = type(record)
    record_codec(kind, chosen).write(output, record)
    return bytes(output)


def decode_metadata_record(value: bytes | bytearray | memoryview) -> MetadataRecord:
    """Decode a record's value; raises `MalformedRecordError` for a type or version of a later release."""
    cursor = Cursor(bytes(value))
    try:
        frame, kind, version = read_uvarint(cursor), read_uvarint(cursor), read_uvarint(cursor)
    except DAMAGE:
        raise MalformedRecordError("a metadata record that ends within its first numbers") from None
    if frame != _FRAME_VERSION:
        raise MalformedRecordError(f"a metadata record of frame version {frame}; only {_FRAME_VERSION} is known")
    known = METADATA_RECORDS.get(kind)
    if known is None or version > known.NEWEST:
        raise MalformedRecordError(f"no schema for metadata record type {kind}, version {version}")
    record: MetadataRecord = decode_record(known, version, cursor.data, cursor.position)
    return record


# --- brokers and controllers ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerEndpoint:
    name: str = wire("string")
    host: str = wire("string")
    port: int = wire("uint16")
    security_protocol: int = wire("int16")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFeature:
    name: str = wire("string")
    min_supported_version: int = wire("int16")
    max_supported_version: int = wire("int16")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRecord(MetadataRecord):
    TYPE = 0
    WRITTEN = 3
    NEWEST = 4

    broker_id: int = wire("int32")
    is_migrating_zk_broker: bool = wire("bool", since=2)
    incarnation_id: UUID | None = wire("uuid")
    broker_epoch: int = wire("int64")
    end_points: tuple[BrokerEndpoint, ...] = array_of(BrokerEndpoint)
    features: tuple[BrokerFeature, ...] = array_of(BrokerFeature)
    rack: str | None = wire("string", is_nullable=True)
    fenced: bool = wire("bool", default=True)
    in_controlled_shutdown: bool = wire("bool", since=1)
    log_dirs: tuple[UUID | None, ...] = array_of("uuid", tag=0, since=3)
    cordoned_log_dirs: tuple[UUID | None, ...] | None = array_of("uuid", is_nullable=True, tag=1, since=4)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterBrokerRecord(MetadataRecord):
    TYPE = 1

    broker_id: int = wire("int32")
    broker_epoch: int = wire("int64")


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceBrokerRecord(MetadataRecord):
    """From old logs; replaced by `BrokerRegistrationChangeRecord`."""

    TYPE = 7

    id: int = wire("int32")
    epoch: int = wire("int64")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfenceBrokerRecord(MetadataRecord):
    """From old logs; replaced by `BrokerRegistrationChangeRecord`."""

    TYPE = 8

    id: int = wire("int32")
    epoch: int = wire("int64")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationChangeRecord(MetadataRecord):
    TYPE = 17
    WRITTEN = 2
    NEWEST = 3

    broker_id: int = wire("int32")
    broker_epoch: int = wire("int64")
    fenced: int = wire("int8", tag=0)
    """1 fences, -1 unfences, 0 changes nothing."""
    in_controlled_shutdown: int = wire("int8", tag=1, since=1)
    log_dirs: tuple[UUID | None, ...] = array_of("uuid", tag=2, since=2)
    cordoned_log_dirs: tuple[UUID | None, ...] | None = array_of("uuid", is_nullable=True, tag=3, since=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterControllerRecord(MetadataRecord):
    TYPE = 27

    controller_id: int = wire("int32")
    incarnation_id: UUID | None = wire("uuid")
    zk_migration_ready: bool = wire("bool", default=False)
    end_points: tuple[BrokerEndpoint, ...] = array_of(BrokerEndpoint)
    features: tuple[BrokerFeature, ...] = array_of(BrokerFeature)


# --- topics and partitions --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord(MetadataRecord):
    TYPE = 2

    name: str = wire("string")
    topic_id: UUID | None = wire("uuid")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTopicRecord(MetadataRecord):
    TYPE = 9

    topic_id: UUID | None = wire("uuid")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord(MetadataRecord):
    TYPE = 3
    WRITTEN = 2
    NEWEST = 2

    partition_id: int = wire("int32")
    topic_id: UUID | None = wire("uuid")
    replicas: tuple[int, ...] = array_of("int32")
    isr: tuple[int, ...] = array_of("int32")
    removing_replicas: tuple[int, ...] = array_of("int32", default=())
    adding_replicas: tuple[int, ...] = array_of("int32", default=())
    leader: int = wire("int32")
    leader_recovery_state: int = wire("int8", tag=0)
    leader_epoch: int = wire("int32")
    partition_epoch: int = wire("int32")
    directories: tuple[UUID | None, ...] = array_of("uuid", since=1)
    eligible_leader_replicas: tuple[int, ...] | None = array_of("int32", is_nullable=True, tag=1, since=2)
    last_known_elr: tuple[int, ...] | None = array_of("int32", is_nullable=True, tag=2, since=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChangeRecord(MetadataRecord):
    """Missing fields are unchanged."""

    TYPE = 5
    WRITTEN = 2
    NEWEST = 2

    LEADER_UNCHANGED: ClassVar[int] = -2

    partition_id: int = wire("int32")
    topic_id: UUID | None = wire("uuid")
    isr: tuple[int, ...] | None = array_of("int32", is_nullable=True, tag=0)
    leader: int = wire("int32", tag=1, default=-2)
    replicas: tuple[int, ...] | None = array_of("int32", is_nullable=True, tag=2)
    removing_replicas: tuple[int, ...] | None = array_of("int32", is_nullable=True, tag=3)
    adding_replicas: tuple[int, ...] | None = array_of("int32", is_nullable=True, tag=4)
    leader_recovery_state: int = wire("int8", tag=5, default=-1)
    directories: tuple[UUID | None, ...] | None = array_of("uuid", is_nullable=True, tag=8, since=1)
    eligible_leader_replicas: tuple[int, ...] | None = array_of("int32", is_nullable=True, tag=6, since=2)
    last_known_elr: tuple[int, ...] | None = array_of("int32", is_nullable=True, tag=7, since=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearElrRecord(MetadataRecord):
    TYPE = 28

    topic_name: str = wire("string")
    """Empty for all topics."""


# --- configuration and features ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRecord(MetadataRecord):
    TYPE = 4

    resource_type: int = wire("int8")
    """2 topic, 4 broker, 16 client metrics, 32 group."""
    resource_name: str = wire("string")
    name: str = wire("string")
    value: str | None = wire("string", is_nullable=True)
    """Null deletes the setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLevelRecord(MetadataRecord):
    TYPE = 12

    name: str = wire("string")
    feature_level: int = wire("int16")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuotaEntity:
    entity_type: str = wire("string")
    entity_name: str | None = wire("string", is_nullable=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuotaRecord(MetadataRecord):
    TYPE = 14

    entity: tuple[ClientQuotaEntity, ...] = array_of(ClientQuotaEntity)
    key: str = wire("string")
    value: float = wire("float64")
    remove: bool = wire("bool", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdsRecord(MetadataRecord):
    TYPE = 15

    broker_id: int = wire("int32")
    broker_epoch: int = wire("int64", default=-1)
    next_producer_id: int = wire("int64")
    """The first id of the next block: all lower ones are allocated."""


# --- security ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationTokenRecord(MetadataRecord):
    TYPE = 10

    owner: str = wire("string")
    requester: str = wire("string")
    renewers: tuple[str, ...] = array_of("string")
    issue_timestamp: int = wire("int64")
    max_timestamp: int = wire("int64")
    expiration_timestamp: int = wire("int64")
    token_id: str = wire("string")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveDelegationTokenRecord(MetadataRecord):
    TYPE = 26

    token_id: str = wire("string")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserScramCredentialRecord(MetadataRecord):
    TYPE = 11

    name: str = wire("string")
    mechanism: int = wire("int8")
    salt: bytes = wire("bytes")
    stored_key: bytes = wire("bytes")
    server_key: bytes = wire("bytes")
    iterations: int = wire("int32")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveUserScramCredentialRecord(MetadataRecord):
    TYPE = 22

    name: str = wire("string")
    mechanism: int = wire("int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessControlEntryRecord(MetadataRecord):
    TYPE = 18

    id: UUID | None = wire("uuid")
    resource_type: int = wire("int8")
    resource_name: str = wire("string")
    pattern_type: int = wire("int8")
    principal: str = wire("string")
    host: str = wire("string")
    operation: int = wire("int8")
    permission_type: int = wire("int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveAccessControlEntryRecord(MetadataRecord):
    TYPE = 19

    id: UUID | None = wire("uuid")


# --- the log itself ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOpRecord(MetadataRecord):
    TYPE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkMigrationStateRecord(MetadataRecord):
    """In logs of Kafka 3.4 to 3.9; ignored."""

    TYPE = 21

    zk_migration_state: int = wire("int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginTransactionRecord(MetadataRecord):
    """Records up to the end or abort that follows are applied together or not at all."""

    TYPE = 23

    name: str | None = wire("string", is_nullable=True, tag=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransactionRecord(MetadataRecord):
    TYPE = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortTransactionRecord(MetadataRecord):
    TYPE = 25

    reason: str | None = wire("string", is_nullable=True, tag=0)


METADATA_RECORDS: Final[dict[int, type[MetadataRecord]]] = {
    one.TYPE: one
    for one in tuple(globals().values())
    if isinstance(one, type) and issubclass(one, MetadataRecord) and one is not MetadataRecord
}
"""Every type by its number."""
