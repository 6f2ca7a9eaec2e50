"""Fetch as a follower sends it and reads the answer, versions 15 to 18: the other side of `protocol.fetch`.

Written by hand for the same reason: all replicated records pass through it. Records are not copied but are views of the
frame they arrived in. Start at `encode_follower_fetch`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from moldau.protocol.api import MalformedRequestError, MalformedResponseError
from moldau.protocol.fetch import FetchRequest
from moldau.protocol.hot_fields import MAX_ELEMENTS, after_tags, compact_array_length, encode_uvarint, uvarint

__all__ = ["FollowerFetchResponse", "LeaderAnswer", "decode_follower_fetch", "encode_follower_fetch"]

FIRST_WITH_REPLICA_STATE: Final = 15

_HEAD: Final = struct.Struct(">iiibii")
_PARTITION: Final = struct.Struct(">iiqiqib")
"""With the count of tags, which is zero: what versions 17 and 18 add are hints."""
_REPLICA_STATE: Final = struct.Struct(">iqb")
_RESPONSE_HEAD: Final = struct.Struct(">ihi")
_ANSWER_HEAD: Final = struct.Struct(">ihqqq")
_INT32: Final = struct.Struct(">i")
_EPOCH_THEN_OFFSET: Final = struct.Struct(">iq")


class LeaderAnswer(NamedTuple):
    """The leader's answer for one partition."""

    topic_id: bytes
    partition: int
    error_code: int
    high_watermark: int
    log_start_offset: int
    diverging_epoch: tuple[int, int] | None
    """Epoch and its end offset, where the logs diverge."""
    records: memoryview


@dataclass(slots=True)
class FollowerFetchResponse:
    error_code: int
    session_id: int
    answers: list[LeaderAnswer] = field(default_factory=list)


def encode_follower_fetch(version: int, request: FetchRequest) -> bytes:
    """The body of a request; topics are keyed by topic id."""
    if version < FIRST_WITH_REPLICA_STATE:
        raise MalformedRequestError(f"followers fetch with version {FIRST_WITH_REPLICA_STATE} or later, not {version}")
    out = bytearray(
        _HEAD.pack(
            request.max_wait_ms,
            request.min_bytes,
            request.max_bytes,
            request.isolation_level,
            request.session_id,
            request.session_epoch,
        )
    )
    out += encode_uvarint(len(request.topics) + 1)
    for topic_id, partitions in request.topics:
        out += topic_id + encode_uvarint(len(partitions) + 1)
        for wanted in partitions:
            out += _PARTITION.pack(*wanted, 0)
        out += b"\0"
    out += encode_uvarint(len(request.forgotten) + 1)
    for topic_id, numbers in request.forgotten:
        out += topic_id + encode_uvarint(len(numbers) + 1) + struct.pack(f">{len(numbers)}i", *numbers) + b"\0"
    out += encode_uvarint(len(request.rack_id) + 1) + request.rack_id.encode()
    state = _REPLICA_STATE.pack(request.replica_id, request.replica_epoch, 0)
    return bytes(out + b"\x01\x01" + encode_uvarint(len(state)) + state)


def decode_follower_fetch(body: memoryview) -> FollowerFetchResponse:
    """Decode the body of a response; raises `MalformedResponseError` if it is invalid in any way."""
    try:
        return _decode(body)
    except (struct.error, IndexError, MalformedRequestError) as error:
        raise MalformedResponseError(f"the answer to a fetch cannot be read: {error}") from None


def _decode(body: memoryview) -> FollowerFetchResponse:
    end = len(body)
    _, error_code, session_id = _RESPONSE_HEAD.unpack_from(body)
    response = FollowerFetchResponse(error_code, session_id)
    topics, position = compact_array_length(body, _RESPONSE_HEAD.size, end)
    elements_left = MAX_ELEMENTS - topics
    for _ in range(topics):
        topic_id = bytes(body[position : position + 16])
        count, position = compact_array_length(body, position + 16, end)
        elements_left -= count
        if elements_left < 0:
            raise MalformedResponseError("the answer names too many partitions")
        for _ in range(count):
            answer, position = _answer(topic_id, body, position, end)
            response.answers.append(answer)
        position = after_tags(body, position, end)
    after_tags(body, position, end)
    return response


def _answer(topic_id: bytes, body: memoryview, position: int, end: int) -> tuple[LeaderAnswer, int]:
    number, error_code, high_watermark, _, log_start_offset = _ANSWER_HEAD.unpack_from(body, position)
    aborted, position = compact_array_length(body, position + _ANSWER_HEAD.size, end)
    if aborted:
        # Followers do not ask for them.
        raise MalformedResponseError(f"{aborted} aborted transactions in an answer to a follower")
    length, position = uvarint(body, position + _INT32.size, end)
    stop = position + max(length - 1, 0)
    if stop > end:
        raise MalformedResponseError(f"{length - 1} bytes of records where {end - position} are left")
    records = body[position:stop]
    diverging, position = _diverging_epoch(body, stop, end)
    return LeaderAnswer(topic_id, number, error_code, high_watermark, log_start_offset, diverging, records), position


def _diverging_epoch(body: memoryview, position: int, end: int) -> tuple[tuple[int, int] | None, int]:
    diverging: tuple[int, int] | None = None
    if position < end and not body[position]:
        return diverging, position + 1
    for tag, start, stop in _tags(body, position, end):
        if tag == 0:
            diverging = _EPOCH_THEN_OFFSET.unpack_from(body[:stop], start)
    return diverging, after_tags(body, position, end)


def _tags(body: memoryview, position: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield each tagged field: its tag, and where it starts and stops."""
    count, position = uvarint(body, position, end)
    for _ in range(count):
        tag, position = uvarint(body, position, end)
        length, position = uvarint(body, position, end)
        yield tag, position, min(position + length, end)
        position += length
