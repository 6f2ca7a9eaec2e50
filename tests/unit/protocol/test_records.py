"""Records in a batch: round trips, other people's batches, and everything that is not a record."""

from __future__ import annotations

import struct
import warnings

import pytest

from moldau.protocol.compression import Codec
from moldau.protocol.record_batch import BATCH_OVERHEAD, DELETE_HORIZON_BIT, HEADER, LOG_APPEND_TIME_BIT, BatchHeader
from moldau.protocol.records import (
    ControlType,
    InvalidRecordError,
    Record,
    control_batch,
    control_type,
    crc_of,
    decode_records,
    encode_batch,
    end_transaction_marker,
    split_batches,
    validated_records,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python loads its schemas the old way
    from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

RECORDS = [
    Record(0, 0, b"key", b"value"),
    Record(1, 5, None, None),
    Record(2, -3, b"", b"", (("trace", b"\x00\x01"), ("", None), ("trace", b""))),
    Record(3, 2**40, b"k" * 200, b"v" * 70_000, (("ž", b"x"),) * 100),
]


def decoded(batch: bytes) -> list[Record]:
    return list(decode_records(batch, BatchHeader.at(batch)))


def batch_of(body: bytes, count: int) -> bytes:
    return HEADER.pack(0, BATCH_OVERHEAD - 12 + len(body), -1, 2, 0, 0, count - 1, 0, 0, -1, -1, -1, count) + body


@pytest.mark.parametrize("codec", list(Codec))
def test_records_survive_every_codec(codec: Codec) -> None:
    assert decoded(encode_batch(RECORDS, base_timestamp=1_000, codec=codec)) == RECORDS


def test_the_header_tells_what_was_asked_for() -> None:
    batch = encode_batch(
        RECORDS,
        base_timestamp=1_000,
        base_offset=42,
        codec=Codec.LZ4,
        attributes=LOG_APPEND_TIME_BIT | DELETE_HORIZON_BIT,
        producer_id=7,
        producer_epoch=3,
        base_sequence=11,
        partition_leader_epoch=5,
    )
    header = BatchHeader.at(batch)
    assert (header.base_offset, header.last_offset, header.records_count) == (42, 45, 4)
    assert (header.base_timestamp, header.max_timestamp) == (1_000, 1_000 + 2**40)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, 11)
    assert (header.magic, header.partition_leader_epoch, header.codec) == (2, 5, Codec.LZ4)
    assert header.has_log_append_time
    assert header.delete_horizon_ms == 1_000
    assert header.size_in_bytes == len(batch)
    assert header.crc == crc_of(batch)


def test_compaction_may_keep_the_last_offset_of_records_that_are_gone() -> None:
    empty = encode_batch([], base_timestamp=0, max_timestamp=9, last_offset_delta=12)
    header = BatchHeader.at(empty)
    assert (header.last_offset_delta, header.records_count, header.max_timestamp) == (12, 0, 9)
    assert decoded(empty) == []
    assert [record.offset_delta for record in decoded(encode_batch(RECORDS[::2], base_timestamp=0))] == [0, 2]


def test_header_keys_that_are_no_utf8_come_back_byte_for_byte() -> None:
    body = bytes([0, 0, 0, 1, 1, 2, 4, 0xFF, 0xFE, 1])
    batch = batch_of(bytes([len(body) * 2]) + body, 1)
    assert encode_batch(decoded(batch), base_timestamp=0)[BATCH_OVERHEAD:] == batch[BATCH_OVERHEAD:]


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_of_kafka_python_are_read(codec: Codec) -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=int(codec), is_transactional=False, producer_id=-1, producer_epoch=-1,
        base_sequence=-1, batch_size=1 << 30,
    )  # fmt: skip
    for n in range(50):
        builder.append(n, 1_000 + n, b"k%d" % n, b"v" * n, [("h", b"%d" % n)])
    batch = bytes(builder.build())
    header = BatchHeader.at(batch)
    records = validated_records(batch, header, require_keys=True)
    assert header.crc == crc_of(batch)
    assert [record.value for record in records] == [b"v" * n for n in range(50)]
    assert [header.base_timestamp + record.timestamp_delta for record in records] == [1_000 + n for n in range(50)]


@pytest.mark.parametrize("codec", list(Codec))
def test_kafka_python_reads_our_batches(codec: Codec) -> None:
    batch = DefaultRecordBatch(encode_batch(RECORDS, base_timestamp=1_000, base_offset=10, codec=codec))
    assert batch.validate_crc()
    seen = [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in batch]
    assert seen == [(10 + r.offset_delta, 1_000 + r.timestamp_delta, r.key, r.value, list(r.headers)) for r in RECORDS]


def test_validation_refuses_offsets_with_holes_missing_keys_and_wrong_deltas() -> None:
    def validate(records: list[Record], *, last_offset_delta: int | None = None, require_keys: bool = False) -> None:
        batch = encode_batch(records, base_timestamp=0, last_offset_delta=last_offset_delta)
        validated_records(batch, BatchHeader.at(batch), require_keys=require_keys)

    good = [Record(n, 0, b"k", b"v") for n in range(3)]
    validate(good, require_keys=True)
    validate([record._replace(key=None) for record in good])
    with pytest.raises(InvalidRecordError, match="no key"):
        validate([good[0], good[1]._replace(key=None)], require_keys=True)
    with pytest.raises(InvalidRecordError, match="offset delta 2, expected 1"):
        validate([good[0], good[2], good[1]], last_offset_delta=2)
    with pytest.raises(InvalidRecordError, match="last offset delta"):
        validate(good, last_offset_delta=7)
    with pytest.raises(InvalidRecordError):
        validate([])


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b"garbage!", 1),
        (b"", 1),
        (b"\x0c\x00\x00\x00\x01\x01\x00", 2),
        (b"\x0c\x00\x00\x00\x01\x01\x00", 0),
        (b"\x0c\x00\x00\x00\x01\x01\x00", -1),
        (b"\x0e\x00\x00\x00\x01\x01\x00", 1),
        (b"\x0a\x00\x00\x00\x01\x01\x00", 1),
        (b"\x0c\x00\x00\x00\x03\x01\x00", 1),
        (b"\x0c\x00\x00\x00\x01\x7e\x00", 1),
        (b"\x0c\x00\x00\x00\x01\x01\x01", 1),
        (b"\x14\x00\x00\x00\x01\x01\xfe\xff\xff\xff\x0f", 1),
        (b"\x10\x00\x00\x00\x01\x01\x02\x01\x01", 1),
        (b"\x01\x00\x00\x00\x01\x01\x00", 1),
        (b"\x16\x00\x00\xff\xff\xff\xff\xff\x01\x01\x01\x00", 1),
        (b"\x14\x00\x00\xff\xff\xff\xff\x7f\x01\x01\x00", 1),
        (b"\x20\x00" + b"\xff" * 10 + b"\x01\x00\x01\x01\x00", 1),
    ],
    ids=[
        "noise",
        "no record",
        "fewer records than said",
        "more records than said",
        "a negative count",
        "a length beyond the batch",
        "a length short of the fields",
        "a key length below null",
        "a value beyond the record",
        "a negative header count",
        "four billion headers",
        "a header without key",
        "a negative record length",
        "a varint of six bytes",
        "a varint beyond 32 bits",
        "a varlong of eleven bytes",
    ],
)
def test_bodies_that_are_no_records_are_invalid(body: bytes, count: int) -> None:
    with pytest.raises(InvalidRecordError):
        decoded(batch_of(body, count))


def test_a_batch_cut_at_any_byte_is_invalid() -> None:
    batch = encode_batch(RECORDS[:3], base_timestamp=0)
    for end in range(BATCH_OVERHEAD, len(batch)):
        with pytest.raises(InvalidRecordError):
            list(decode_records(batch[:end], BatchHeader.at(batch)))
        body = batch[BATCH_OVERHEAD:end]
        with pytest.raises(InvalidRecordError):
            decoded(batch_of(body, 3))


def test_a_compression_bomb_is_an_invalid_record() -> None:
    batch = encode_batch([Record(0, 0, None, bytes(1_000_000))], base_timestamp=0, codec=Codec.ZSTD)
    with pytest.raises(InvalidRecordError, match="more than 1000 bytes"):
        decode_records(batch, BatchHeader.at(batch), limit=1_000)


def test_batches_are_split_where_their_lengths_say() -> None:
    batches = [encode_batch(RECORDS[:n], base_timestamp=0, base_offset=n) for n in (1, 2, 3)]
    data = b"".join(batches)
    assert [bytes(view) for _, view in split_batches(data)] == batches
    assert [header.base_offset for header, _ in split_batches(data[:-1])] == [1, 2]
    with pytest.raises(InvalidRecordError):
        list(split_batches(struct.pack(">qi", 0, -20) + bytes(60)))


def test_transaction_markers_are_control_batches_of_the_producer() -> None:
    batch = end_transaction_marker(
        ControlType.COMMIT, timestamp=99, producer_id=5, producer_epoch=2, coordinator_epoch=8
    )
    header = BatchHeader.at(batch)
    (record,) = decoded(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 2, -1)
    assert (record.key, record.value) == (b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x08")
    assert control_type(record.key) == ControlType.COMMIT


def test_control_batches_carry_their_type_in_the_key() -> None:
    (record,) = decoded(control_batch(ControlType.LEADER_CHANGE, b"body", timestamp=1))
    assert control_type(record.key) == ControlType.LEADER_CHANGE
    for key in (None, b"\x00\x00\x00"):
        with pytest.raises(InvalidRecordError):
            control_type(key)
