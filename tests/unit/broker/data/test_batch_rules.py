"""What a batch's header tells, and what its body has to."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from crc32c import crc32c

from moldau.broker.data.batch_bodies import open_batch
from moldau.broker.data.batch_rules import BatchRules, RefusedBatchError, checked_header, stamp_append_time
from moldau.core.errors import ErrorCode
from moldau.log.config import LogConfig
from moldau.protocol.record_batch import HEADER, BatchHeader
from moldau.protocol.records import Record, crc_of, decode_records, encode_batch

NOW_MS = 1_700_000_000_000


def rules(**config: Any) -> BatchRules:
    return BatchRules.of(LogConfig(**config))


def batch(count: int = 3, **fields: Any) -> bytearray:
    records = [Record(index, 0, b"k", b"v%d" % index) for index in range(count)]
    return bytearray(encode_batch(records, base_timestamp=NOW_MS, **fields))


def forged(**fields: int) -> bytearray:
    """A batch whose header says something else, with a checksum that fits."""
    honest = batch()
    header = BatchHeader.at(honest)._replace(**fields)
    HEADER.pack_into(honest, 0, *header)
    struct.pack_into(">I", honest, 17, crc32c(bytes(honest[21:])))
    return honest


def refusal(data: bytes | bytearray, version: int = 9, **config: Any) -> ErrorCode:
    padded = memoryview(bytearray(b"?" * 5 + data + b"?" * 100))
    with pytest.raises(RefusedBatchError) as caught:
        checked_header(padded, 5, 5 + len(data), version, rules(**config))
    return caught.value.error_code


def test_a_good_batch_passes_and_gives_its_header() -> None:
    data = batch()
    assert checked_header(memoryview(data), 0, len(data), 9, rules()) == BatchHeader.at(data)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"magic": 1}, ErrorCode.INVALID_RECORD),
        ({"base_offset": 5}, ErrorCode.INVALID_RECORD),
        ({"records_count": 4}, ErrorCode.INVALID_RECORD),
        ({"records_count": 0, "last_offset_delta": -1}, ErrorCode.INVALID_RECORD),
        ({"last_offset_delta": 7}, ErrorCode.INVALID_RECORD),
        ({"producer_id": 7, "base_sequence": -1}, ErrorCode.INVALID_RECORD),
        ({"attributes": 0x20}, ErrorCode.INVALID_RECORD),
        ({"attributes": 5}, ErrorCode.INVALID_RECORD),
        ({"attributes": 0x08}, ErrorCode.INVALID_TIMESTAMP),
        ({"batch_length": 10}, ErrorCode.CORRUPT_MESSAGE),
        ({"batch_length": 1_000_000}, ErrorCode.CORRUPT_MESSAGE),
        ({"batch_length": -1}, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_headers_that_contradict_themselves_are_refused(fields: dict[str, int], code: ErrorCode) -> None:
    assert refusal(forged(**fields)) == code


def test_any_flipped_bit_behind_the_checksum_is_corrupt() -> None:
    for position in range(21, len(batch())):
        damaged = batch()
        damaged[position] ^= 1
        assert refusal(damaged) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (batch() + batch(), ErrorCode.INVALID_RECORD),
        (bytes(batch())[:40], ErrorCode.CORRUPT_MESSAGE),
        (bytes(16) + b"\x01" + bytes(20), ErrorCode.INVALID_RECORD),
    ],
)
def test_anything_but_one_whole_batch_is_refused(data: bytes, code: ErrorCode) -> None:
    assert refusal(data) == code


def test_sizes_have_their_limits() -> None:
    size = len(batch())
    assert refusal(batch(), max_message_bytes=size - 1) == ErrorCode.MESSAGE_TOO_LARGE
    assert refusal(batch(), segment_bytes=size - 1) == ErrorCode.RECORD_LIST_TOO_LARGE


def test_zstd_came_with_version_7() -> None:
    assert refusal(batch(codec=4), version=6) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    data = batch(codec=4)
    assert checked_header(memoryview(data), 0, len(data), 7, rules())


def test_append_time_is_stamped_in_place_and_checks() -> None:
    data = batch()
    header = stamp_append_time(memoryview(data), BatchHeader.at(data), NOW_MS + 5)
    assert header == BatchHeader.at(data)
    assert BatchHeader.at(data).has_log_append_time
    assert (header[8], header[4]) == (NOW_MS + 5, crc_of(data))


@pytest.mark.parametrize(
    ("config", "is_plain"),
    [
        ({}, True),
        ({"cleanup_policy": frozenset({"compact"})}, False),
        ({"compression_type": "zstd"}, False),
        ({"message_timestamp_type": "LogAppendTime"}, False),
        ({"moldau_flush_on_ack": True}, True),
        ({"moldau_validate_records": True}, False),
        ({"message_timestamp_before_max_ms": 1000}, False),
        ({"confluent_key_schema_validation": True}, False),
        ({"confluent_value_schema_validation": True}, False),
        ({"confluent_value_subject_name_strategy": "RecordNameStrategy"}, True),
    ],
)
def test_only_topics_without_wishes_take_the_short_way(config: dict[str, Any], is_plain: bool) -> None:
    assert rules(**config).is_header_enough is is_plain


def body_refusal(data: bytearray, **config: Any) -> RefusedBatchError:
    with pytest.raises(RefusedBatchError) as caught:
        open_batch(data, BatchHeader.at(data), rules(**config), NOW_MS)
    return caught.value


def test_compacted_topics_name_the_records_without_key() -> None:
    records = [Record(0, 0, b"k", b""), Record(1, 0, None, b""), Record(2, 0, b"", b""), Record(3, 0, None, b"")]
    data = bytearray(encode_batch(records, base_timestamp=NOW_MS))
    error = body_refusal(data, cleanup_policy=frozenset({"compact"}))
    assert (error.error_code, [one.batch_index for one in error.record_errors]) == (ErrorCode.INVALID_RECORD, [1, 3])


def test_of_many_refused_records_all_are_named_and_the_first_in_words() -> None:
    data = bytearray(encode_batch([Record(place, 0, None, b"") for place in range(250)], base_timestamp=NOW_MS))
    errors = body_refusal(data, cleanup_policy=frozenset({"compact"})).record_errors
    assert [one.batch_index for one in errors] == list(range(250))
    assert [one.message is None for one in errors] == [False] * 100 + [True] * 150


@pytest.mark.parametrize("delta", [-2000, 3_700_000])
def test_timestamps_outside_of_the_bounds_are_named(delta: int) -> None:
    data = bytearray(encode_batch([Record(0, 0, b"", b""), Record(1, delta, b"", b"")], base_timestamp=NOW_MS))
    error = body_refusal(data, message_timestamp_before_max_ms=1000)
    assert (error.error_code, [one.batch_index for one in error.record_errors]) == (ErrorCode.INVALID_TIMESTAMP, [1])


def test_a_newest_timestamp_that_no_record_has_is_refused_all_the_same() -> None:
    data = batch(max_timestamp=NOW_MS + 10**9)
    assert body_refusal(data).error_code == ErrorCode.INVALID_TIMESTAMP


def test_a_body_that_is_garbage_is_refused() -> None:
    data = batch()
    data[70:] = b"\xff" * (len(data) - 70)
    assert body_refusal(data).error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_recompression_keeps_records_and_producer(codec: str) -> None:
    data = batch(200, producer_id=9, producer_epoch=2, base_sequence=77)
    before = BatchHeader.at(data)
    packed = open_batch(data, before, rules(compression_type=codec), NOW_MS).batch
    after = BatchHeader.at(packed)
    assert after.codec == ["", "gzip", "snappy", "lz4", "zstd"].index(codec)
    assert (after.producer_id, after.base_sequence, after.max_timestamp) == (9, 77, before.max_timestamp)
    assert list(decode_records(packed, after)) == list(decode_records(data, before))
    assert checked_header(memoryview(packed), 0, len(packed), 9, rules())


def test_the_producers_codec_is_kept_where_it_is_the_topics() -> None:
    data = batch(codec=3)
    assert open_batch(data, BatchHeader.at(data), rules(compression_type="lz4"), NOW_MS).batch is data


def test_a_batch_that_grows_past_the_limit_is_refused() -> None:
    data = batch(1000, codec=1)
    error = body_refusal(data, compression_type="uncompressed", max_message_bytes=len(data))
    assert error.error_code == ErrorCode.MESSAGE_TOO_LARGE
