"""Where the records of a batch begin and end, and their keys: the parts of a record that compaction needs.

Values and headers are skipped, and kept records are copied byte for byte, which makes a pass over a batch several times
cheaper than decoding and encoding it. `protocol.records` decodes whole records. Start at `record_spans`.
"""

from __future__ import annotations

from collections.abc import Iterator

from moldau.protocol.compression import DEFAULT_LIMIT, DecompressionError, decompress
from moldau.protocol.record_batch import BATCH_OVERHEAD, BatchHeader
from moldau.protocol.records import InvalidRecordError

__all__ = ["RecordSpan", "record_spans", "unpacked_body", "with_timestamp_delta"]


RecordSpan = tuple[int, int, int, int, int, bytes | None, bool]
"""One record inside the unpacked body of its batch: where its length field begins, where its offset delta begins,
where it ends; its timestamp delta, its offset delta, its key, and whether it has a value.

A plain tuple: creating an object would cost as much as reading the record."""


def unpacked_body(batch: bytes | memoryview, header: BatchHeader, limit: int = DEFAULT_LIMIT) -> bytes:
    """Return the records of a batch as one byte string, decompressed if needed."""
    body = memoryview(batch)[BATCH_OVERHEAD : header.size_in_bytes]
    try:
        return decompress(header.codec, body, limit)
    except DecompressionError as error:
        raise InvalidRecordError(f"offset {header.base_offset}: {error}") from None


def record_spans(body: bytes, header: BatchHeader) -> Iterator[RecordSpan]:
    """Yield the records of an uncompressed body; raises `InvalidRecordError` if they do not match the header.

    This is the hot loop of cleaning: varints of one and two bytes, nearly all of them, are decoded inline.
    """
    position, body_end = 0, len(body)
    try:
        for _ in range(header.records_count):
            start = position
            size = body[position]
            position += 1
            if size > 0x7F:
                byte = body[position]
                position += 1
                size = size & 0x7F | byte << 7
                if byte > 0x7F:
                    size, position = _decode_varint(body, start)
            end = position + (size >> 1)
            stamp = body[position + 1]
            position += 2
            if stamp > 0x7F:
                stamp, position = _decode_varint(body, position - 1)
            after_timestamp = position
            delta = body[position]
            position += 1
            if delta > 0x7F:
                byte = body[position]
                position += 1
                delta = delta & 0x7F | byte << 7
                if byte > 0x7F:
                    delta, position = _decode_varint(body, after_timestamp)
            key_size = body[position]
            position += 1
            if key_size > 0x7F:
                key_size, position = _decode_varint(body, position - 1)
            if key_size & 1:
                key = None
            else:
                key_start = position
                position += key_size >> 1
                key = body[key_start:position]
            if size & 1 or end > body_end or position >= end:
                raise _damage_error(header, f"the lengths in the record at byte {start} contradict each other")
            has_value = body[position] != 1
            position = end
            stamp_delta = (stamp >> 1) ^ -(stamp & 1)
            yield start, after_timestamp, end, stamp_delta, (delta >> 1) ^ -(delta & 1), key, has_value
    except IndexError:
        raise _damage_error(header, "the last record is cut short") from None
    if position != body_end:
        raise _damage_error(
            header, f"its {header.records_count} records end {abs(body_end - position)} bytes before or after its end"
        )


def with_timestamp_delta(body: bytes, span: RecordSpan, timestamp_delta: int) -> bytes:
    """Return the same record with another timestamp delta, for a batch whose base timestamp changed."""
    start, after_timestamp, end, *_ = span
    attributes_at = _decode_varint(body, start)[1]
    stamped = body[attributes_at : attributes_at + 1] + _encode_varint(timestamp_delta)
    rest = body[after_timestamp:end]
    return _encode_varint(len(stamped) + len(rest)) + stamped + rest


def _decode_varint(body: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = body[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise InvalidRecordError(f"the varint that ends at byte {position} is too long")


def _encode_varint(value: int) -> bytes:
    zigzag = value << 1 if value >= 0 else ~(value << 1)
    output = bytearray()
    while zigzag > 0x7F:
        output.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    output.append(zigzag)
    return bytes(output)


def _damage_error(header: BatchHeader, why: str) -> InvalidRecordError:
    return InvalidRecordError(f"the batch at offset {header.base_offset} is damaged: {why}")
