"""Where the records of a batch begin and end, and their keys: all of a record that compaction looks at.

Values and headers are passed over unread, and survivors are copied as the bytes they are, which makes a pass
over a batch several times cheaper than decoding and encoding it. `protocol.records` reads records whole.
Start at `record_spans`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from moldau.protocol.compression import DEFAULT_LIMIT, DecompressionError, decompress
from moldau.protocol.record_batch import BATCH_OVERHEAD, BatchHeader
from moldau.protocol.records import InvalidRecordError

__all__ = ["RecordSpan", "record_spans", "restamped", "unpacked_body"]


class RecordSpan(NamedTuple):
    """One record inside the unpacked body of its batch."""

    start: int
    """Where its length field begins."""
    after_timestamp: int
    """Where its offset delta begins."""
    end: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


def unpacked_body(batch: bytes | memoryview, header: BatchHeader, limit: int = DEFAULT_LIMIT) -> bytes:
    """The records of a batch in one piece, unpacked if need be."""
    body = memoryview(batch)[BATCH_OVERHEAD : header.size_in_bytes]
    try:
        return decompress(header.codec, body, limit)
    except DecompressionError as error:
        raise InvalidRecordError(f"offset {header.base_offset}: {error}") from None


def record_spans(body: bytes, header: BatchHeader) -> Iterator[RecordSpan]:
    """Walk the records of an unpacked body; raises `InvalidRecordError` where they are not what the header says."""
    position = 0
    try:
        for _ in range(header.records_count):
            span = _span(body, position)
            yield span
            position = span.end
    except IndexError:
        raise _damaged(header, "the last record is cut short") from None
    if position != len(body):
        raise _damaged(header, f"{len(body) - position} bytes off after {header.records_count} records")


def restamped(body: bytes, span: RecordSpan, timestamp_delta: int) -> bytes:
    """The same record with another timestamp delta, for a batch whose base timestamp changed."""
    attributes_at = _varint(body, span.start)[1]
    stamped = body[attributes_at : attributes_at + 1] + _encoded(timestamp_delta)
    rest = body[span.after_timestamp : span.end]
    return _encoded(len(stamped) + len(rest)) + stamped + rest


def _span(body: bytes, start: int) -> RecordSpan:
    """Read one record up to its value's length; one-byte varints, the usual case, in place."""
    size = body[start]
    position = start + 1
    if size > 0x7F:
        size, position = _varint(body, start)
    end = position + (size >> 1)
    stamp = body[position + 1]
    position += 2
    if stamp > 0x7F:
        stamp, position = _varint(body, position - 1)
    after_timestamp = position
    delta = body[position]
    position += 1
    if delta > 0x7F:
        delta, position = _varint(body, position - 1)
    key_size = body[position]
    position += 1
    if key_size > 0x7F:
        key_size, position = _varint(body, position - 1)
    key = None
    if not key_size & 1:
        key = body[position : position + (key_size >> 1)]
        position += key_size >> 1
    if size & 1 or end > len(body) or position >= end:
        raise InvalidRecordError(f"a record at byte {start} whose lengths contradict each other")
    return RecordSpan(
        start,
        after_timestamp,
        end,
        (stamp >> 1) ^ -(stamp & 1),
        (delta >> 1) ^ -(delta & 1),
        key,
        body[position] != 1,
    )


def _varint(body: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = body[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise InvalidRecordError(f"a varint without end at byte {position}")


def _encoded(value: int) -> bytes:
    zigzag = value << 1 if value >= 0 else ~(value << 1)
    output = bytearray()
    while zigzag > 0x7F:
        output.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    output.append(zigzag)
    return bytes(output)


def _damaged(header: BatchHeader, why: str) -> InvalidRecordError:
    return InvalidRecordError(f"the batch at offset {header.base_offset} is damaged: {why}")
