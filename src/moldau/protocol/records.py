"""Records inside a magic-2 batch: decoded strictly, encoded as Kafka's own clients do.

For validation, compaction, recompression, tools and tests; the produce and fetch paths do not use it, they move whole
batches. The header is `protocol.record_batch`. Start at `decode_records` and `encode_batch`.

    length varint | attributes int8 | timestamp delta varlong | offset delta varint |
    key length varint, key | value length varint, value | header count varint, headers
    header: key length varint, key | value length varint, value          (all varints zigzag, -1 is null)
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from crc32c import crc32c

from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.compression import DEFAULT_LIMIT, DecompressionError, compress, decompress
from moldau.protocol.record_batch import (
    ATTRIBUTES_OFFSET,
    BATCH_OVERHEAD,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL_BIT,
    BatchHeader,
)

__all__ = [
    "ControlType",
    "InvalidRecordError",
    "Record",
    "control_batch",
    "control_key",
    "control_type",
    "crc_of",
    "decode_records",
    "encode_batch",
    "end_transaction_marker",
    "split_batches",
    "validated_records",
]

Buffer = bytes | bytearray | memoryview
Headers = tuple[tuple[str, bytes | None], ...]

_CONTROL_KEY: Final = struct.Struct(">hh")
_END_TXN_MARKER: Final = struct.Struct(">hi")


class InvalidRecordError(MoldauError):
    """A batch whose body does not match its header."""

    code = ErrorCode.INVALID_RECORD


class Record(NamedTuple):
    """One record; offset and timestamp are relative to the batch's base."""

    offset_delta: int
    timestamp_delta: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    attributes: int = 0


class ControlType(IntEnum):
    """The type of a control record; the second number of its key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


def crc_of(batch: Buffer) -> int:
    """CRC-32C of one whole batch, over everything from its attributes on."""
    return crc32c(memoryview(batch)[ATTRIBUTES_OFFSET:])


# --- reading ----------------------------------------------------------------------------------------


def decode_records(batch: Buffer, header: BatchHeader, *, limit: int = DEFAULT_LIMIT) -> Iterator[Record]:
    """Yield the records of one complete batch, whose header the caller has decoded.

    The body is decompressed at once, within `limit`; records are then decoded one by one. Anything but exactly
    `records_count` well-formed records raises `InvalidRecordError`, possibly after some valid ones. Offsets are not
    checked, since compacted batches have gaps; `validated_records` rejects those. Header keys that are not UTF-8 are
    decoded with surrogate escapes, and encoded back unchanged.
    """
    body = memoryview(batch)[BATCH_OVERHEAD : header.size_in_bytes]
    if len(body) != header.size_in_bytes - BATCH_OVERHEAD:
        raise InvalidRecordError(f"the batch is cut short: {len(batch)} bytes of {header.size_in_bytes}")
    try:
        data = decompress(header.attributes & CODEC_MASK, body, limit)
    except DecompressionError as error:
        raise InvalidRecordError(str(error)) from None
    return _records(data, header.records_count)


def validated_records(
    batch: Buffer, header: BatchHeader, *, require_keys: bool = False, limit: int = DEFAULT_LIMIT
) -> list[Record]:
    """Return the records of a batch as a producer must send it: offsets 0, 1, 2 … up to the last delta.

    Compacted topics require a key on each record.
    """
    records = list(decode_records(batch, header, limit=limit))
    if not records or len(records) != header.last_offset_delta + 1:
        raise InvalidRecordError(f"{len(records)} records, but the last offset delta is {header.last_offset_delta}")
    for expected, record in enumerate(records):
        if record.offset_delta != expected:
            raise InvalidRecordError(f"offset delta {record.offset_delta}, expected {expected}")
        if require_keys and record.key is None:
            raise InvalidRecordError(f"record {expected} has no key, and a compacted topic needs one")
    return records


def _records(data: bytes, count: int) -> Iterator[Record]:
    if count < 0:
        raise InvalidRecordError(f"the batch claims {count} records")
    position = 0
    try:
        for _ in range(count):
            record, position = _record(data, position)
            yield record
    except IndexError:
        raise InvalidRecordError("the last record is cut short") from None
    if position != len(data):
        raise InvalidRecordError(f"{len(data) - position} bytes follow the last of {count} records")


def _record(data: bytes, position: int) -> tuple[Record, int]:
    """Read one record; `IndexError` means that the data ended.

    One-byte varints, the usual case, are decoded inline: this is the inner loop of compaction.
    """
    size = data[position]
    position += 1
    if size > 0x7F:
        size, position = _long_varint(data, position - 1)
    end = position + ((size >> 1) ^ -(size & 1))
    if end > len(data):
        raise InvalidRecordError(f"a record claims {end - position} bytes, {len(data) - position} are left")

    attributes = data[position]
    stamp = data[position + 1]
    position += 2
    if stamp > 0x7F:
        stamp, position = _long_varint(data, position - 1, _VARLONG_BITS)
    delta = data[position]
    position += 1
    if delta > 0x7F:
        delta, position = _long_varint(data, position - 1)

    key, position = _nullable_bytes(data, position, end)
    value, position = _nullable_bytes(data, position, end)
    headers: Headers = ()
    count = data[position]
    position += 1
    if count:
        headers, position = _headers(data, position - 1, end)
    if position != end:
        raise InvalidRecordError(f"a record's fields end {abs(end - position)} bytes before or after its length")
    return (
        Record(
            (delta >> 1) ^ -(delta & 1),
            (stamp >> 1) ^ -(stamp & 1),
            key,
            value,
            headers,
            attributes if attributes < 0x80 else attributes - 256,
        ),
        position,
    )


def _nullable_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    size = data[position]
    position += 1
    if size > 0x7F:
        size, position = _long_varint(data, position - 1)
    if size & 1:
        if size != 1:
            raise InvalidRecordError(f"a field has the negative length {-(size >> 1) - 1}")
        return None, position
    stop = position + (size >> 1)
    if stop > end:
        raise InvalidRecordError(f"a field claims {size >> 1} bytes, its record has {end - position} left")
    return data[position:stop], stop


def _headers(data: bytes, position: int, end: int) -> tuple[Headers, int]:
    count, position = _long_varint(data, position)
    if count & 1 or count > end - position:  # every header takes two bytes at least
        raise InvalidRecordError(
            f"a record claims {(count >> 1) ^ -(count & 1)} headers, {end - position} bytes are left"
        )
    headers = []
    for _ in range(count >> 1):
        key, position = _nullable_bytes(data, position, end)
        if key is None:
            raise InvalidRecordError("a header without a key")
        value, position = _nullable_bytes(data, position, end)
        headers.append((key.decode("utf-8", "surrogateescape"), value))
    return tuple(headers), position


_VARINT_BITS: Final = 32
_VARLONG_BITS: Final = 64


def _long_varint(data: bytes, position: int, bits: int = _VARINT_BITS) -> tuple[int, int]:
    """Read an unsigned varint of any length up to `bits`; longer ones are rejected, as in Kafka."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift >= bits:
            raise InvalidRecordError(f"a varint of more than {bits} bits")
    if value >> bits:
        raise InvalidRecordError(f"a varint of more than {bits} bits")
    return value, position


def split_batches(data: Buffer) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield each complete batch in `data` with its header, as a fetch returns them.

    Stops before a truncated batch at the end; a length too small for a header raises.
    """
    view, position = memoryview(data), 0
    while len(view) - position >= BATCH_OVERHEAD:
        header = BatchHeader.at(view, position)
        if header.size_in_bytes < BATCH_OVERHEAD:
            raise InvalidRecordError(f"a batch of {header.size_in_bytes} bytes at {position}")
        end = position + header.size_in_bytes
        if end > len(view):
            return
        yield header, view[position:end]
        position = end


# --- writing ----------------------------------------------------------------------------------------


def encode_batch(
    records: Iterable[Record],
    *,
    base_timestamp: int,
    max_timestamp: int | None = None,
    base_offset: int = 0,
    last_offset_delta: int | None = None,
    codec: int = 0,
    level: int | None = None,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    partition_leader_epoch: int = -1,
) -> bytes:
    """Encode one batch. `attributes` are the bits besides the codec's.

    By default, `max_timestamp` is the newest record's and `last_offset_delta` the last record's; compaction passes
    both, since it may have removed the records they came from.
    """
    kept: Sequence[Record] = records if isinstance(records, Sequence) else list(records)
    if max_timestamp is None:
        max_timestamp = base_timestamp + max((record.timestamp_delta for record in kept), default=0)
    if last_offset_delta is None:
        last_offset_delta = kept[-1].offset_delta if kept else 0
    packed = compress(codec, _encoded_records(kept), level)
    return _assemble_batch(
        packed,
        base_offset,
        partition_leader_epoch,
        (
            attributes & ~CODEC_MASK | codec,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            len(kept),
        ),
    )


def _assemble_batch(body: bytes, base_offset: int, leader_epoch: int, rest: tuple[int, ...]) -> bytes:
    """Join header and body, then fill in the CRC, which covers most of the header too."""
    batch = bytearray(BATCH_OVERHEAD + len(body))
    HEADER.pack_into(batch, 0, base_offset, len(batch) - LOG_OVERHEAD, leader_epoch, MAGIC, 0, *rest)
    batch[BATCH_OVERHEAD:] = body
    batch[17:21] = crc_of(batch).to_bytes(4, "big")
    return bytes(batch)


def _encoded_records(records: Iterable[Record]) -> bytearray:
    output = bytearray()
    for record in records:
        body = _encoded_record(record)
        _put_varint(output, len(body))
        output += body
    return output


def _encoded_record(record: Record) -> bytearray:
    offset_delta, timestamp_delta, key, value, headers, attributes = record
    output = bytearray((attributes & 0xFF,))
    _put_varint(output, timestamp_delta)
    _put_varint(output, offset_delta)
    _put_nullable(output, key)
    _put_nullable(output, value)
    _put_varint(output, len(headers))
    for name, content in headers:
        _put_nullable(output, name.encode("utf-8", "surrogateescape"))
        _put_nullable(output, content)
    return output


def _put_nullable(output: bytearray, content: bytes | None) -> None:
    if content is None:
        output.append(1)
    else:
        _put_varint(output, len(content))
        output += content


def _put_varint(output: bytearray, value: int) -> None:
    zigzag = value << 1 if value >= 0 else ~(value << 1)
    while zigzag > 0x7F:
        output.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    output.append(zigzag)


# --- control batches --------------------------------------------------------------------------------


def control_key(kind: ControlType) -> bytes:
    """The key of a control record: the key's version and the type."""
    return _CONTROL_KEY.pack(0, kind)


def control_batch(
    kind: ControlType,
    value: bytes,
    *,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    attributes: int = 0,
) -> bytes:
    """Encode a batch of one control record, which takes an offset and is never returned to applications."""
    return encode_batch(
        (Record(0, 0, control_key(kind), value),),
        base_timestamp=timestamp,
        base_offset=base_offset,
        attributes=attributes | CONTROL_BIT,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        partition_leader_epoch=partition_leader_epoch,
    )


def end_transaction_marker(
    kind: ControlType,
    *,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    partition_leader_epoch: int = -1,
) -> bytes:
    """Encode the marker that commits or aborts a producer's open transaction."""
    return control_batch(
        kind,
        _END_TXN_MARKER.pack(0, coordinator_epoch),
        timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        partition_leader_epoch=partition_leader_epoch,
        attributes=TRANSACTIONAL_BIT,
    )


def control_type(key: bytes | None) -> int:
    """Decode a control record's key. The number may be one this release has no name for."""
    if key is None or len(key) < _CONTROL_KEY.size:
        raise InvalidRecordError("a control record without a type")
    kind: int = _CONTROL_KEY.unpack_from(key)[1]
    return kind
