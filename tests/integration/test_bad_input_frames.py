"""Bytes that are no requests: the connection they came on ends, and nobody else notices."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

import pytest
from tests.integration.stranger import Stranger, Witness, frame

from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message, encode_request
from moldau.testing import Broker

CORRELATION = b"\0\0\0\1"
NO_CLIENT_ID = b"\xff\xff"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def header(api_key: int, version: int) -> bytes:
    return struct.pack(">hh", api_key, version) + CORRELATION + NO_CLIENT_ID


@pytest.mark.parametrize("size", [-1, -(1 << 31), 104_857_601, (1 << 31) - 1])
def test_frame_size_outside_the_limits_closes_the_connection(broker: Broker, size: int) -> None:
    with Stranger(broker.port) as stranger:
        stranger.send(struct.pack(">i", size))
        assert stranger.is_closed()


@pytest.mark.parametrize("size", range(10))
def test_frame_too_short_for_a_header_closes_the_connection(broker: Broker, size: int) -> None:
    with Stranger(broker.port) as stranger:
        stranger.send(frame(header(ApiKey.METADATA, 1)[:size]))
        assert stranger.is_closed()


@pytest.mark.parametrize("length", [5, 32767, -2, -32768])
def test_client_id_length_that_lies_closes_the_connection(broker: Broker, length: int) -> None:
    with Stranger(broker.port) as stranger:
        stranger.send(frame(struct.pack(">hhih", ApiKey.METADATA, 1, 1, length) + b"abc"))
        assert stranger.is_closed()


@pytest.mark.parametrize("api_key", [-1, 4, 5, 6, 7, 93, 1000, 32767])
def test_unknown_api_closes_the_connection(broker: Broker, api_key: int) -> None:
    with Stranger(broker.port) as stranger:
        stranger.send(frame(header(api_key, 0) + b"\0" * 16))
        assert stranger.is_closed()


@pytest.mark.parametrize(
    ("api_key", "version"),
    [(ApiKey.PRODUCE, 14), (ApiKey.FETCH, 3), (ApiKey.FETCH, 19), (ApiKey.METADATA, 14), (ApiKey.METADATA, -1)],
)
def test_version_outside_the_announced_range_closes_the_connection(broker: Broker, api_key: int, version: int) -> None:
    with Stranger(broker.port) as stranger:
        stranger.send(frame(header(api_key, version) + b"\0" * 16))
        assert stranger.is_closed()


def test_api_that_is_not_announced_closes_the_connection(broker: Broker) -> None:
    with Stranger(broker.port) as stranger:
        announced = {api.api_key for api in stranger.ask(ApiKey.API_VERSIONS, 0).api_keys}
        stranger.send(frame(header(next(key for key in range(90) if key not in announced), 0) + b"\0" * 16))
        assert stranger.is_closed()


def test_too_new_api_versions_is_answered_in_version_0_and_the_connection_stays(broker: Broker) -> None:
    with Stranger(broker.port) as stranger:
        sent = stranger.send_request(ApiKey.API_VERSIONS, 99, b"")
        answer = stranger.answer(ApiKey.API_VERSIONS, 0, sent)
        assert answer.error_code == 35
        own_range = next(api for api in answer.api_keys if api.api_key == ApiKey.API_VERSIONS)
        assert (own_range.min_version, own_range.max_version) == (0, 4)
        assert stranger.is_served()


def test_unknown_tags_in_header_and_body_are_skipped(broker: Broker) -> None:
    tags = b"\x02" + b"\x63\x03abc" + b"\x64\x00"
    body = encode_request(ApiKey.METADATA, 12, Message(topics=[], allow_auto_topic_creation=False))
    assert body.endswith(b"\0")
    with Stranger(broker.port) as stranger:
        stranger.send(frame(header(ApiKey.METADATA, 12) + tags + body[:-1] + tags))
        assert stranger.answer(ApiKey.METADATA, 12, 1).topics == []


@pytest.mark.parametrize(
    "tags", [b"\xff\xff\xff\xff\x0f", b"\x01\x63\xff\xff\xff\xff\x0f", b"\x01\x63", b"\x80\x80\x80\x80\x80\x80\x01"]
)
def test_tags_that_lie_close_the_connection(broker: Broker, tags: bytes) -> None:
    with Stranger(broker.port) as stranger:
        stranger.send(frame(header(ApiKey.METADATA, 12) + tags))
        assert stranger.is_closed()


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (12, b"\0\xff\xff\xff\xff\x0f"),
        (12, b"\0\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
        (8, b"\x7f\xff\xff\xff"),
        (8, b"\x80\0\0\0"),
        (8, b"\0\0\0\1\x7f\xff"),
    ],
)
def test_lengths_that_lie_in_a_body_close_the_connection(broker: Broker, version: int, body: bytes) -> None:
    with Stranger(broker.port) as stranger:
        stranger.send(frame(header(ApiKey.METADATA, version) + body))
        assert stranger.is_closed()


@pytest.mark.parametrize(
    ("api_key", "version", "request_message"),
    [
        (ApiKey.METADATA, 12, Message(topics=None, allow_auto_topic_creation=True)),
        (ApiKey.CREATE_TOPICS, 7, Message(topics=[], timeout_ms=1000, validate_only=True)),
        (ApiKey.LIST_OFFSETS, 6, Message(replica_id=-1, isolation_level=0, topics=[])),
        (ApiKey.INIT_PRODUCER_ID, 4, Message(transactional_id=None, transaction_timeout_ms=1000)),
        (ApiKey.DESCRIBE_CONFIGS, 4, Message(resources=[])),
        (ApiKey.FETCH, 12, Message(replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=1, topics=[])),
        (ApiKey.PRODUCE, 9, Message(acks=1, timeout_ms=1000, topic_data=[])),
    ],
)
def test_request_cut_short_closes_the_connection(
    broker: Broker, api_key: int, version: int, request_message: Message
) -> None:
    body = encode_request(api_key, version, request_message)
    for cut in range(len(body)):
        with Stranger(broker.port) as stranger:
            stranger.send(frame(header(api_key, version) + b"\0" + body[:cut]))
            assert stranger.is_closed(), f"cut at {cut} of {len(body)}"


def test_connection_that_ends_in_the_middle_of_a_frame_is_forgotten(broker: Broker) -> None:
    whole = frame(header(ApiKey.API_VERSIONS, 0))
    for cut in range(1, len(whole)):
        with Stranger(broker.port) as stranger:
            stranger.send(whole[:cut])
    with Stranger(broker.port) as stranger:
        assert stranger.is_served()


def test_request_that_arrives_byte_by_byte_is_answered(broker: Broker) -> None:
    with Stranger(broker.port) as stranger:
        for byte in frame(header(ApiKey.API_VERSIONS, 0)):
            stranger.send(bytes([byte]))
        assert stranger.answer(ApiKey.API_VERSIONS, 0, 1).error_code == 0


def test_good_requests_before_a_bad_one_are_answered(broker: Broker) -> None:
    with Stranger(broker.port) as stranger:
        good = frame(header(ApiKey.API_VERSIONS, 0))
        stranger.send(good + good + struct.pack(">i", -5))
        for _ in range(2):
            assert stranger.answer(ApiKey.API_VERSIONS, 0, 1).error_code == 0
        assert stranger.is_closed()


def test_random_bytes_harm_nobody() -> None:
    chance = random.Random(20)
    with Broker() as broker, Witness(broker.port):
        for _ in range(300):
            with Stranger(broker.port, timeout_s=5) as stranger:
                stranger.send(chance.randbytes(chance.randrange(1, 400)))
                assert stranger.leaves_in_peace()
        for _ in range(1000):
            with Stranger(broker.port, timeout_s=5) as stranger:
                start = struct.pack(">hhi", chance.randrange(0, 76), chance.randrange(0, 14), 1)
                stranger.send(frame(start + chance.randbytes(chance.randrange(0, 120))))
                assert stranger.leaves_in_peace()
        assert broker.fatal_error is None
