"""Produce, versions 3 to 13: a hand-written codec, because all produced records pass through it.

A request is decoded to positions in its frame: the batches are not copied. Topics are identified by bytes: UTF-8 up to
version 12 and the 16 bytes of the topic id from version 13 on. `broker.data.produce` interprets the fields. Start at
`decode_produce_request`.

    version  adds
    5        log start offset in the response
    8        record errors and error message in the response
    9        flexible encoding
    10       current leader and node endpoints in the response, tagged
    13       topic ids instead of names
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from moldau.protocol.api import MalformedRequestError
from moldau.protocol.hot_fields import (
    MAX_ELEMENTS,
    NodeEndpoint,
    after_tags,
    array_length,
    compact_array_length,
    encode_compact_string,
    encode_node_endpoints,
    encode_string,
    encode_uvarint,
    nullable_bytes,
    uvarint,
)

__all__ = [
    "OneBatch",
    "OnePartitionReply",
    "ProducedPartition",
    "RecordError",
    "decode_one_batch",
    "decode_produce_request",
    "encode_produce_response",
    "timeout_of",
]

FIRST_FLEXIBLE: Final = 9
FIRST_WITH_TOPIC_IDS: Final = 13

PartitionBatch = tuple[int, int, int]
"""`(partition, start, end)`: the position of a partition's records in the frame; equal positions for none."""

ProduceRequest = tuple[bytes | None, int, int, list[tuple[bytes, list[PartitionBatch]]]]
"""`(transactional_id, acks, timeout_ms, [(topic, partitions)])`."""

_classic_head = struct.Struct(">hhii").unpack_from
_classic_partition = struct.Struct(">ii").unpack_from
_acks_and_timeout = struct.Struct(">hi").unpack_from
_int16 = struct.Struct(">h").unpack_from
_int32 = struct.Struct(">i").unpack_from


def decode_produce_request(view: memoryview, position: int, end: int, version: int) -> ProduceRequest:
    """Decode the body in `view[position:end]`; raises `MalformedRequestError` if it is invalid in any way."""
    try:
        if version >= FIRST_FLEXIBLE:
            request, position = _decode_flexible(view, position, end, version)
        else:
            request, position = _decode_classic(view, position, end)
    except (struct.error, IndexError) as error:
        raise MalformedRequestError(f"the request is cut short: {error}") from None
    if position > end:
        raise MalformedRequestError("the request is longer than its frame")
    return request


OneBatch = tuple[int, bytes, int, int, int]
"""`(acks, topic, partition, start, end)`."""

_one_classic_head = struct.Struct(">hhiih").unpack_from
_one_classic_partition = struct.Struct(">iii").unpack_from
_one_flexible_head = struct.Struct(">bhibb").unpack_from
_one_flexible_partition = struct.Struct(">bi").unpack_from


def decode_one_batch(view: memoryview, position: int, end: int, version: int) -> OneBatch | None:
    """Decode the usual request, one batch for one partition and no transaction, in two steps and without a list.

    `None` for anything else, which `decode_produce_request` then decodes. Raises `struct.error` only at the end of the
    whole buffer.
    """
    if version < FIRST_FLEXIBLE:
        no_transaction, acks, _, topic_count, length = _one_classic_head(view, position)
        start = position + 14
        stop = start + length
        if no_transaction != -1 or topic_count != 1 or length <= 0 or stop + 12 > end:
            return None
        partition_count, index, size = _one_classic_partition(view, stop)
        first = stop + 12
        if partition_count != 1 or size <= 0 or first + size != end:
            return None
        return acks, bytes(view[start:stop]), index, first, end
    transaction, acks, _, topic_count, length = _one_flexible_head(view, position)
    start = position + 9
    if version >= FIRST_WITH_TOPIC_IDS:
        start -= 1
        length = 17
    stop = start + length - 1
    # A negative length is the first byte of a longer one: a name of more than 126 bytes.
    if transaction or topic_count != 2 or length <= 1 or stop + 6 > end:
        return None
    partition_count, index = _one_flexible_partition(view, stop)
    if partition_count != 2:
        return None
    size, first = uvarint(view, stop + 5, end)
    # Nothing may follow but the three empty tag sections of partition, topic and request.
    if not size or first + size + 2 != end or view[end - 3 : end].tobytes() != b"\0\0\0":
        return None
    return acks, bytes(view[start:stop]), index, first, end - 3


def timeout_of(view: memoryview, position: int, version: int) -> int:
    """The timeout in milliseconds of a request that `decode_one_batch` could decode."""
    timeout_ms: int = _int32(view, position + (4 if version < FIRST_FLEXIBLE else 3))[0]
    return timeout_ms


def _decode_classic(view: memoryview, position: int, end: int) -> tuple[ProduceRequest, int]:
    transactional_id = None
    (length,) = _int16(view, position)
    if length >= 0:
        transactional_id, position = nullable_bytes(view, position, end, is_flexible=False)
        position -= 2
    _, acks, timeout_ms, topic_count = _classic_head(view, position)
    position += 12
    elements_left = MAX_ELEMENTS
    topics = []
    for _ in range(topic_count):
        (length,) = _int16(view, position)
        position += 2
        if length < 0 or position + length > end:
            raise MalformedRequestError(f"a topic name claims {length} bytes")
        name = bytes(view[position : position + length])
        partition_count, position = array_length(view, position + length, end)
        elements_left -= partition_count + 1
        if elements_left < 0:
            raise MalformedRequestError("the request names too many partitions")
        partitions = []
        for _ in range(partition_count):
            index, size = _classic_partition(view, position)
            position += 8
            stop = position + size if size > 0 else position
            if stop > end:
                raise MalformedRequestError(f"records claim {size} bytes, {end - position} are left")
            partitions.append((index, position, stop))
            position = stop
        topics.append((name, partitions))
    return (transactional_id, acks, timeout_ms, topics), position


def _decode_flexible(view: memoryview, position: int, end: int, version: int) -> tuple[ProduceRequest, int]:
    transactional_id = None
    if view[position]:
        transactional_id, position = nullable_bytes(view, position, end, is_flexible=True)
    else:
        position += 1
    acks, timeout_ms = _acks_and_timeout(view, position)
    topic_count, position = compact_array_length(view, position + 6, end)
    elements_left = MAX_ELEMENTS
    topics = []
    for _ in range(topic_count):
        if version >= FIRST_WITH_TOPIC_IDS:
            stop = position + 16
        else:
            length, position = uvarint(view, position, end)
            stop = position + length - 1
        if stop > end or stop < position:
            raise MalformedRequestError("a topic name runs past its frame")
        name = bytes(view[position:stop])
        partition_count, position = compact_array_length(view, stop, end)
        elements_left -= partition_count + 1
        if elements_left < 0:
            raise MalformedRequestError("the request names too many partitions")
        partitions = []
        for _ in range(partition_count):
            (index,) = _int32(view, position)
            size, position = uvarint(view, position + 4, end)
            stop = position + size - 1 if size else position
            if stop > end:
                raise MalformedRequestError(f"records claim {size - 1} bytes, {end - position} are left")
            partitions.append((index, position, stop))
            position = stop + 1 if stop < end and view[stop] == 0 else after_tags(view, stop, end)
        topics.append((name, partitions))
        position = after_tags(view, position, end)
    return (transactional_id, acks, timeout_ms, topics), after_tags(view, position, end)


class RecordError(NamedTuple):
    """Which record of the batch was rejected, and why."""

    batch_index: int
    message: str | None


class ProducedPartition(NamedTuple):
    """One partition's outcome."""

    partition: int
    error_code: int = 0
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[RecordError] = ()
    error_message: str | None = None
    current_leader: tuple[int, int] | None = None
    """Leader id and epoch, sent with NOT_LEADER_OR_FOLLOWER from version 10 on."""


_classic_outcome = struct.Struct(">ihqq").pack
_int16_pack = struct.Struct(">h").pack
_int32_pack = struct.Struct(">i").pack
_int64_pack = struct.Struct(">q").pack
_two_int32_pack = struct.Struct(">ii").pack


def encode_produce_response(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[bytes, Sequence[ProducedPartition]]],
    *,
    throttle_ms: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> bytes:
    """A complete frame, including length and response header."""
    encode = _encode_flexible if version >= FIRST_FLEXIBLE else _encode_classic
    body = encode(version, topics, throttle_ms, node_endpoints)
    return _two_int32_pack(len(body) + 4, correlation_id) + body


def _encode_classic(
    version: int,
    topics: Sequence[tuple[bytes, Sequence[ProducedPartition]]],
    throttle_ms: int,
    _node_endpoints: Sequence[NodeEndpoint],
) -> bytes:
    parts = [_int32_pack(len(topics))]
    for name, partitions in topics:
        parts += (_int16_pack(len(name)), name, _int32_pack(len(partitions)))
        for done in partitions:
            parts.append(_classic_outcome(*done[:4]))
            if version >= 5:
                parts.append(_int64_pack(done.log_start_offset))
            if version >= 8:
                parts.append(_int32_pack(len(done.record_errors)))
                parts += (_int32_pack(index) + encode_string(message) for index, message in done.record_errors)
                parts.append(encode_string(done.error_message))
    parts.append(_int32_pack(throttle_ms))
    return b"".join(parts)


def _encode_flexible(
    version: int,
    topics: Sequence[tuple[bytes, Sequence[ProducedPartition]]],
    throttle_ms: int,
    node_endpoints: Sequence[NodeEndpoint],
) -> bytes:
    parts = [b"\0", encode_uvarint(len(topics) + 1)]
    for name, partitions in topics:
        if version < FIRST_WITH_TOPIC_IDS:
            parts.append(encode_uvarint(len(name) + 1))
        parts += (name, encode_uvarint(len(partitions) + 1))
        for done in partitions:
            parts += (_classic_outcome(*done[:4]), _int64_pack(done.log_start_offset))
            parts.append(encode_uvarint(len(done.record_errors) + 1))
            for index, message in done.record_errors:
                parts += (_int32_pack(index), encode_compact_string(message), b"\0")
            parts.append(encode_compact_string(done.error_message))
            if version >= 10 and done.current_leader is not None:
                # One tagged field, number 0, nine bytes: leader id, leader epoch, no tags of its own.
                parts.append(b"\x01\x00\x09" + _two_int32_pack(*done.current_leader) + b"\0")
            else:
                parts.append(b"\0")
        parts.append(b"\0")
    parts.append(_int32_pack(throttle_ms))
    parts.append(encode_node_endpoints(node_endpoints) if version >= 10 else b"\0")
    return b"".join(parts)


class OnePartitionReply:
    """The reply of nearly every request: one topic, one partition, no error. The constant parts are encoded once.

    `pack(size, correlation_id, prefix, partition, 0, base_offset, log_append_time_ms, log_start_offset, suffix)` is
    the frame. Version 5 and up.
    """

    __slots__ = ("pack", "prefix", "size", "suffix")

    pack: Callable[..., bytes]

    def __init__(self, version: int, topic: bytes) -> None:
        if version >= FIRST_FLEXIBLE:
            name = topic if version >= FIRST_WITH_TOPIC_IDS else encode_uvarint(len(topic) + 1) + topic
            self.prefix = b"\0\x02" + name + b"\x02"
            self.suffix = b"\x01\0\0\0" + bytes(4) + b"\0"
        else:
            self.prefix = _int32_pack(1) + _int16_pack(len(topic)) + topic + _int32_pack(1)
            self.suffix = (_int32_pack(0) + _int16_pack(-1) if version >= 8 else b"") + bytes(4)
        layout = struct.Struct(f">ii{len(self.prefix)}sihqqq{len(self.suffix)}s")
        self.pack = layout.pack
        self.size = layout.size - 4
