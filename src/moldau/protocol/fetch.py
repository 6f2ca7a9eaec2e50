"""Fetch, versions 4 to 18: a hand-written codec, because all consumed records pass through it.

A response is a list of parts: encoded bytes, and ranges of log files that are sent without a copy. Topics are
identified by bytes: UTF-8 up to version 12 and the 16 bytes of the topic id from version 13 on. `broker.data.fetch`
interprets the fields. Start at `decode_fetch_request`.

    version  adds
    5        log start offset, both ways
    7        fetch sessions, a top-level error code
    9        current leader epoch in the request
    11       rack in the request, preferred read replica in the response
    12       flexible encoding, last fetched epoch; diverging epoch, current leader and snapshot id as tags
    13       topic ids instead of names
    15       replica state as a tag instead of the replica id
    16       node endpoints in the response, tagged
    17, 18   replica directory id and high watermark as tags of the request's partitions, for followers
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from moldau.protocol.api import MalformedRequestError
from moldau.protocol.hot_fields import (
    MAX_ELEMENTS,
    NodeEndpoint,
    after_tags,
    array_length,
    compact_array_length,
    encode_node_endpoints,
    encode_uvarint,
    nullable_bytes,
    uvarint,
)

__all__ = ["FetchPartition", "FetchRequest", "FetchedPartition", "decode_fetch_request", "encode_fetch_response"]

FIRST_WITH_SESSIONS: Final = 7
FIRST_FLEXIBLE: Final = 12
FIRST_WITH_TOPIC_IDS: Final = 13
CONSUMER_REPLICA_ID: Final = -1


class FetchPartition(NamedTuple):
    """The requested records of one partition."""

    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


@dataclass(slots=True)
class FetchRequest:
    replica_id: int = CONSUMER_REPLICA_ID
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 0x7FFFFFFF
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: list[tuple[bytes, list[FetchPartition]]] = field(default_factory=list)
    forgotten: list[tuple[bytes, list[int]]] = field(default_factory=list)
    rack_id: str = ""
    replica_epoch: int = -1


_head = struct.Struct(">iiib").unpack_from
_int32 = struct.Struct(">i").unpack_from
_session = struct.Struct(">ii").unpack_from
_replica_state = struct.Struct(">iq").unpack_from
_PARTITION_V4: Final = struct.Struct(">iqi")
_PARTITION_V5: Final = struct.Struct(">iqqi")
_PARTITION_V9: Final = struct.Struct(">iiqqi")
_PARTITION_V12: Final = struct.Struct(">iiqiqi")


def decode_fetch_request(view: memoryview, position: int, end: int, version: int) -> FetchRequest:
    """Decode the body in `view[position:end]`; raises `MalformedRequestError` if it is invalid in any way."""
    try:
        request, position = _decode(view, position, end, version)
    except (struct.error, IndexError) as error:
        raise MalformedRequestError(f"the request is cut short: {error}") from None
    if position > end:
        raise MalformedRequestError("the request is longer than its frame")
    return request


def _decode(view: memoryview, position: int, end: int, version: int) -> tuple[FetchRequest, int]:
    request = FetchRequest()
    if version < 15:
        (request.replica_id,) = _int32(view, position)
        position += 4
    request.max_wait_ms, request.min_bytes, request.max_bytes, request.isolation_level = _head(view, position)
    position += 13
    if version >= FIRST_WITH_SESSIONS:
        request.session_id, request.session_epoch = _session(view, position)
        position += 8
    is_flexible = version >= FIRST_FLEXIBLE
    length_of = compact_array_length if is_flexible else array_length
    topic_count, position = length_of(view, position, end)
    elements_left = MAX_ELEMENTS
    for _ in range(topic_count):
        name, position = _topic(view, position, end, version)
        partition_count, position = length_of(view, position, end)
        elements_left -= partition_count + 1
        if elements_left < 0:
            raise MalformedRequestError("the request names too many partitions")
        partitions, position = _partitions(view, position, end, version, partition_count)
        request.topics.append((name, partitions))
        if is_flexible:
            position = after_tags(view, position, end)
    if version >= FIRST_WITH_SESSIONS:
        request.forgotten, position = _read_forgotten_topics(view, position, end, version)
    if version >= 11:
        rack, position = nullable_bytes(view, position, end, is_flexible=is_flexible)
        request.rack_id = _text(rack)
    if is_flexible:
        position = _request_tags(request, view, position, end, version)
    return request, position


def _topic(view: memoryview, position: int, end: int, version: int) -> tuple[bytes, int]:
    if version >= FIRST_WITH_TOPIC_IDS:
        if position + 16 > end:
            raise MalformedRequestError("a topic id runs past its frame")
        return bytes(view[position : position + 16]), position + 16
    name, position = nullable_bytes(view, position, end, is_flexible=version >= FIRST_FLEXIBLE)
    if name is None:
        raise MalformedRequestError("a topic name is null")
    return name, position


def _partitions(
    view: memoryview, position: int, end: int, version: int, count: int
) -> tuple[list[FetchPartition], int]:
    partitions = []
    for _ in range(count):
        if version >= 12:
            partitions.append(FetchPartition._make(_PARTITION_V12.unpack_from(view, position)))
            position += 32
            position = position + 1 if position < end and view[position] == 0 else after_tags(view, position, end)
        elif version >= 9:
            index, epoch, offset, log_start, size = _PARTITION_V9.unpack_from(view, position)
            partitions.append(FetchPartition(index, epoch, offset, -1, log_start, size))
            position += 28
        elif version >= 5:
            index, offset, log_start, size = _PARTITION_V5.unpack_from(view, position)
            partitions.append(FetchPartition(index, -1, offset, -1, log_start, size))
            position += 24
        else:
            index, offset, size = _PARTITION_V4.unpack_from(view, position)
            partitions.append(FetchPartition(index, -1, offset, -1, -1, size))
            position += 16
    return partitions, position


def _read_forgotten_topics(
    view: memoryview, position: int, end: int, version: int
) -> tuple[list[tuple[bytes, list[int]]], int]:
    is_flexible = version >= FIRST_FLEXIBLE
    length_of = compact_array_length if is_flexible else array_length
    forgotten = []
    topic_count, position = length_of(view, position, end)
    elements_left = MAX_ELEMENTS
    for _ in range(topic_count):
        name, position = _topic(view, position, end, version)
        count, position = length_of(view, position, end)
        elements_left -= count + 1
        if 4 * count > end - position or elements_left < 0:
            raise MalformedRequestError(f"{count} forgotten partitions in {end - position} bytes")
        forgotten.append((name, list(struct.unpack_from(f">{count}i", view, position))))
        position += 4 * count
        if is_flexible:
            position = after_tags(view, position, end)
    return forgotten, position


def _request_tags(request: FetchRequest, view: memoryview, position: int, end: int, version: int) -> int:
    """Read the replica's state (tag 1, from version 15); the cluster id (tag 0) and unknown tags are skipped."""
    count, position = uvarint(view, position, end)
    for _ in range(count):
        tag, position = uvarint(view, position, end)
        length, position = uvarint(view, position, end)
        if position + length > end:
            raise MalformedRequestError("a tagged field is longer than its frame")
        if tag == 1 and version >= 15:
            if length < 13:
                raise MalformedRequestError("the replica state is too short")
            request.replica_id, request.replica_epoch = _replica_state(view, position)
        position += length
    return position


def _text(raw: bytes | None) -> str:
    try:
        return (raw or b"").decode()
    except UnicodeDecodeError as error:
        raise MalformedRequestError("a string is not UTF-8") from error


class Sized(Protocol):
    """Records that are sent by other code: only their size in bytes matters here."""

    @property
    def length(self) -> int: ...


Range = TypeVar("Range", bound=Sized)


@dataclass(slots=True)
class FetchedPartition(Generic[Range]):
    """One partition's part of a response."""

    partition: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: Sequence[tuple[int, int]] | None = None
    """Producer id and first offset of each aborted transaction; `None` unless reading committed records."""
    preferred_read_replica: int = -1
    records: bytes | Range = b""
    """Never null on the wire: librdkafka rejects that as a malformed response."""
    diverging_epoch: tuple[int, int] | None = None
    """Epoch and its end offset, where the follower's log diverges from the leader's."""
    current_leader: tuple[int, int] | None = None
    snapshot_id: tuple[int, int] | None = None
    """End offset and epoch of the snapshot to fetch instead."""

    @property
    def records_length(self) -> int:
        return len(self.records) if isinstance(self.records, bytes) else self.records.length


_response_head = struct.Struct(">iii").pack
_response_head_flexible = struct.Struct(">iibi").pack
_error_and_session = struct.Struct(">hi").pack
_offsets_v4 = struct.Struct(">ihqq").pack
_offsets_v5 = struct.Struct(">ihqqq").pack
_int16_pack = struct.Struct(">h").pack
_int32_pack = struct.Struct(">i").pack
_transaction = struct.Struct(">qq").pack
_EPOCH_THEN_OFFSET: Final = struct.Struct(">iqb")
_OFFSET_THEN_EPOCH: Final = struct.Struct(">qib")
_TWO_INT32: Final = struct.Struct(">iib")


def encode_fetch_response(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[bytes, Sequence[FetchedPartition[Range]]]],
    *,
    error_code: int = 0,
    session_id: int = 0,
    throttle_ms: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> tuple[list[bytes | Range], int]:
    """The complete frame as its parts in order, and its size with the four bytes of the length."""
    is_flexible = version >= FIRST_FLEXIBLE
    pending = bytearray(
        _response_head_flexible(0, correlation_id, 0, throttle_ms)
        if is_flexible
        else _response_head(0, correlation_id, throttle_ms)
    )
    if version >= FIRST_WITH_SESSIONS:
        pending += _error_and_session(error_code, session_id)
    parts: list[bytes | Range] = []
    size = 0
    pending += encode_uvarint(len(topics) + 1) if is_flexible else _int32_pack(len(topics))
    for name, partitions in topics:
        pending += _topic_head(version, name, len(partitions))
        for partition in partitions:
            pending += _partition_head(version, partition)
            records = partition.records
            if isinstance(records, bytes):
                pending += records
            elif records.length:
                parts.append(bytes(pending))
                parts.append(records)
                size += len(pending) + records.length
                pending = bytearray()
            if is_flexible:
                pending += _partition_tags(partition)
        if is_flexible:
            pending += b"\0"
    if is_flexible:
        pending += encode_node_endpoints(node_endpoints) if version >= 16 else b"\0"
    if pending:
        parts.append(bytes(pending))
        size += len(pending)
    first = parts[0]
    assert isinstance(first, bytes)
    parts[0] = _int32_pack(size - 4) + first[4:]
    return parts, size


def _topic_head(version: int, name: bytes, partition_count: int) -> bytes:
    if version >= FIRST_WITH_TOPIC_IDS:
        return name + encode_uvarint(partition_count + 1)
    if version >= FIRST_FLEXIBLE:
        return encode_uvarint(len(name) + 1) + name + encode_uvarint(partition_count + 1)
    return _int16_pack(len(name)) + name + _int32_pack(partition_count)


def _partition_head(version: int, done: FetchedPartition[Range]) -> bytes:
    """Everything before the records, their length included."""
    offsets = (done.partition, done.error_code, done.high_watermark, done.last_stable_offset)
    head = _offsets_v5(*offsets, done.log_start_offset) if version >= 5 else _offsets_v4(*offsets)
    head += _aborted_transactions(version, done.aborted)
    if version >= 11:
        head += _int32_pack(done.preferred_read_replica)
    length = done.records_length
    return head + (encode_uvarint(length + 1) if version >= FIRST_FLEXIBLE else _int32_pack(length))


def _aborted_transactions(version: int, aborted: Sequence[tuple[int, int]] | None) -> bytes:
    if version >= FIRST_FLEXIBLE:
        if aborted is None:
            return b"\0"
        return encode_uvarint(len(aborted) + 1) + b"".join(_transaction(*entry) + b"\0" for entry in aborted)
    if aborted is None:
        return b"\xff\xff\xff\xff"
    return _int32_pack(len(aborted)) + b"".join(_transaction(*entry) for entry in aborted)


def _partition_tags(done: FetchedPartition[Range]) -> bytes:
    if done.diverging_epoch is None and done.current_leader is None and done.snapshot_id is None:
        return b"\0"
    tags = []
    if done.diverging_epoch is not None:
        tags.append(b"\x00\x0d" + _EPOCH_THEN_OFFSET.pack(*done.diverging_epoch, 0))
    if done.current_leader is not None:
        tags.append(b"\x01\x09" + _TWO_INT32.pack(*done.current_leader, 0))
    if done.snapshot_id is not None:
        tags.append(b"\x02\x0d" + _OFFSET_THEN_EPOCH.pack(*done.snapshot_id, 0))
    return encode_uvarint(len(tags)) + b"".join(tags)
