"""Headers: which form a version has, and frames that end too early."""

from __future__ import annotations

import struct
import subprocess
import sys

import pytest

from moldau.protocol.api import (
    ApiKey,
    MalformedRequestError,
    MalformedResponseError,
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
    request_header_version,
    response_header_version,
)


def test_header_versions_change_with_the_first_flexible_version() -> None:
    assert [request_header_version(ApiKey.METADATA, version) for version in (8, 9)] == [1, 2]
    assert [response_header_version(ApiKey.METADATA, version) for version in (8, 9)] == [0, 1]
    assert request_header_version(ApiKey.SASL_HANDSHAKE, 1) == 1
    assert request_header_version(ApiKey.DESCRIBE_CLUSTER, 0) == 2


def test_api_versions_is_answered_in_the_oldest_header_in_every_version() -> None:
    assert [request_header_version(ApiKey.API_VERSIONS, version) for version in (2, 3, 9)] == [1, 2, 2]
    assert [response_header_version(ApiKey.API_VERSIONS, version) for version in (0, 3, 9)] == [0, 0, 0]


@pytest.mark.parametrize("client_id", [None, "", "rdkafka", "ž" * 100])
@pytest.mark.parametrize("version", [8, 9])
def test_a_header_comes_back_as_it_was_written(version: int, client_id: str | None) -> None:
    frame = encode_request_header(ApiKey.METADATA, version, -7, client_id)
    expected = RequestHeader(ApiKey.METADATA, version, -7, client_id, len(frame))
    assert decode_request_header(frame + b"body") == expected
    assert decode_request_header(memoryview(bytearray(frame))) == expected


def test_tags_in_a_header_are_passed_over() -> None:
    frame = encode_request_header(ApiKey.METADATA, 9, 1, "c")[:-1] + b"\x02\x05\x03abc\x80\x01\x00"
    assert decode_request_header(frame + b"body").body_position == len(frame)


def test_a_header_cut_at_any_byte_is_malformed() -> None:
    frame = encode_request_header(ApiKey.METADATA, 9, 1, "client")[:-1] + b"\x01\x05\x03abc"
    for end in range(len(frame)):
        with pytest.raises(MalformedRequestError):
            decode_request_header(frame[:end])


@pytest.mark.parametrize("size", [-2, -32768, 5, 32767])
def test_a_client_id_of_an_impossible_size_is_malformed(size: int) -> None:
    with pytest.raises(MalformedRequestError):
        decode_request_header(struct.pack(">hhih", 3, 1, 1, size) + b"four")


def test_a_client_id_that_is_no_utf8_is_read_as_kafka_reads_it() -> None:
    assert decode_request_header(struct.pack(">hhih", 3, 1, 1, 2) + b"\xffa").client_id == "\ufffda"


def test_an_api_nobody_knows_still_has_a_readable_header() -> None:
    header = decode_request_header(struct.pack(">hhih", 999, 5, 42, -1) + b"body")
    assert header == RequestHeader(999, 5, 42, None, 10)


def test_response_headers_come_back_and_refuse_to_be_cut() -> None:
    for version, size in ((8, 4), (9, 5)):
        frame = encode_response_header(ApiKey.METADATA, version, 77)
        assert decode_response_header(ApiKey.METADATA, version, frame) == (77, size)
        for end in range(size):
            with pytest.raises(MalformedResponseError):
                decode_response_header(ApiKey.METADATA, version, frame[:end])


def test_display_names_are_kafkas() -> None:
    assert ApiKey.OFFSET_FOR_LEADER_EPOCH.display_name == "OffsetForLeaderEpoch"
    assert ApiKey.ADD_PARTITIONS_TO_TXN.display_name == "AddPartitionsToTxn"


def test_no_schema_is_imported_before_it_is_needed() -> None:
    script = """
import sys
import moldau.protocol.messages as m
assert not [name for name in sys.modules if name.startswith("kio")], "at import"
m.encode_request(18, 3, m.Message())
loaded = {name.split(".")[2] for name in sys.modules if name.startswith("kio.schema.") and ".v" in name}
assert loaded == {"api_versions", "request_header", "response_header"}, loaded
assert "hypothesis" not in sys.modules, "hypothesis came along"
"""
    subprocess.run([sys.executable, "-c", script], check=True, env={"PYTHONPATH": ":".join(sys.path)})


def test_hypothesis_is_not_hidden_from_its_pytest_plugin() -> None:
    script = """
import sys, types
sys.modules["_hypothesis_pytestplugin"] = types.ModuleType("_hypothesis_pytestplugin")
import moldau.protocol.messages as m
m.encode_request(18, 3, m.Message())
assert sys.modules.get("hypothesis") is not None
"""
    subprocess.run([sys.executable, "-c", script], check=True, env={"PYTHONPATH": ":".join(sys.path)})
