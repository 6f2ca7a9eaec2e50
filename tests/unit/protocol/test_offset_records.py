"""Offsets written by hand are the bytes that the tables give, and are read back the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.protocol.coordinator_records import OffsetCommitKey, OffsetCommitValue, encode_key, encode_value
from moldau.protocol.offset_records import (
    decode_offset_key,
    decode_offset_value,
    encode_offset_key,
    encode_offset_value,
)

NAMES = st.text(max_size=30)
INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)


@given(NAMES, NAMES, INT32)
def test_keys_are_those_of_the_table(group: str, topic: str, partition: int) -> None:
    data = encode_offset_key(group, topic, partition)
    assert data == encode_key(OffsetCommitKey(group=group, topic=topic, partition=partition))
    assert decode_offset_key(data) == (group, topic, partition)
    assert all(decode_offset_key(data[:end]) is None for end in range(len(data)))


@given(INT64, INT32, NAMES, INT64)
def test_values_are_those_of_the_table(offset: int, epoch: int, metadata: str, timestamp: int) -> None:
    data = encode_offset_value(offset, epoch, metadata, timestamp)
    table = OffsetCommitValue(offset=offset, leader_epoch=epoch, metadata=metadata, commit_timestamp=timestamp)
    assert data == encode_value(table)
    assert decode_offset_value(data) == (offset, epoch, metadata, timestamp)
    assert all(decode_offset_value(data[:end]) is None for end in range(len(data)))


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_left_to_the_tables(data: bytes) -> None:
    decode_offset_key(data)
    decode_offset_value(data)
