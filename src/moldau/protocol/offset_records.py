"""Committed offsets as records: a hand-written codec, because commits are the most frequent coordinator records.

The same bytes as those of `protocol.coordinator_records`, in the versions that are written; all other versions are
left to that module. Start at `encode_offset_key`.

    key:    type int16 (1) | group string | topic string | partition int32
    value:  version int16 (3) | offset int64 | leader epoch int32 | metadata string | commit timestamp int64
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

__all__ = [
    "OffsetKey",
    "OffsetValue",
    "decode_offset_key",
    "decode_offset_value",
    "encode_offset_key",
    "encode_offset_value",
]

_TYPE: Final = 1
_VERSION: Final = 3

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")
_TYPE_AND_LENGTH: Final = struct.Struct(">hh")
_UP_TO_METADATA: Final = struct.Struct(">hqih")


class OffsetKey(NamedTuple):
    group: str
    topic: str
    partition: int


class OffsetValue(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int


def encode_offset_key(group: str, topic: str, partition: int) -> bytes:
    name, within = group.encode(), topic.encode()
    return b"".join(
        (_TYPE_AND_LENGTH.pack(_TYPE, len(name)), name, _INT16.pack(len(within)), within, _INT32.pack(partition))
    )


def encode_offset_value(offset: int, leader_epoch: int, metadata: str, commit_timestamp: int) -> bytes:
    note = metadata.encode()
    return _UP_TO_METADATA.pack(_VERSION, offset, leader_epoch, len(note)) + note + _INT64.pack(commit_timestamp)


def decode_offset_key(data: bytes) -> OffsetKey | None:
    """`None` for any other key, and for a truncated one."""
    try:
        kind, length = _TYPE_AND_LENGTH.unpack_from(data)
        topic_at = 4 + length
        (topic_length,) = _INT16.unpack_from(data, topic_at)
        partition_at = topic_at + 2 + topic_length
        if kind != _TYPE or length < 0 or topic_length < 0 or partition_at + 4 != len(data):
            return None
        (partition,) = _INT32.unpack_from(data, partition_at)
        return OffsetKey(data[4:topic_at].decode(), data[topic_at + 2 : partition_at].decode(), partition)
    except (struct.error, UnicodeDecodeError):
        return None


def decode_offset_value(data: bytes) -> OffsetValue | None:
    """`None` for any other version, and for a truncated value."""
    try:
        version, offset, leader_epoch, length = _UP_TO_METADATA.unpack_from(data)
        end = _UP_TO_METADATA.size + length
        if version != _VERSION or length < 0 or end + 8 != len(data):
            return None
        note = data[_UP_TO_METADATA.size : end].decode()
        return OffsetValue(offset, leader_epoch, note, _INT64.unpack_from(data, end)[0])
    except (struct.error, UnicodeDecodeError):
        return None
