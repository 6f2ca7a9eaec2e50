"""Batches that contradict themselves or the topic: each has its error code, nothing of them is kept, and the
connection goes on."""

from __future__ import annotations

import gzip
import itertools
import resource
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import zstandard
from tests.integration.stranger import Stranger, batch_of, forged, produce_body

from moldau.core.errors import ErrorCode
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message
from moldau.protocol.record_batch import CONTROL_BIT, LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT
from moldau.protocol.records import Record, encode_batch
from moldau.testing import Broker

HOUR_MS = 3_600_000
_serial = itertools.count()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def stranger(broker: Broker) -> Iterator[Stranger]:
    with Stranger(broker.port) as connected:
        yield connected


def new_topic(stranger: Stranger, **configs: Any) -> str:
    name = f"records-{next(_serial)}"
    stranger.create_topic(name, **configs)
    return name


def assert_refused(stranger: Stranger, topic: str, records: bytes | None, code: ErrorCode) -> Message:
    """The batch gets `code`, nothing of it is kept, and a good one on the same connection is taken."""
    kept = stranger.values(topic)
    answer = stranger.produce(topic, records)
    assert ErrorCode(answer.error_code) is code
    assert answer.base_offset == -1
    assert stranger.produce(topic, batch_of(b"good")).error_code == 0
    assert stranger.values(topic) == [*kept, b"good"]
    return answer


def with_wrong_crc(batch: bytes) -> bytes:
    return forged(batch, crc=12345)


CONTRADICTIONS: dict[str, tuple[Callable[[bytes], bytes | None], ErrorCode]] = {
    "no records": (lambda _: b"", ErrorCode.INVALID_RECORD),
    "null records": (lambda _: None, ErrorCode.INVALID_RECORD),
    "two batches": (lambda batch: batch + batch, ErrorCode.INVALID_RECORD),
    "magic 0": (lambda batch: forged(batch, magic=0), ErrorCode.INVALID_RECORD),
    "magic 1": (lambda batch: forged(batch, magic=1), ErrorCode.INVALID_RECORD),
    "magic 3": (lambda batch: forged(batch, magic=3), ErrorCode.INVALID_RECORD),
    "wrong CRC": (with_wrong_crc, ErrorCode.CORRUPT_MESSAGE),
    "one bit flipped": (lambda batch: batch[:-3] + bytes([batch[-3] ^ 4]) + batch[-2:], ErrorCode.CORRUPT_MESSAGE),
    "shorter than a header": (lambda batch: batch[:60], ErrorCode.CORRUPT_MESSAGE),
    "length too large": (lambda batch: forged(batch, batch_length=len(batch)), ErrorCode.CORRUPT_MESSAGE),
    "length too small": (lambda batch: forged(batch, batch_length=10), ErrorCode.CORRUPT_MESSAGE),
    "length negative": (lambda batch: forged(batch, batch_length=-1), ErrorCode.CORRUPT_MESSAGE),
    "cut short": (lambda batch: batch[:-5], ErrorCode.CORRUPT_MESSAGE),
    "base offset": (lambda batch: forged(batch, base_offset=7), ErrorCode.INVALID_RECORD),
    "last offset delta": (lambda batch: forged(batch, last_offset_delta=5), ErrorCode.INVALID_RECORD),
    "negative offset delta": (lambda batch: forged(batch, last_offset_delta=-1), ErrorCode.INVALID_RECORD),
    "count": (lambda batch: forged(batch, records_count=9), ErrorCode.INVALID_RECORD),
    "no count": (lambda b: forged(b, records_count=0, last_offset_delta=-1), ErrorCode.INVALID_RECORD),
    "negative count": (lambda b: forged(b, records_count=-4, last_offset_delta=-5), ErrorCode.INVALID_RECORD),
    "control batch": (lambda batch: forged(batch, attributes=CONTROL_BIT), ErrorCode.INVALID_RECORD),
    "no sequence": (lambda b: forged(b, producer_id=5, producer_epoch=0), ErrorCode.INVALID_RECORD),
    "broker's timestamps": (lambda b: forged(b, attributes=LOG_APPEND_TIME_BIT), ErrorCode.INVALID_TIMESTAMP),
}


@pytest.mark.parametrize("contradiction", CONTRADICTIONS)
def test_batch_that_contradicts_itself_is_refused(stranger: Stranger, contradiction: str) -> None:
    forge, code = CONTRADICTIONS[contradiction]
    assert_refused(stranger, new_topic(stranger), forge(batch_of(b"one", b"two")), code)


def test_every_contradiction_in_one_request_after_the_other_leaves_nothing_behind(stranger: Stranger) -> None:
    topic = new_topic(stranger)
    for forge, code in CONTRADICTIONS.values():
        assert stranger.produce(topic, forge(batch_of(b"one", b"two"))).error_code == code
    assert stranger.values(topic) == []


def test_batch_over_the_largest_message_is_refused(stranger: Stranger) -> None:
    topic = new_topic(stranger, max_message_bytes=1000)
    assert_refused(stranger, topic, batch_of(b"x" * 2000), ErrorCode.MESSAGE_TOO_LARGE)


def test_batch_over_the_segment_size_is_refused(stranger: Stranger) -> None:
    topic = new_topic(stranger, segment_bytes=1 << 20, max_message_bytes=4 << 20)
    assert_refused(stranger, topic, batch_of(b"x" * (2 << 20)), ErrorCode.RECORD_LIST_TOO_LARGE)


def test_timestamp_too_far_ahead_is_refused_and_says_so(stranger: Stranger) -> None:
    now_ms = int(time.time() * 1000)
    batch = batch_of(b"tomorrow", timestamp_ms=now_ms + 24 * HOUR_MS)
    answer = assert_refused(stranger, new_topic(stranger), batch, ErrorCode.INVALID_TIMESTAMP)
    assert [error.batch_index for error in answer.record_errors] == [0]


def test_timestamp_too_old_is_refused_where_the_topic_says_so(stranger: Stranger) -> None:
    topic = new_topic(stranger, message_timestamp_before_max_ms=HOUR_MS)
    old = batch_of(b"yesterday", timestamp_ms=int(time.time() * 1000) - 24 * HOUR_MS)
    assert_refused(stranger, topic, old, ErrorCode.INVALID_TIMESTAMP)


@pytest.mark.parametrize("acks", [2, -2, 7, 32767])
def test_unknown_acks_are_refused(stranger: Stranger, acks: int) -> None:
    topic = new_topic(stranger)
    assert stranger.produce(topic, batch_of(b"x"), acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert stranger.values(topic) == []


def test_zstd_in_an_old_version_is_refused(stranger: Stranger) -> None:
    topic = new_topic(stranger)
    batch = encode_batch([Record(0, 0, b"k", b"v")], base_timestamp=int(time.time() * 1000), codec=4)
    sent = stranger.send_request(ApiKey.PRODUCE, 6, produce_body(topic, batch))
    answer = stranger.answer(ApiKey.PRODUCE, 6, sent).responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert stranger.values(topic) == []


def test_transactional_batch_without_a_transactional_id_is_refused(stranger: Stranger) -> None:
    batch = forged(batch_of(b"x"), attributes=TRANSACTIONAL_BIT, producer_id=1, producer_epoch=0, base_sequence=0)
    answer = stranger.produce(new_topic(stranger), batch)
    assert answer.error_code != 0


def test_unknown_topic_and_partition_are_named(stranger: Stranger) -> None:
    assert stranger.produce("nobody-made-this", batch_of(b"x")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for partition in (1, -1, 2_000_000_000):
        answer = stranger.produce(new_topic(stranger), batch_of(b"x"), partition=partition)
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert stranger.is_served()


def test_refused_produce_without_acknowledgement_closes_the_connection(broker: Broker, stranger: Stranger) -> None:
    topic = new_topic(stranger)
    with Stranger(broker.port) as careless:
        careless.send_produce(topic, with_wrong_crc(batch_of(b"x")), acks=0)
        assert careless.is_closed()
    assert stranger.values(topic) == []


def test_good_partitions_of_a_request_are_kept_when_another_is_refused(stranger: Stranger) -> None:
    topic = f"records-{next(_serial)}"
    stranger.create_topic(topic, partitions=2)
    name = topic.encode()
    body = struct.pack(">hhiih", -1, -1, 10_000, 1, len(name)) + name + struct.pack(">i", 2)
    for partition, batch in enumerate((batch_of(b"kept"), with_wrong_crc(batch_of(b"refused")))):
        body += struct.pack(">ii", partition, len(batch)) + batch
    answer = stranger.answer(ApiKey.PRODUCE, 8, stranger.send_request(ApiKey.PRODUCE, 8, body))
    codes = {each.index: each.error_code for each in answer.responses[0].partition_responses}
    assert codes == {0: 0, 1: ErrorCode.CORRUPT_MESSAGE}
    assert stranger.values(topic) == [b"kept"]


OPENED = [{"cleanup_policy": "compact"}, {"moldau_validate_records": "true"}, {"compression_type": "lz4"}]
GARBAGE: dict[str, Callable[[bytes], bytes]] = {
    "noise": lambda batch: forged(batch, body=b"\x9d\x02noise" * 7),
    "empty": lambda batch: forged(batch, body=b""),
    "cut short": lambda batch: forged(batch, body=batch[61:-4]),
    "bytes after the last record": lambda batch: forged(batch, body=batch[61:] + b"\0"),
    "more records than told": lambda batch: forged(batch, records_count=1, last_offset_delta=0),
    "fewer records than told": lambda batch: forged(batch, records_count=3, last_offset_delta=2),
    "record length that lies": lambda batch: forged(batch, body=b"\xfe\xff\xff\xff\x0f" + batch[62:]),
    "says gzip, is not": lambda batch: forged(batch, attributes=1),
    "says snappy, is not": lambda batch: forged(batch, attributes=2),
    "says lz4, is not": lambda batch: forged(batch, attributes=3),
    "says zstd, is not": lambda batch: forged(batch, attributes=4),
}


@pytest.mark.parametrize("config", OPENED, ids=lambda config: next(iter(config)))
@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_is_refused_where_bodies_are_opened(stranger: Stranger, config: dict[str, str], garbage: str) -> None:
    topic = new_topic(stranger, **config)
    batch = GARBAGE[garbage](batch_of(b"one", b"two"))
    assert stranger.produce(topic, batch_of(b"first")).error_code == 0
    assert stranger.produce(topic, batch).error_code == ErrorCode.INVALID_RECORD
    assert stranger.produce(topic, batch_of(b"last")).error_code == 0
    assert stranger.values(topic) == [b"first", b"last"]


@pytest.mark.parametrize("codec", [5, 6, 7])
@pytest.mark.parametrize("config", [{}, *OPENED], ids=lambda config: next(iter(config), "plain"))
def test_unknown_codec_is_refused(stranger: Stranger, config: dict[str, str], codec: int) -> None:
    topic = new_topic(stranger, **config)
    assert stranger.produce(topic, forged(batch_of(b"x"), attributes=codec)).error_code != 0
    assert stranger.values(topic) == []


def test_offset_deltas_out_of_order_are_refused_where_bodies_are_opened(stranger: Stranger) -> None:
    topic = new_topic(stranger, cleanup_policy="compact")
    records = [Record(0, 0, b"k", b"a"), Record(0, 0, b"k", b"b")]
    batch = encode_batch(records, base_timestamp=int(time.time() * 1000), last_offset_delta=1)
    assert stranger.produce(topic, batch).error_code == ErrorCode.INVALID_RECORD
    assert stranger.values(topic) == []


def test_record_without_key_is_refused_by_a_compacted_topic_and_named(stranger: Stranger) -> None:
    topic = new_topic(stranger, cleanup_policy="compact")
    answer = assert_refused(stranger, topic, batch_of(b"x", b"y", key=None), ErrorCode.INVALID_RECORD)
    assert {error.batch_index for error in answer.record_errors} <= {0, 1}
    assert answer.record_errors
    assert answer.error_message


BOMB_BYTES = 1 << 30


def _zstd_bomb() -> bytes:
    compressor = zstandard.ZstdCompressor(level=1).compressobj()
    block = bytes(1 << 20)
    return b"".join(compressor.compress(block) for _ in range(BOMB_BYTES >> 20)) + compressor.flush()


def _gzip_bomb() -> bytes:
    return gzip.compress(bytes(1 << 20), 9) * (BOMB_BYTES >> 20)


@pytest.mark.parametrize(("codec", "bomb"), [(1, _gzip_bomb), (4, _zstd_bomb)], ids=["gzip", "zstd"])
def test_decompression_bomb_is_refused_without_unpacking_it_whole(
    stranger: Stranger, codec: int, bomb: Callable[[], bytes]
) -> None:
    topic = new_topic(stranger, cleanup_policy="compact", max_message_bytes=4 << 20)
    body = bomb()
    assert len(body) < 4 << 20
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert_refused(stranger, topic, forged(batch_of(b"x"), attributes=codec, body=body), ErrorCode.INVALID_RECORD)
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib) >> 10
    assert grown_mib < 512


ILLEGAL_NAMES = ["", ".", "..", "a" * 250, "a b", "a/b", "../up", "a\0b", "ü", "a:b", "a,b"]


@pytest.mark.parametrize("name", ILLEGAL_NAMES)
def test_illegal_topic_name_is_refused_everywhere(stranger: Stranger, name: str) -> None:
    topic = Message(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
    created = stranger.ask(ApiKey.CREATE_TOPICS, 5, topics=[topic], timeout_ms=5000, validate_only=False)
    assert created.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    asked = stranger.ask(ApiKey.METADATA, 8, topics=[Message(name=name)], allow_auto_topic_creation=True)
    assert asked.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    produced = stranger.produce(name, batch_of(b"x"))
    assert produced.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)


def test_illegal_names_leave_no_files(broker: Broker, stranger: Stranger) -> None:
    before = sorted(path.name for path in broker.data.iterdir())
    for name in ILLEGAL_NAMES:
        stranger.ask(ApiKey.METADATA, 8, topics=[Message(name=name)], allow_auto_topic_creation=True)
    assert sorted(path.name for path in broker.data.iterdir()) == before
