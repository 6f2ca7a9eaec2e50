"""Every API and version: our reader and kio's writer, kio's reader and our writer, and requests gone wrong."""

from __future__ import annotations

import random
import time
import tracemalloc
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property.protocol_schemas import (
    api_versions,
    entities,
    entity_class,
    example,
    message_plain,
    plain,
    read_by_kio,
    written,
)

from moldau.protocol.api import APIS, ApiKey
from moldau.protocol.messages import (
    MalformedRequestError,
    Message,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)

ALL = api_versions()
BY_API = {key: [version for one, version in ALL if one == key] for key, _ in ALL}
DECODE = {"request": decode_request, "response": decode_response}
ENCODE = {"request": encode_request, "response": encode_response}
LIES = [
    b"\xff\xff\xff\xff\x0f",
    b"\x7f\xff\xff\xff",
    b"\x80\x80\x80\x80\x08",
    b"\xff" * 5,
    b"\x00\x01\x00\x00\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff\x07",
]

quick = settings(max_examples=10, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def message_of(value: Any) -> Any:
    if isinstance(value, dict):
        return Message(**{name: message_of(inner) for name, inner in value.items()})
    return [message_of(item) for item in value] if isinstance(value, list) else value


def test_the_table_of_apis_is_kios() -> None:
    assert {key: (known.first, known.last) for key, known in APIS.items()} == {
        key: (versions[0], versions[-1]) for key, versions in BY_API.items()
    }
    for key, version in ALL:
        for kind in ("request", "response"):
            assert entity_class(key, version, kind).__flexible__ == (version >= APIS[key].flexible_from)


@pytest.mark.parametrize("kind", ["request", "response"])
@pytest.mark.parametrize("api_key", list(BY_API), ids=lambda key: ApiKey(key).name.lower())
@quick
@given(data=st.data())
def test_both_ways_agree_with_kio(api_key: int, kind: str, data: st.DataObject) -> None:
    for version in BY_API[api_key]:
        entity = data.draw(entities(entity_class(api_key, version, kind)))
        wire = written(entity)
        message = DECODE[kind](api_key, version, wire)
        assert message_plain(message) == plain(entity)
        again = ENCODE[kind](api_key, version, message_of(plain(entity)))
        assert plain(read_by_kio(type(entity), again)) == plain(entity)
        assert again == wire


@pytest.mark.parametrize("kind", ["request", "response"])
def test_a_message_without_fields_is_written_with_defaults_kio_can_read(kind: str) -> None:
    for api_key, version in ALL:
        wire = ENCODE[kind](api_key, version, Message())
        entity = read_by_kio(entity_class(api_key, version, kind), wire)
        assert message_plain(DECODE[kind](api_key, version, wire)) == plain(entity)


def test_fields_that_a_version_lacks_are_left_out_when_written_and_default_when_read() -> None:
    for api_key, versions in BY_API.items():
        oldest, newest = (
            decode_request(api_key, version, encode_request(api_key, version, Message()))
            for version in (versions[0], versions[-1])
        )
        everything = Message(**{**vars(newest), **vars(oldest), "nonsense": 1})
        for version in versions:
            read = decode_request(api_key, version, encode_request(api_key, version, everything))
            for name in {**vars(oldest), **vars(newest)}:
                getattr(read, name)


# --- requests gone wrong ----------------------------------------------------------------------------


def request(api_key: int, version: int, seed: int = 0) -> bytes:
    return written(example(entity_class(api_key, version, "request"), seed))


def refused_or_read(api_key: int, version: int, body: bytes) -> None:
    """Anything but a message or the one error comes out as a failure of the test."""
    try:
        decode_request(api_key, version, body)
    except MalformedRequestError:
        pass


@pytest.mark.parametrize("seed", [0, 1])
def test_a_request_cut_at_any_byte_is_malformed(seed: int) -> None:
    for api_key, version in ALL:
        body = request(api_key, version, seed)
        for end in range(len(body)):
            with pytest.raises(MalformedRequestError):
                decode_request(api_key, version, body[:end])


def test_bytes_after_a_request_are_tolerated() -> None:
    for api_key, version in ALL:
        body = request(api_key, version)
        assert decode_request(api_key, version, body + b"more") == decode_request(api_key, version, body)


def test_requests_are_read_from_any_kind_of_buffer_and_keep_nothing_of_it() -> None:
    for api_key, version in ALL:
        buffer = bytearray(request(api_key, version))
        read = decode_request(api_key, version, memoryview(buffer))
        before = message_plain(read)
        buffer[:] = b"\xff" * len(buffer)
        assert message_plain(read) == before


def test_a_request_with_any_byte_changed_is_malformed_or_another_request() -> None:
    rng = random.Random(5)
    for api_key, version in ALL:
        body = bytearray(request(api_key, version))
        for position in range(len(body)):
            kept = body[position]
            body[position] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, kept ^ 0x40))
            refused_or_read(api_key, version, bytes(body))
            body[position] = kept


def test_lengths_that_lie_cost_neither_memory_nor_time() -> None:
    rng = random.Random(6)
    for api_key, version in ALL:
        refused_or_read(api_key, version, request(api_key, version))
    tracemalloc.start()
    began = time.process_time()
    for api_key, version in ALL:
        body = request(api_key, version)
        for lie in LIES:
            refused_or_read(api_key, version, lie * 4)
            position = rng.randrange(len(body) + 1)
            refused_or_read(api_key, version, body[:position] + lie + body[position:])
            refused_or_read(api_key, version, body[:position] + lie + body[position + len(lie) :])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000
    assert time.process_time() - began < 20


@quick
@given(api=st.sampled_from(ALL), body=st.binary(max_size=200))
def test_noise_is_malformed_or_a_request(api: tuple[int, int], body: bytes) -> None:
    refused_or_read(*api, body)


@quick
@given(tag=st.integers(1_000, 2**31), content=st.binary(max_size=200))
def test_tags_nobody_knows_are_passed_over(tag: int, content: bytes) -> None:
    def varint(value: int) -> bytes:
        return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + varint(value >> 7)

    unknown = b"\x01" + varint(tag) + varint(len(content)) + content
    for api_key, version in ALL:
        if version >= APIS[api_key].flexible_from:
            body = encode_request(api_key, version, Message())  # of defaults only, so it ends without tags
            assert body.endswith(b"\x00")
            assert decode_request(api_key, version, body[:-1] + unknown) == decode_request(api_key, version, body)


def test_a_request_of_too_many_elements_is_malformed() -> None:
    names = b"\x00\x00" * 300_000
    with pytest.raises(MalformedRequestError, match="more elements"):
        decode_request(ApiKey.METADATA, 4, (300_000).to_bytes(4, "big") + names + b"\x01")


def test_versions_without_a_schema_are_the_callers_mistake() -> None:
    for api_key, version in ((4, 0), (ApiKey.PRODUCE, 2), (ApiKey.METADATA, 14), (999, 0)):
        with pytest.raises(LookupError):
            decode_request(api_key, version, b"")


def test_messages_are_equal_by_their_fields() -> None:
    read = decode_request(ApiKey.METADATA, 1, b"\x00\x00\x00\x01\x00\x01t")
    assert read == Message(topics=[Message(name="t")])
    assert isinstance(read, SimpleNamespace)
    assert read.allow_auto_topic_creation is True
    with pytest.raises(AttributeError, match="in any version"):
        _ = read.nonsense
    with pytest.raises(AttributeError):
        _ = Message().topics
