"""Records and metadata records: what is written comes back, and damage is always named as such."""

from __future__ import annotations

import dataclasses
import types
import typing
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.protocol.compression import Codec
from moldau.protocol.metadata_records import (
    METADATA_RECORDS,
    MalformedRecordError,
    decode_metadata_record,
    encode_metadata_record,
)
from moldau.protocol.record_batch import BATCH_OVERHEAD, HEADER, BatchHeader
from moldau.protocol.records import InvalidRecordError, Record, crc_of, decode_records, encode_batch, validated_records

contents = st.none() | st.binary(max_size=200)
header_names = st.text(max_size=10)
records = st.builds(
    Record,
    offset_delta=st.integers(-(2**31), 2**31 - 1),
    timestamp_delta=st.integers(-(2**63), 2**63 - 1),
    key=contents,
    value=contents,
    headers=st.lists(st.tuples(header_names, contents), max_size=3).map(tuple),
    attributes=st.integers(-128, 127),
)


def decoded(batch: bytes) -> list[Record]:
    return list(decode_records(batch, BatchHeader.at(batch)))


def batch_of(body: bytes, count: int, codec: int = 0) -> bytes:
    return HEADER.pack(0, BATCH_OVERHEAD - 12 + len(body), -1, 2, 0, codec, 0, 0, 0, -1, -1, -1, count) + body


@settings(deadline=None)
@given(sent=st.lists(records, max_size=10), codec=st.sampled_from(Codec))
def test_records_come_back_through_every_codec(sent: list[Record], codec: Codec) -> None:
    batch = encode_batch(sent, base_timestamp=0, max_timestamp=0, last_offset_delta=0, codec=codec)
    assert decoded(batch) == sent
    assert BatchHeader.at(batch).crc == crc_of(batch)


@settings(deadline=None, max_examples=30)
@given(sent=st.lists(records, min_size=1, max_size=3), codec=st.sampled_from(Codec), data=st.data())
def test_a_body_cut_anywhere_is_invalid(sent: list[Record], codec: Codec, data: st.DataObject) -> None:
    batch = encode_batch(sent, base_timestamp=0, max_timestamp=0, last_offset_delta=0, codec=codec)
    end = data.draw(st.integers(BATCH_OVERHEAD, len(batch) - 1))
    with pytest.raises(InvalidRecordError):
        decoded(batch_of(batch[BATCH_OVERHEAD:end], len(sent), codec))


@settings(deadline=None, max_examples=300)
@given(body=st.binary(max_size=100), count=st.integers(-1, 5), codec=st.integers(0, 7))
def test_noise_is_invalid_or_records(body: bytes, count: int, codec: int) -> None:
    batch = batch_of(body, count, codec)
    try:
        assert len(decoded(batch)) == count
    except InvalidRecordError:
        pass
    try:
        validated_records(batch, BatchHeader.at(batch))
    except InvalidRecordError:
        pass


# --- metadata records -------------------------------------------------------------------------------

UUIDS = st.none() | st.integers(1, 2**128 - 1).map(lambda number: uuid.UUID(int=number))
WIRE_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int8": st.integers(-128, 127),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "string": st.text(max_size=10),
    "bytes": st.binary(max_size=10),
    "uuid": UUIDS,
}


def values_of(cls: Any) -> st.SearchStrategy[Any]:
    """Any record of a type, by the wire types that its fields carry."""

    def values(field: dataclasses.Field[Any]) -> st.SearchStrategy[Any]:
        wire = field.metadata["wire"]
        one = WIRE_VALUES[wire.type] if isinstance(wire.type, str) else values_of(wire.type)
        one = st.lists(one, max_size=3).map(tuple) if wire.is_array else one
        return st.none() | one if wire.is_nullable else one

    return st.builds(cls, **{field.name: values(field) for field in dataclasses.fields(cls)})


@pytest.mark.parametrize("cls", METADATA_RECORDS.values(), ids=lambda cls: cls.__name__)
@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_metadata_records_come_back_and_refuse_to_be_cut(cls: Any, data: st.DataObject) -> None:
    record = data.draw(values_of(cls))
    wire = encode_metadata_record(record, cls.NEWEST)
    assert decode_metadata_record(wire) == record
    end = data.draw(st.integers(0, len(wire) - 1))
    with pytest.raises(MalformedRecordError):
        decode_metadata_record(wire[:end])


@pytest.mark.parametrize("cls", METADATA_RECORDS.values(), ids=lambda cls: cls.__name__)
def test_a_field_may_be_none_exactly_where_its_wire_type_can_say_so(cls: Any) -> None:
    for name, annotation in typing.get_type_hints(cls).items():
        field = next((one for one in dataclasses.fields(cls) if one.name == name), None)
        if field is not None:
            wire = field.metadata["wire"]
            says_none = wire.is_nullable or (wire.type == "uuid" and not wire.is_array)
            assert (types.NoneType in typing.get_args(annotation)) == says_none


@settings(deadline=None, max_examples=300)
@given(wire=st.binary(max_size=80), kind=st.integers(0, 29), version=st.integers(0, 5))
def test_noise_is_malformed_or_a_metadata_record(wire: bytes, kind: int, version: int) -> None:
    try:
        decode_metadata_record(bytes([1, kind, version]) + wire)
    except MalformedRecordError:
        pass
