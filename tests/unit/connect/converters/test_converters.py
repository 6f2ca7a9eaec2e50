"""The converters: JSON with and without envelope, plain ones, Avro through a registry in memory, headers."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from moldau.client.serialization import connect_schemas
from moldau.connect.api import Converter, DataError, Plugins
from moldau.connect.api.schemas import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    array,
    decimal,
    map_of,
    optional,
    struct,
    with_default,
)
from moldau.serdes.schema_source import SchemaText

PLUGINS = Plugins()
SCHEMA = struct(
    {
        "i8": INT8,
        "i16": INT16,
        "i32": INT32,
        "i64": INT64,
        "f32": FLOAT32,
        "f64": FLOAT64,
        "flag": BOOLEAN,
        "text": optional(STRING),
        "data": BYTES,
        "day": DATE,
        "clock": TIME,
        "at": optional(TIMESTAMP),
        "price": decimal(2, 10),
        "list": array(optional(INT32)),
        "map": map_of(STRING, INT64),
        "pairs": map_of(INT32, STRING),
        "inner": optional(struct({"x": STRING}, name="org.example.Inner")),
        "other": with_default(INT32, 5),
    },
    name="org.example.Row",
)
VALUE = {
    **{
        "i8": 1,
        "i16": 2,
        "i32": 3,
        "i64": 4,
        "f32": 0.5,
        "f64": 0.1,
        "flag": True,
        "text": "žluť",
        "data": b"\x00\xff",
    },
    **{"day": 19782, "clock": 1234, "at": 1_700_000_000_123, "price": Decimal("12.30"), "list": [1, None]},
    **{"map": {"a": 1}, "pairs": {1: "one"}, "inner": {"x": "y"}, "other": 6},
}


def converter(name: str, **settings: str) -> Converter:
    made: Converter = PLUGINS.create(name, "converter")
    made.configure({key.replace("_", "."): value for key, value in settings.items()}, is_key=False)
    return made


@pytest.mark.parametrize("decimals", ["BASE64", "NUMERIC"])
def test_json_with_schemas_round_trip(decimals: str) -> None:
    json_converter = converter("JsonConverter", decimal_format=decimals)
    data = json_converter.from_connect("t", SCHEMA, VALUE)
    schema, value = json_converter.to_connect("t", data)
    assert schema is not None
    assert value == VALUE
    assert [(field.name, field.schema.kind) for field in schema.fields] == [
        (field.name, field.schema.kind) for field in SCHEMA.fields
    ]


def test_json_has_the_shape_that_kafka_gives_it() -> None:
    json_converter = converter("JsonConverter")
    schema = struct({"id": INT32, "a": optional(array(STRING))}, name="x.Y", version=1)
    assert json_converter.from_connect("t", schema, {"id": 1, "a": None}) == (
        b'{"schema":{"type":"struct","fields":[{"type":"int32","optional":false,"field":"id"},{"type":"array","items":'
        b'{"type":"string","optional":false},"optional":true,"field":"a"}],"optional":false,"name":"x.Y","version":1},'
        b'"payload":{"id":1,"a":null}}'
    )
    assert json_converter.from_connect("t", STRING, "hi") == (
        b'{"schema":{"type":"string","optional":false},"payload":"hi"}'
    )
    assert json_converter.from_connect("t", None, None) is None
    assert json_converter.to_connect("t", None) == (None, None)


def test_json_without_schemas() -> None:
    plain = converter("JsonConverter", schemas_enable="false")
    assert plain.to_connect("t", b'{"a":[1,2.5,null]}') == (None, {"a": [1, 2.5, None]})
    assert json.loads(plain.from_connect("t", SCHEMA, VALUE) or b"")["pairs"] == [[1, "one"]]
    assert plain.from_connect("t", None, {"a": 1e400, "b": b"x"}) == b'{"a":"Infinity","b":"eA=="}'


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"a":1}', "schemas.enable"),
        (b"{", "serialization error"),
        (b'{"schema":{"type":"int8"},"payload":300}', "does not fit"),
        (b'{"schema":{"type":"int8"},"payload":null}', "null"),
        (b'{"schema":{"type":"odd"},"payload":1}', "Unknown schema type"),
    ],
)
def test_bad_json_says_what_is_wrong(data: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        converter("JsonConverter").to_connect("t", data)


def test_a_schema_for_all_messages() -> None:
    fixed = converter("JsonConverter", schema_content='{"type":"struct","fields":[{"type":"int64","field":"n"}]}')
    schema, value = fixed.to_connect("t", b'{"n":5}')
    assert schema is not None
    assert (schema.fields[0].schema, value) == (INT64, {"n": 5})


@pytest.mark.parametrize(
    ("name", "value", "data"),
    [
        ("ShortConverter", -2, b"\xff\xfe"),
        ("IntegerConverter", 5, b"\0\0\0\5"),
        ("LongConverter", 5, b"\0" * 7 + b"\5"),
        ("FloatConverter", 0.5, b"\x3f\0\0\0"),
        ("DoubleConverter", 0.5, b"\x3f\xe0" + b"\0" * 6),
        ("BooleanConverter", True, b"\1"),
        ("StringConverter", "é", "é".encode()),
        ("ByteArrayConverter", b"x", b"x"),
    ],
)
def test_plain_converters(name: str, value: Any, data: bytes) -> None:
    one = converter(name)
    assert one.from_connect("t", None, value) == data
    assert one.to_connect("t", data)[1] == value
    assert one.from_connect("t", None, None) is None
    if name != "StringConverter":
        with pytest.raises(DataError):
            one.from_connect("t", None, {"a": 1})


def test_strings_of_other_values_are_javas() -> None:
    one = converter("StringConverter")
    assert one.from_connect("t", None, 1e10) == b"1.0E10"
    assert one.from_connect("t", None, {"a": [True, None]}) == b"{a=[true, null]}"
    assert one.from_connect("t", struct({"a": FLOAT32}), {"a": 0.1}) == b"Struct{a=0.1}"


def test_avro_round_trip_and_evolution() -> None:
    avro = converter("io.confluent.connect.avro.AvroConverter", schema_registry_url="mock://converters")
    data = avro.from_connect("rows", SCHEMA, {**VALUE, "other": None})
    schema, value = avro.to_connect("rows", data)
    assert value == {**VALUE, "other": 5}
    assert schema is not None
    assert schema.name == "org.example.Row"
    kinds = {field.name: field.schema for field in schema.fields}
    assert (kinds["i8"].kind.value, kinds["i16"].kind.value, kinds["f32"].kind.value) == ("int8", "int16", "float32")
    assert kinds["price"].parameters == {"scale": "2", "connect.decimal.precision": "10"}
    assert kinds["text"].is_optional
    registered = connect_schemas("mock://converters", None).latest("rows-value")
    assert registered is not None
    assert '"logicalType":"timestamp-millis"' in registered.parsed.canonical.replace(" ", "")
    assert avro.from_connect("rows", optional(STRING), None) is None
    with pytest.raises(DataError, match="has none"):
        avro.from_connect("rows", None, {"a": 1})
    with pytest.raises(DataError, match="magic"):
        avro.to_connect("rows", b"plain text")


def test_json_schema_round_trip() -> None:
    one = converter("io.confluent.connect.json.JsonSchemaConverter", schema_registry_url="mock://json-converters")
    schema = struct({field.name: field.schema for field in SCHEMA.fields if field.name != "pairs"}, name="row")
    value = {name: found for name, found in VALUE.items() if name != "pairs"}
    found, read = one.to_connect("rows", one.from_connect("rows", schema, {**value, "text": None}))
    assert read == {**value, "text": None}
    assert found is not None
    assert [(field.name, field.schema.kind, field.schema.name) for field in found.fields] == [
        (field.name, field.schema.kind, field.schema.name) for field in schema.fields
    ]
    with pytest.raises(DataError, match="keys"):
        one.from_connect("rows", SCHEMA, VALUE)


def test_protobuf_round_trip() -> None:
    one = converter("io.confluent.connect.protobuf.ProtobufConverter", schema_registry_url="mock://proto-converters")
    value = {**VALUE, "list": [1, 2]}
    found, read = one.to_connect("rows", one.from_connect("rows", SCHEMA, {**value, "text": None, "other": None}))
    assert read == {**value, "text": "", "other": 5}  # without presence a text cannot be null
    assert found is not None
    assert (found.name, found.is_optional) == ("org.example.Row", False)
    assert [(field.name, field.schema.kind, field.schema.name) for field in found.fields if field.name != "inner"] == [
        (field.name, field.schema.kind, field.schema.name) for field in SCHEMA.fields if field.name != "inner"
    ]
    assert one.to_connect("rows", None) == (None, None)
    for wrong, words in (
        ({**value, "i32": None}, "i32 is required"),
        ({**value, "i32": 1 << 40}, "i32"),
        (5, "struct"),
    ):
        with pytest.raises(DataError, match=words):
            one.from_connect("rows", SCHEMA, wrong)
    with pytest.raises(DataError, match="HoistField"):
        one.from_connect("rows", INT32, 5)
    with pytest.raises(DataError, match="magic"):
        one.to_connect("rows", b"plain text")


@pytest.mark.parametrize("way", ["optional", "wrapper"])
def test_protobuf_keeps_nulls_where_it_is_told_to(way: str) -> None:
    one = converter(
        "io.confluent.connect.protobuf.ProtobufConverter",
        schema_registry_url=f"mock://proto-{way}",
        **{f"{way}_for_nullables": "true"},
    )
    schema = struct({"a": optional(STRING), "b": optional(INT64), "c": optional(struct({"x": INT8}))})
    for value in ({"a": None, "b": None, "c": None}, {"a": "", "b": 0, "c": {"x": -1}}):
        assert one.to_connect("t", one.from_connect("t", schema, value))[1] == value


def test_protobuf_of_others_has_oneofs_enums_and_several_messages() -> None:
    text = """syntax = "proto3"; package shop;
        message First { string a = 1; }
        message Order { enum State { NEW = 0; SENT = 1; } State state = 1;
            oneof paid { string card = 2; int64 cash = 3; }
            repeated First parts = 4; map<string, First> named = 5; uint64 big = 6; }"""
    source = connect_schemas("mock://proto-others", None)
    source.registered("orders-value", SchemaText("PROTOBUF", text), may_register=True)
    one = converter(
        "io.confluent.connect.protobuf.ProtobufConverter",
        schema_registry_url="mock://proto-others",
        use_latest_version="true",
    )
    part = struct({"a": STRING}, name="shop.First")
    schema = struct(
        {
            "state": STRING,
            "paid_0": optional(struct({"card": optional(STRING), "cash": optional(INT64)})),
            "parts": array(part),
            "named": map_of(STRING, part),
            "big": INT64,
        },
        name="shop.Order",
    )
    value = {
        "state": "SENT",
        "paid_0": {"card": None, "cash": 7},
        "parts": [{"a": "x"}, {"a": "y"}],
        "named": {"n": {"a": "z"}},
        "big": -1,
    }
    data = one.from_connect("orders", schema, value)
    found, read = one.to_connect("orders", data)
    assert read == value
    assert found is not None
    assert found.name == "shop.Order"


def test_headers_find_their_types_again() -> None:
    simple = PLUGINS.create("SimpleHeaderConverter", "header_converter")
    for schema, value, text in [
        (INT64, 12, b"12"),
        (STRING, "some words", b"some words"),
        (BOOLEAN, True, b"true"),
        (DATE, 19782, b"2024-02-29"),
        (array(INT32), [1, 2], b"[1,2]"),
        (map_of(STRING, INT32), {"a": 1}, b'{"a":1}'),
    ]:
        assert simple.from_connect_header("t", "h", schema, value) == text
        assert simple.to_connect_header("t", "h", text)[1] == value
    assert simple.to_connect_header("t", "h", None) == (None, None)


def test_plain_converters_refuse_logical_types_as_javas_do() -> None:
    for name, schema in (("IntegerConverter", DATE), ("LongConverter", TIMESTAMP)):
        made = PLUGINS.create(name, "converter")
        with pytest.raises(DataError, match=r"org\.apache\.kafka\.connect\.data"):
            made.from_connect("t", schema, 5)
