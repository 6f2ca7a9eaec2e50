"""Values become the bytes that every client of a registry reads, and come back."""

from __future__ import annotations

import datetime
import json
import struct
from typing import Any

import pytest

from moldau.schemas.errors import InvalidSchemaError, InvalidValueError
from moldau.schemas.framing import Frame, frame_value, parse_frame
from moldau.schemas.protobuf.codec import decode_indexes, encode_indexes
from moldau.schemas.schema import parse
from moldau.schemas.values import codec_of


def test_a_frame_is_a_magic_byte_an_id_and_a_body() -> None:
    assert frame_value(258, b"body") == b"\x00\x00\x00\x01\x02body"
    assert parse_frame(b"\x00\x00\x00\x01\x02body") == Frame(b"body", schema_id=258)
    assert parse_frame(b"\x00\x00\x00\x00\x07") == Frame(b"", schema_id=7)


def test_a_frame_may_name_its_schema_by_guid() -> None:
    payload = b"\x01" + bytes(range(16)) + b"body"
    assert parse_frame(payload) == Frame(b"body", guid="00010203-0405-0607-0809-0a0b0c0d0e0f")


@pytest.mark.parametrize("payload", [b"", b"\x00", b"\x00\x00\x00\x01", b"\x01" * 16, b"\x02\x00\x00\x00\x01x", b"{}"])
def test_what_is_no_frame_is_refused(payload: bytes) -> None:
    with pytest.raises(InvalidValueError):
        parse_frame(payload)


def test_an_id_has_four_bytes() -> None:
    for wrong in (-1, 2**32):
        with pytest.raises(InvalidValueError):
            frame_value(wrong, b"")


def avro(schema: Any) -> Any:
    return codec_of(parse("AVRO", json.dumps(schema)))


def record(**types: Any) -> dict[str, Any]:
    return {"type": "record", "name": "n.R", "fields": [{"name": name, "type": kind} for name, kind in types.items()]}


@pytest.mark.parametrize(
    ("schema", "text", "body"),
    [
        ("null", "null", b""),
        ("boolean", "true", b"\x01"),
        ("int", "-2", b"\x03"),
        ("long", "9223372036854775807", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ("float", "0.5", struct.pack("<f", 0.5)),
        ("double", "1.0E10", struct.pack("<d", 1e10)),
        ("double", '"NaN"', struct.pack("<d", float("nan"))),
        ("double", '"-Infinity"', struct.pack("<d", float("-inf"))),
        ("string", '"é"', b"\x04\xc3\xa9"),
        ("bytes", '"ÿ"', b"\xff"),
        (record(b="bytes"), '{"b":"ÿ"}', b"\x02\xff"),
        ({"type": "fixed", "name": "F", "size": 2}, '"ab"', b"ab"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, '"B"', b"\x02"),
        ({"type": "array", "items": "int"}, "[1,2]", b"\x04\x02\x04\x00"),
        ({"type": "array", "items": "int"}, "[]", b"\x00"),
        ({"type": "map", "values": "int"}, '{"a":1}', b"\x02\x02a\x02\x00"),
        (["null", "string"], "null", b"\x00"),
        (["null", "string"], '{"string":"a"}', b"\x02\x02a"),
        (["string", record(a="int")], '{"n.R":{"a":1}}', b"\x02\x02"),
        (["null", {"type": "array", "items": "int"}], '{"array":[1]}', b"\x02\x02\x02\x00"),
        (["int", "long"], '{"long":1}', b"\x02\x02"),
        (record(a="int", b=["null", "string"]), '{"a":1,"b":{"string":"x"}}', b"\x02\x02\x02x"),
    ],
)
def test_avro_values_are_written_in_avros_json_encoding(schema: Any, text: str, body: bytes) -> None:
    codec = avro(schema)
    assert codec.encode_text(text) == body
    assert codec.decode_text(body) == text


@pytest.mark.parametrize(
    ("schema", "text", "complaint"),
    [
        ("int", "1.5", "1.5 is no int"),
        ("int", "2147483648", "is no int"),
        ("int", "true", "is no int"),
        ("int", '"1"', "is no int"),
        ("null", "0", "is no null"),
        ("boolean", "0", "is no boolean"),
        ("string", "1", "is no string"),
        ("float", "1e39", "is no float"),
        ("double", '"many"', "is no double"),
        ("bytes", '"Ā"', "above 255"),
        ("bytes", "1", "is no bytes"),
        ({"type": "fixed", "name": "F", "size": 2}, '"abc"', "of 2 bytes"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, '"B"', "symbol of E"),
        ({"type": "array", "items": "int"}, '[1,"a"]', "at /1"),
        ({"type": "map", "values": "int"}, "[]", "is no map"),
        (["null", "string"], '"a"', "not name a branch of the union of null, string"),
        (["null", "string"], '{"int":1}', "not name a branch"),
        (record(a="int"), "{}", "'a' of record n.R is missing"),
        (record(a="int"), '{"a":1,"b":2}', "has no field b"),
        (record(a=record(b="int") | {"name": "S"}), '{"a":{"b":"x"}}', "at /a/b"),
        (record(a="int"), "[]", "is no record"),
        ("int", "{", "not JSON"),
    ],
)
def test_text_that_is_no_value_of_the_schema_is_refused_with_the_place(schema: Any, text: str, complaint: str) -> None:
    with pytest.raises(InvalidValueError, match=complaint):
        avro(schema).encode_text(text)


@pytest.mark.parametrize(
    ("schema", "body"),
    [
        ("int", b""),
        ("int", b"\xff" * 11),
        ("string", b"\x7f"),
        ("string", b"\x04a"),
        ("string", b"\x02\xff"),
        ("double", b"1234"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02"),
        (["null", "int"], b"\x05"),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ({"type": "array", "items": record()}, b"\xfe\xff\xff\xff\x0f"),
        (record(next=["null", "n.R"]), b"\x02" * 100_000 + b"\x00"),
    ],
)
def test_bytes_that_are_no_value_of_the_schema_are_refused(schema: Any, body: bytes) -> None:
    codec = avro(schema)
    with pytest.raises(InvalidValueError):
        codec.decode(body)
    with pytest.raises(InvalidValueError):
        codec.decode_text(body)


def test_avro_values_are_pythons_own() -> None:
    codec = avro(record(at={"type": "long", "logicalType": "timestamp-millis"}, name=["null", "string"]))
    moment = datetime.datetime(2026, 11, 15, 12, tzinfo=datetime.UTC)
    body = codec.encode({"at": moment, "name": "Ada"})
    assert codec.decode(body) == {"at": moment, "name": "Ada"}
    assert json.loads(codec.decode_text(body)) == {"at": int(moment.timestamp() * 1000), "name": {"string": "Ada"}}
    for wrong in ({"at": "now"}, {}, None, 5, [{}]):
        with pytest.raises(InvalidValueError):
            codec.encode(wrong)


def test_avro_data_is_seen_as_the_reader_wants() -> None:
    old = parse("AVRO", json.dumps(record(a="int", b="string")))
    new = {
        "type": "record",
        "name": "n.R",
        "fields": [{"name": "a", "type": "long"}, {"name": "c", "type": "int", "default": 7}],
    }
    body = codec_of(old).encode({"a": 1, "b": "x"})
    assert codec_of(old, reader=parse("AVRO", json.dumps(new))).decode(body) == {"a": 1, "c": 7}
    with pytest.raises(InvalidValueError):
        codec_of(old, reader=parse("AVRO", '"string"')).decode(body)
    with pytest.raises(InvalidSchemaError):
        codec_of(old, reader=parse("JSON", "{}"))


def test_bare_bytes_have_no_length_before_them() -> None:
    codec = avro("bytes")
    assert codec.encode(b"\x00\xff") == b"\x00\xff"
    assert codec.decode(b"\x00\xff") == b"\x00\xff"
    assert codec_of(parse("AVRO", '"bytes"'), reader=parse("AVRO", '["null","string"]')).decode(b"abc") == "abc"
    with pytest.raises(InvalidValueError):
        codec.encode("text")


def test_a_value_nested_too_deeply_is_refused() -> None:
    value: Any = None
    for _ in range(10_000):
        value = {"next": value}
    with pytest.raises(InvalidValueError, match="nested"):
        avro(record(next=["null", "n.R"])).encode(value)


def test_referenced_types_encode_too() -> None:
    address = '{"type":"record","name":"Address","fields":[{"name":"street","type":"string"}]}'
    member = '{"type":"record","name":"Member","fields":[{"name":"home","type":"Address"}]}'
    codec = codec_of(parse("AVRO", member, {"Address": address}))
    assert codec.decode(codec.encode({"home": {"street": "s"}})) == {"home": {"street": "s"}}
    assert codec.encode_text('{"home":{"street":"s"}}') == codec.encode({"home": {"street": "s"}})


def test_json_values_are_checked_when_written() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "a.json"}}, "required": ["a"]}
    codec = codec_of(parse("JSON", json.dumps(schema), {"a.json": '{"type":"string","pattern":"^(x+)+$"}'}))
    assert codec.encode({"a": "x"}) == b'{"a":"x"}'
    assert codec.encode_text(' {"a": "xx"} ') == b'{"a":"xx"}'
    assert codec.decode(b'{"b": 1}') == {"b": 1}
    assert codec.decode_text(b'{ "b": "\xc3\xa9" }') == '{"b":"é"}'
    with pytest.raises(InvalidValueError, match="at #/a"):
        codec.encode({"a": 1})
    with pytest.raises(InvalidValueError, match="required"):
        codec.encode_text("{}")
    with pytest.raises(InvalidValueError):
        codec.encode({"a": "x" * 50 + "!"})
    for wrong in (b"\xff", b"{", b"", b"[" * 100_000):
        with pytest.raises(InvalidValueError):
            codec.decode(wrong)
    for no_json in (object(), {1: 2}, float("nan")):
        with pytest.raises(InvalidValueError):
            codec_of(parse("JSON", "{}")).encode(no_json)


PROTO = """syntax = "proto3"; import "google/protobuf/timestamp.proto";
message First {
  string name = 1; int64 big_number = 2; repeated Second.Inner list = 3; google.protobuf.Timestamp at = 4;
}
message Second { message Unused {} message Inner { bool yes = 1; } map<string, int32> counts = 1; }
"""


def test_protobuf_values_carry_the_position_of_their_message() -> None:
    schema = parse("PROTOBUF", PROTO)
    first, inner = codec_of(schema), codec_of(schema, message="Second.Inner")
    assert first.encode_text('{"name":"Ada"}') == b"\x00\x0a\x03Ada"
    assert inner.encode_text('{"yes":true}') == b"\x04\x02\x02\x08\x01"
    assert first.decode(b"\x04\x02\x02\x08\x01").yes is True
    assert first.decode_text(b"\x04\x02\x02\x08\x01") == '{"yes":true}'
    assert codec_of(schema, message="Second").encode({}) == b"\x02\x02"


def test_protobuf_values_follow_its_json_mapping() -> None:
    codec = codec_of(parse("PROTOBUF", PROTO))
    text = '{"name":"Ada","bigNumber":"9007199254740993","list":[{"yes":true}],"at":"2026-11-15T12:00:00Z"}'
    assert codec.decode_text(codec.encode_text(text)) == text
    assert codec.decode_text(b"\x00") == '{"name":"","bigNumber":"0","list":[]}'
    message = codec.decode(codec.encode_text(text))
    assert codec.encode(message) == codec.encode_text(text)
    for wrong in ('{"nobody":1}', '{"name":1}', "[]", "{", '{"at":"soon"}'):
        with pytest.raises(InvalidValueError):
            codec.encode_text(wrong)
    with pytest.raises(InvalidValueError, match="is no First"):
        codec.encode(codec.decode(b"\x02\x02"))
    for wrong_body in (b"", b"\x04\x02", b"\x02\x0a", b"\x01", b"\x00\x0a\x7f", b"\xff" * 20, b"\x00\xff"):
        with pytest.raises(InvalidValueError):
            codec.decode(wrong_body)


@pytest.mark.parametrize(("indexes", "encoded"), [([0], b"\x00"), ([1], b"\x02\x02"), ([1, 0], b"\x04\x02\x00")])
def test_message_positions_are_zigzag_varints(indexes: list[int], encoded: bytes) -> None:
    assert encode_indexes(indexes) == encoded
    assert decode_indexes(encoded + b"rest") == (indexes, len(encoded))


def test_a_message_that_does_not_exist_has_no_codec() -> None:
    with pytest.raises(InvalidSchemaError):
        codec_of(parse("PROTOBUF", PROTO), message="Third")
    with pytest.raises(InvalidSchemaError):
        codec_of(parse("PROTOBUF", "enum E { A = 0; }"))
