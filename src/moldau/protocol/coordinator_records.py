"""The records of `__consumer_offsets` and `__transaction_state`, in Kafka's own encoding.

A key identifies a record's subject, a value holds its state, no value deletes it. Keys are an int16 type and classic
fields, values an int16 version and fields that are flexible from some version on. `coordinator` interprets the
records. Start at `encode_key`, `encode_value` and `decode_key`.
"""

# ruff: noqa: RUF009 (`wire` is `dataclasses.field` with a wire type, not a default computed at import)

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from uuid import UUID

from moldau.protocol.record_schemas import MalformedRecordError, array_of, decode_record, record_codec, wire

__all__ = [
    "GROUP_KEYS",
    "TRANSACTION_KEYS",
    "ClassicMemberMetadata",
    "ClassicProtocol",
    "ConsumerGroupMemberMetadataKey",
    "ConsumerGroupMemberMetadataValue",
    "ConsumerGroupMetadataKey",
    "ConsumerGroupMetadataValue",
    "ConsumerGroupPartitionMetadataKey",
    "CurrentMemberAssignmentKey",
    "CurrentMemberAssignmentValue",
    "GroupMember",
    "GroupMetadataKey",
    "GroupMetadataValue",
    "OffsetCommitKey",
    "OffsetCommitValue",
    "RecordKey",
    "RecordValue",
    "RegularExpressionKey",
    "RegularExpressionValue",
    "TargetAssignmentMemberKey",
    "TargetAssignmentMemberValue",
    "TargetAssignmentMetadataKey",
    "TargetAssignmentMetadataValue",
    "TopicPartitions",
    "TransactionLogKey",
    "TransactionLogValue",
    "TransactionPartitions",
    "decode_key",
    "decode_value",
    "encode_key",
    "encode_value",
]

_INT16: Final = struct.Struct(">h")
_NEVER: Final = 1 << 15


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordValue:
    """Base of all values."""

    WRITTEN: ClassVar[int] = 0
    """The version that is written."""
    NEWEST: ClassVar[int] = 0
    """The newest version that can be read."""
    FIRST_FLEXIBLE: ClassVar[int] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKey:
    """Base of all keys."""

    TYPE: ClassVar[int]
    VALUE: ClassVar[type[RecordValue] | None]


def encode_key(key: RecordKey) -> bytes:
    output = bytearray(_INT16.pack(key.TYPE))
    kind: Any = type(key)
    record_codec(kind, 0, is_flexible=False).write(output, key)
    return bytes(output)


def encode_value(value: RecordValue) -> bytes:
    version = value.WRITTEN
    output = bytearray(_INT16.pack(version))
    kind: Any = type(value)
    record_codec(kind, version, is_flexible=version >= value.FIRST_FLEXIBLE).write(output, value)
    return bytes(output)


def decode_key(data: bytes, known: Mapping[int, type[RecordKey]]) -> RecordKey | None:
    """Decode a key of one of the two topics; `None` for a type of a later release, which is to be ignored."""
    kind = known.get(_number(data, "key"))
    if kind is None:
        return None
    key: RecordKey = decode_record(kind, 0, data, _INT16.size, is_flexible=False)
    return key


def decode_value(key: RecordKey, data: bytes) -> RecordValue:
    """Decode the value that belongs to `key`; raises `MalformedRecordError` for a version of a later release."""
    version = _number(data, "value")
    kind = key.VALUE
    if isinstance(key, OffsetCommitKey) and version == OffsetCommitValueWithExpiry.WRITTEN:
        kind = OffsetCommitValueWithExpiry
    if kind is None or not 0 <= version <= kind.NEWEST:
        raise MalformedRecordError(f"no schema for version {version} of the value of {type(key).__name__}")
    value: RecordValue = decode_record(kind, version, data, _INT16.size, is_flexible=version >= kind.FIRST_FLEXIBLE)
    return value


def _number(data: bytes, what: str) -> int:
    if len(data) < _INT16.size:
        raise MalformedRecordError(f"the {what} of a coordinator's record has only {len(data)} bytes")
    number: int = _INT16.unpack_from(data)[0]
    return number


# --- committed offsets ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitValue(RecordValue):
    WRITTEN = 3
    NEWEST = 4
    FIRST_FLEXIBLE = 4

    offset: int = wire("int64")
    leader_epoch: int = wire("int32", since=3, default=-1)
    metadata: str = wire("string")
    commit_timestamp: int = wire("int64")
    topic_id: UUID | None = wire("uuid", since=4, tag=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitValueWithExpiry(RecordValue):
    """Only version 1 has an explicit expiry time."""

    WRITTEN = 1
    NEWEST = 1
    FIRST_FLEXIBLE = _NEVER

    offset: int = wire("int64")
    metadata: str = wire("string")
    commit_timestamp: int = wire("int64")
    expire_timestamp: int = wire("int64")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitKey(RecordKey):
    TYPE = 1
    VALUE = OffsetCommitValue

    group: str = wire("string")
    topic: str = wire("string")
    partition: int = wire("int32")


# --- groups of the classic protocol -----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    member_id: str = wire("string")
    group_instance_id: str | None = wire("string", is_nullable=True, since=3)
    client_id: str = wire("string")
    client_host: str = wire("string")
    rebalance_timeout: int = wire("int32", since=1)
    session_timeout: int = wire("int32")
    subscription: bytes = wire("bytes")
    assignment: bytes = wire("bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadataValue(RecordValue):
    WRITTEN = 3
    NEWEST = 4
    FIRST_FLEXIBLE = 4

    protocol_type: str = wire("string")
    generation: int = wire("int32")
    protocol: str | None = wire("string", is_nullable=True)
    leader: str | None = wire("string", is_nullable=True)
    current_state_timestamp: int = wire("int64", since=2, default=-1)
    members: tuple[GroupMember, ...] = array_of(GroupMember)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadataKey(RecordKey):
    TYPE = 2
    VALUE = GroupMetadataValue

    group: str = wire("string")


# --- groups of the consumer protocol (KIP-848) ------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMetadataValue(RecordValue):
    epoch: int = wire("int32")
    metadata_hash: int = wire("int64", tag=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMetadataKey(RecordKey):
    TYPE = 3
    VALUE = ConsumerGroupMetadataValue

    group_id: str = wire("string")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupPartitionMetadataKey(RecordKey):
    """From earlier releases; only tombstones are written."""

    TYPE = 4
    VALUE = None

    group_id: str = wire("string")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicProtocol:
    name: str = wire("string")
    metadata: bytes = wire("bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicMemberMetadata:
    """Additional metadata of a member that uses the classic protocol."""

    session_timeout_ms: int = wire("int32")
    supported_protocols: tuple[ClassicProtocol, ...] = array_of(ClassicProtocol)


_NO_CLASSIC_PROTOCOLS: Final = ClassicMemberMetadata(session_timeout_ms=0, supported_protocols=())


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMemberMetadataValue(RecordValue):
    instance_id: str | None = wire("string", is_nullable=True)
    rack_id: str | None = wire("string", is_nullable=True)
    client_id: str = wire("string")
    client_host: str = wire("string")
    subscribed_topic_names: tuple[str, ...] = array_of("string")
    subscribed_topic_regex: str | None = wire("string", is_nullable=True)
    rebalance_timeout_ms: int = wire("int32")
    server_assignor: str | None = wire("string", is_nullable=True)
    classic_member_metadata: ClassicMemberMetadata | None = wire(
        ClassicMemberMetadata, is_nullable=True, tag=0, default=_NO_CLASSIC_PROTOCOLS
    )
    """Null, and written as null, for a member of the consumer protocol: Kafka reads a missing tag as an empty one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMemberMetadataKey(RecordKey):
    TYPE = 5
    VALUE = ConsumerGroupMemberMetadataValue

    group_id: str = wire("string")
    member_id: str = wire("string")


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetAssignmentMetadataValue(RecordValue):
    assignment_epoch: int = wire("int32")
    assignment_timestamp: int = wire("int64", tag=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetAssignmentMetadataKey(RecordKey):
    TYPE = 6
    VALUE = TargetAssignmentMetadataValue

    group_id: str = wire("string")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitions:
    topic_id: UUID | None = wire("uuid")
    partitions: tuple[int, ...] = array_of("int32")
    assignment_epochs: tuple[int, ...] | None = array_of("int32", is_nullable=True, tag=0)
    """In current assignments only: since which member epoch each partition is assigned (KIP-1251)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetAssignmentMemberValue(RecordValue):
    topic_partitions: tuple[TopicPartitions, ...] = array_of(TopicPartitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetAssignmentMemberKey(RecordKey):
    TYPE = 7
    VALUE = TargetAssignmentMemberValue

    group_id: str = wire("string")
    member_id: str = wire("string")


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentMemberAssignmentValue(RecordValue):
    member_epoch: int = wire("int32")
    previous_member_epoch: int = wire("int32")
    state: int = wire("int8")
    assigned_partitions: tuple[TopicPartitions, ...] = array_of(TopicPartitions)
    partitions_pending_revocation: tuple[TopicPartitions, ...] = array_of(TopicPartitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentMemberAssignmentKey(RecordKey):
    TYPE = 8
    VALUE = CurrentMemberAssignmentValue

    group_id: str = wire("string")
    member_id: str = wire("string")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegularExpressionValue(RecordValue):
    topics: tuple[str, ...] = array_of("string")
    version: int = wire("int64")
    timestamp: int = wire("int64")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegularExpressionKey(RecordKey):
    TYPE = 16
    VALUE = RegularExpressionValue

    group_id: str = wire("string")
    regular_expression: str = wire("string")


# --- transactions -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionPartitions:
    topic: str = wire("string")
    partition_ids: tuple[int, ...] = array_of("int32")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLogValue(RecordValue):
    WRITTEN = 1
    NEWEST = 1
    FIRST_FLEXIBLE = 1

    producer_id: int = wire("int64")
    previous_producer_id: int = wire("int64", since=1, tag=0, default=-1)
    next_producer_id: int = wire("int64", since=1, tag=1, default=-1)
    producer_epoch: int = wire("int16")
    next_producer_epoch: int = wire("int16", since=1, tag=3, default=-1)
    transaction_timeout_ms: int = wire("int32")
    transaction_status: int = wire("int8")
    transaction_partitions: tuple[TransactionPartitions, ...] | None = array_of(TransactionPartitions, is_nullable=True)
    last_update_timestamp_ms: int = wire("int64")
    start_timestamp_ms: int = wire("int64")
    client_transaction_version: int = wire("int16", since=1, tag=2, default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLogKey(RecordKey):
    TYPE = 0
    VALUE = TransactionLogValue

    transactional_id: str = wire("string")


GROUP_KEYS: Final[Mapping[int, type[RecordKey]]] = {
    0: OffsetCommitKey,
    1: OffsetCommitKey,
    2: GroupMetadataKey,
    3: ConsumerGroupMetadataKey,
    4: ConsumerGroupPartitionMetadataKey,
    5: ConsumerGroupMemberMetadataKey,
    6: TargetAssignmentMetadataKey,
    7: TargetAssignmentMemberKey,
    8: CurrentMemberAssignmentKey,
    16: RegularExpressionKey,
}
"""Keys of `__consumer_offsets` by type; 0 is an older number of 1."""

TRANSACTION_KEYS: Final[Mapping[int, type[RecordKey]]] = {0: TransactionLogKey}
"""Keys of `__transaction_state` by type."""
