"""Whatever fits a schema comes back as it was, through any of the three serdes and again without a schema given."""

from __future__ import annotations

import json
import pickle
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.client import prepared_serde
from moldau.core.errors import MoldauError
from moldau.serdes.schema_serde import SchemaRecord, SchemaSerde
from moldau.streams import AvroSerde, JsonSchemaSerde, ProtobufSerde

AVRO = {
    "type": "record",
    "name": "Everything",
    "fields": [
        {"name": "count", "type": "long"},
        {"name": "ratio", "type": "double"},
        {"name": "raw", "type": "bytes"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "scores", "type": {"type": "map", "values": "int"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "inner", "type": {"type": "record", "name": "Inner", "fields": [{"name": "flag", "type": "boolean"}]}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
JSON = {
    "title": "Everything",
    "type": "object",
    "properties": {"count": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
    "required": ["count"],
}
PROTO = """
syntax = "proto3";
package everything;
import "google/protobuf/timestamp.proto";
message Everything {
  int64 count = 1;
  double ratio = 2;
  bytes raw = 3;
  optional string note = 4;
  repeated string tags = 5;
  map<string, int32> scores = 6;
  Kind kind = 7;
  Inner inner = 8;
  map<string, Inner> inners = 9;
  repeated Inner list = 10;
  repeated Kind kinds = 11;
  google.protobuf.Timestamp at = 12;
  oneof either { string left = 13; uint64 right = 14; }
  enum Kind { A = 0; B = 1; }
  message Inner { bool flag = 1; Inner deeper = 2; }
}
message Other { sint32 only = 1; }
"""

longs, doubles = st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False)
words, kinds = st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(["A", "B"])
times = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)).map(
    lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000, tzinfo=UTC)
)
avro_values = st.fixed_dictionaries(
    {
        "count": longs,
        "ratio": doubles,
        "raw": st.binary(),
        "note": st.none() | words,
        "tags": st.lists(words),
        "scores": st.dictionaries(words, st.integers(-(2**31), 2**31 - 1)),
        "kind": kinds,
        "inner": st.fixed_dictionaries({"flag": st.booleans()}),
        "price": st.integers(-999_999_999, 999_999_999).map(lambda cents: Decimal(cents).scaleb(-2)),
        "at": times,
    }
)
json_values = st.fixed_dictionaries(
    {"count": longs}, optional={"tags": st.lists(words), "more": st.recursive(st.none() | words, st.lists)}
)
inners = st.recursive(
    st.fixed_dictionaries({"flag": st.booleans()}),
    lambda deeper: st.fixed_dictionaries({"flag": st.booleans(), "deeper": deeper}),
    max_leaves=3,
)
proto_values = st.fixed_dictionaries(
    {
        "count": longs,
        "ratio": doubles,
        "raw": st.binary(),
        "tags": st.lists(words),
        "scores": st.dictionaries(words, st.integers(-(2**31), 2**31 - 1)),
        "kind": kinds,
        "inners": st.dictionaries(words, inners),
        "list": st.lists(inners),
        "kinds": st.lists(kinds),
    },
    optional={
        "note": words,
        "inner": inners,
        "at": st.just("2026-01-02T03:04:05Z"),
        "right": st.integers(0, 2**64 - 1),
    },
)


def configured(serde: SchemaSerde) -> SchemaSerde:
    """With a registry for each format: all write the same subjects."""
    return prepared_serde(serde, {"schema.registry.url": f"mock://property-{serde.schema_type}"}, "value")


def round_trip(serde: SchemaSerde, without_schema: SchemaSerde, value: Any) -> None:
    ours = configured(serde)
    data = ours.serialize("written", value)
    seen = ours.deserialize("written", data)
    assert seen == value
    # Without a schema of its own a serde uses what the record remembers, also after a journey between processes.
    other = configured(without_schema)
    remembered = pickle.loads(pickle.dumps(other.deserialize("written", data)))
    assert isinstance(remembered, SchemaRecord)
    assert other.deserialize("again", other.serialize("again", remembered)) == value


@given(avro_values)
def test_avro_records_come_back(value: dict[str, Any]) -> None:
    round_trip(AvroSerde(AVRO), AvroSerde(), value)


@given(json_values)
def test_json_documents_come_back(value: dict[str, Any]) -> None:
    round_trip(JsonSchemaSerde(json.dumps(JSON)), JsonSchemaSerde(), value)


@given(proto_values)
def test_protobuf_messages_come_back(value: dict[str, Any]) -> None:
    round_trip(ProtobufSerde(PROTO), ProtobufSerde(), value)


@given(st.integers(-(2**31), 2**31 - 1))
def test_a_message_that_is_not_the_first_comes_back(number: int) -> None:
    round_trip(ProtobufSerde(PROTO, message="everything.Other"), ProtobufSerde(), {"only": number})


@given(st.text(st.characters(exclude_categories=["Cs"])) | longs | doubles | st.booleans() | st.binary())
def test_plain_values_are_avro_without_a_schema_given(value: Any) -> None:
    serde = configured(AvroSerde())
    topic = f"plain-{type(value).__name__}"
    back = serde.deserialize(topic, serde.serialize(topic, value))
    assert (back, type(back)) == (value, type(value))


@given(
    st.binary(max_size=40),
    st.booleans(),
    st.sampled_from([AvroSerde(AVRO), JsonSchemaSerde(JSON), ProtobufSerde(PROTO)]),
)
def test_any_bytes_are_read_or_refused_in_words(noise: bytes, has_prefix: bool, serde: SchemaSerde) -> None:
    ours = configured(serde)
    with suppress(MoldauError):
        # The first schema of each registry has id 1.
        ours.deserialize("written", b"\x00\x00\x00\x00\x01" + noise if has_prefix else noise)


def test_a_value_that_does_not_fit_is_refused_with_its_field() -> None:
    serde = configured(ProtobufSerde(PROTO))
    for value, told in (
        ({"count": "many"}, r"everything\.Everything\.count"),
        ({"kind": "C"}, "A, B"),
        ({"unheard": 1}, "no field 'unheard'"),
        ({"inner": {"flag": "x"}}, r"Inner\.flag"),
        (7, "a message is a dict"),
    ):
        with pytest.raises(MoldauError, match=told):
            serde.serialize("written", value)


def test_a_timestamp_may_be_pythons() -> None:
    serde = configured(ProtobufSerde(PROTO))
    data = serde.serialize("written", {"at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)})
    assert serde.deserialize("written", data)["at"] == "2026-01-02T03:04:05Z"
