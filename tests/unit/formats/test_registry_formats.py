from __future__ import annotations

import json
import pickle
from decimal import Decimal
from typing import Any

import pytest
from tests.ksql_cases.case_registry import CaseRegistry

from moldau.core.errors import InvalidConfigError
from moldau.formats.codec import RowCodec, codec
from moldau.formats.columns import Column
from moldau.formats.errors import FormatError, RowError
from moldau.formats.format import RowFormat, row_format
from moldau.formats.registry.avro_schemas import key_full_name
from moldau.formats.registry.data_schema import DataSchema, Kind
from moldau.formats.registry.schema_texts import data_schema_of, derived_schema, inferred_columns
from moldau.formats.registry.topic_schemas import TopicSchemas
from moldau.formats.row_serde import RegistryAddress, RowSerde
from moldau.formats.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    Field,
    MapType,
    SqlType,
    StructType,
)
from moldau.schemas.framing import frame_value
from moldau.schemas.schema import parse
from moldau.schemas.values import codec_of
from moldau.serdes.serde import ready_serde
from moldau.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde, Window, Windowed


def columns_of(**types: SqlType) -> tuple[Column, ...]:
    return tuple(Column(name, sql_type) for name, sql_type in types.items())


def reader(name: str, schema: Any, **types: SqlType) -> tuple[RowCodec, CaseRegistry]:
    """A codec of these columns, and a registry whose schema 1 is the given one."""
    registry = CaseRegistry()
    registry.prepare({"name": "t", "valueFormat": name, "valueSchema": schema, "valueSchemaId": 1})
    return codec(row_format(name), columns_of(**types), topic="t", schemas=registry), registry


def avro_data(schema: Any, value: Any) -> bytes:
    return frame_value(1, codec_of(parse("AVRO", json.dumps(schema))).encode(value))


def proto_data(text: str, value: dict[str, Any], message: str | None = None) -> bytes:
    made: Any = codec_of(parse("PROTOBUF", text), message=message)
    return frame_value(1, made.encode_dict(value))


def infer(name: str, schema: Any, **options: bool) -> list[str]:
    text = schema if name == "PROTOBUF" else json.dumps(schema)
    form = row_format(name)
    assert form.format.schema_type is not None
    return [str(column) for column in inferred_columns(parse(form.format.schema_type, text), form, **options)]


def record(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": one, "type": kind} for one, kind in fields]}


# Avro


def test_avro_columns_are_registered_as_ksqldb_registers_them() -> None:
    text = derived_schema(row_format("AVRO"), columns_of(FOO=INTEGER)).text
    assert json.loads(text) == {
        "type": "record",
        "name": "KsqlDataSourceSchema",
        "namespace": "io.confluent.ksql.avro_schemas",
        "fields": [{"name": "FOO", "type": ["null", "int"], "default": None}],
        "connect.name": "io.confluent.ksql.avro_schemas.KsqlDataSourceSchema",
    }


def test_a_key_record_is_named_after_its_source() -> None:
    columns = columns_of(K=StructType((Field("F1", STRING),)))
    form = row_format("AVRO", {"fullSchemaName": key_full_name("MY_OUTPUT")}).for_key(columns)
    schema = json.loads(derived_schema(form, columns).text)
    assert schema["name"] == "MyOutputKey"
    assert schema["fields"] == [{"name": "F1", "type": ["null", "string"], "default": None}]


def test_a_bare_value_is_registered_without_null() -> None:
    columns = columns_of(K=INTEGER)
    assert derived_schema(row_format("AVRO").for_key(columns), columns).text == '"int"'


def test_avro_maps_are_entries_because_keys_may_be_null() -> None:
    schema = json.loads(derived_schema(row_format("AVRO"), columns_of(M=MapType(STRING, INTEGER))).text)
    entries = schema["fields"][0]["type"][1]
    assert entries["type"] == "array"
    assert entries["items"]["connect.internal.type"] == "MapEntry"


def test_avro_types_become_columns() -> None:
    schema = record(
        ("b", "boolean"), ("i", "int"), ("l", ["null", "long"]), ("f", "float"), ("d", "double"), ("s", "string"),
        ("y", "bytes"), ("x", {"type": "fixed", "name": "X", "size": 2}),
        ("e", {"type": "enum", "name": "E", "symbols": ["A"]}),
        ("dec", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}),
        ("dt", {"type": "int", "logicalType": "date"}), ("tm", {"type": "int", "logicalType": "time-millis"}),
        ("ts", {"type": "long", "logicalType": "timestamp-millis"}),
        ("us", {"type": "long", "logicalType": "timestamp-micros"}),
        ("a", {"type": "array", "items": ["null", "int"]}), ("m", {"type": "map", "values": "int"}),
        ("r", record(("inner", "int"), name="Inner")), ("u", ["null", "int", "string"]),
    )  # fmt: skip
    assert infer("AVRO", schema) == [
        "`B` BOOLEAN", "`I` INTEGER", "`L` BIGINT", "`F` DOUBLE", "`D` DOUBLE", "`S` STRING", "`Y` BYTES", "`X` BYTES",
        "`E` STRING", "`DEC` DECIMAL(4, 2)", "`DT` DATE", "`TM` TIME", "`TS` TIMESTAMP", "`US` BIGINT",
        "`A` ARRAY<INTEGER>", "`M` MAP<STRING, INTEGER>", "`R` STRUCT<`INNER` INTEGER>",
        "`U` STRUCT<`INT` INTEGER, `STRING` STRING>",
    ]  # fmt: skip


def test_names_keep_their_case_if_the_schema_is_named_by_its_id() -> None:
    assert infer("AVRO", record(("c1", record(("f1", "int"), name="I"))), by_id=True) == ["`c1` STRUCT<`f1` INTEGER>"]


def test_what_is_no_record_is_one_column() -> None:
    assert infer("AVRO", "int") == ["`ROWVAL` INTEGER"]
    assert infer("AVRO", record(("F0", "int")), has_bare_value=True) == ["`ROWVAL` STRUCT<`F0` INTEGER>"]


def test_a_record_as_key_is_one_column_unless_named_by_its_id() -> None:
    schema = parse("AVRO", json.dumps(record(("K", "int"))))
    key = row_format("AVRO", is_key=True)
    assert list(map(str, inferred_columns(schema, key))) == ["`ROWKEY` STRUCT<`K` INTEGER>"]
    assert list(map(str, inferred_columns(schema, key, by_id=True))) == ["`K` INTEGER"]


def test_a_recursive_record_has_no_columns() -> None:
    with pytest.raises(FormatError, match="contains itself"):
        infer("AVRO", record(("next", ["null", "R"])))


def test_types_that_double_at_every_level_are_refused_in_time() -> None:
    inner = record(("v", "int"), name="R0")
    for level in range(1, 40):
        inner = record(("a", inner), ("b", f"R{level - 1}"), name=f"R{level}")
    with pytest.raises(FormatError, match="too large"):
        infer("AVRO", inner)


def test_data_of_any_schema_are_read_by_name_in_any_case() -> None:
    schema = record(("id", "int"), ("Name", ["null", "string"]), ("more", "double"))
    rows, _ = reader("AVRO", schema, ID=BIGINT, NAME=STRING, ABSENT=INTEGER)
    assert rows.decode(avro_data(schema, {"id": 1, "Name": "x", "more": 1.0})) == (1, "x", None)


@pytest.mark.parametrize(
    ("kind", "value", "text"), [("int", 10, "10"), ("boolean", True, "true"), ("double", 1e10, "1.0E10")]
)
def test_numbers_are_read_as_text_where_the_column_is_text(kind: str, value: Any, text: str) -> None:
    rows, _ = reader("AVRO", record(("v", kind)), V=STRING)
    assert rows.decode(avro_data(record(("v", kind)), {"v": value})) == (text,)


@pytest.mark.parametrize(
    ("kind", "sql_type"), [("string", INTEGER), ("long", INTEGER), ("int", DOUBLE), ("int", BOOLEAN)]
)
def test_data_of_another_type_are_errors_of_their_records(kind: str, sql_type: SqlType) -> None:
    rows, _ = reader("AVRO", record(("v", ["null", kind])), V=sql_type)
    with pytest.raises(RowError, match="Cannot deserialize type"):
        rows.decode(avro_data(record(("v", ["null", kind])), {"v": None}))


def test_logical_types_and_unions_are_read() -> None:
    union = ["null", "int", "string", record(("f", "int"), name="N")]
    fixed = {"type": "fixed", "name": "F", "size": 3, "logicalType": "decimal", "precision": 5, "scale": 1}
    schema = record(("u", union), ("d", fixed), ("e", ["null", {"type": "enum", "name": "E", "symbols": ["A", "B"]}]))
    types = StructType((Field("INT", INTEGER), Field("STRING", STRING), Field("N", StructType((Field("F", INTEGER),)))))
    rows, _ = reader("AVRO", schema, U=types, D=DecimalType(5, 1), E=STRING)
    number = Decimal("-12.5")
    assert rows.decode(avro_data(schema, {"u": 5, "d": number, "e": "B"})) == ((5, None, None), number, "B")
    assert rows.decode(avro_data(schema, {"u": {"f": 7}, "d": number, "e": None})) == ((None, None, (7,)), number, None)
    assert rows.decode(avro_data(schema, {"u": None, "d": number, "e": None})) == (None, number, None)


def with_id(schema: Any, **types: SqlType) -> RowCodec:
    _, registry = reader("AVRO", schema)
    return codec(row_format("AVRO", {"schemaId": "1"}), columns_of(**types), topic="t", schemas=registry)


def test_rows_are_written_with_the_schema_that_is_named() -> None:
    schema = record(("c1", "int"))
    schema["fields"].append({"name": "c2", "type": "int", "default": 100})
    schema["fields"].append({"name": "u", "type": ["null", "int", "string"], "default": None})
    union = StructType((Field("INT", INTEGER), Field("STRING", STRING)))
    data = with_id(schema, c1=INTEGER, u=union).encode((4, (None, "x")))
    assert data is not None
    assert codec_of(parse("AVRO", json.dumps(schema))).decode(data[5:]) == {"c1": 4, "c2": 100, "u": "x"}


def test_a_null_becomes_the_default_of_a_field_that_allows_none() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int", "default": 7}]}
    data = with_id(schema, n=INTEGER).encode((None,))
    assert data is not None
    assert codec_of(parse("AVRO", json.dumps(schema))).decode(data[5:]) == {"n": 7}


def test_a_required_field_without_value_is_an_error() -> None:
    with pytest.raises(RowError, match="c2"):
        with_id(record(("c1", "int"), ("c2", "double")), c1=INTEGER).encode((4,))
    with pytest.raises(RowError, match="c1 is null"):
        with_id(record(("c1", "int")), c1=INTEGER).encode((None,))


@pytest.mark.parametrize("name", ["AVRO", "JSON_SR", "PROTOBUF"])
@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0\0\1", b"\0\0\0\0\x63abc", b"{}", b"\x05abcd", b"\1" * 30])
def test_bytes_without_a_known_schema_are_errors(name: str, data: bytes) -> None:
    schema = {
        "AVRO": record(("V", "int")),
        "JSON_SR": {"type": "object"},
        "PROTOBUF": 'syntax = "proto3"; message M {}',
    }
    rows, _ = reader(name, schema[name], V=INTEGER)
    with pytest.raises(RowError):
        rows.decode(data)


def test_data_of_another_format_are_errors() -> None:
    _, registry = reader("AVRO", record(("V", "int")))
    with pytest.raises(RowError, match="schema of type AVRO"):
        codec(row_format("PROTOBUF"), columns_of(V=INTEGER), topic="t", schemas=registry).decode(b"\0\0\0\0\1\0")


# JSON Schema


def test_json_schema_types_become_columns() -> None:
    schema = {
        "type": "object",
        "definitions": {"inner": {"type": "object", "properties": {"f": {"type": "number"}}}},
        "properties": {
            "i": {"type": "integer"},
            "i32": {"oneOf": [{"type": "null"}, {"type": "integer", "connect.type": "int32"}]},
            "n": {"type": ["null", "number"]},
            "s": {"type": "string"},
            "y": {"type": "string", "connect.type": "bytes"},
            "b": {"type": "boolean"},
            "a": {"type": "array", "items": {"type": "string"}},
            "m": {"type": "object", "additionalProperties": {"type": "integer"}},
            "r": {"$ref": "#/definitions/inner"},
            "e": {"enum": ["A", "B"]},
        },
    }
    assert infer("JSON_SR", schema) == [
        "`I` BIGINT", "`I32` INTEGER", "`N` DOUBLE", "`S` STRING", "`Y` BYTES", "`B` BOOLEAN", "`A` ARRAY<STRING>",
        "`M` MAP<STRING, BIGINT>", "`R` STRUCT<`F` DOUBLE>", "`E` STRING",
    ]  # fmt: skip


def test_json_properties_are_ordered_by_their_index() -> None:
    first, second = {"type": "string", "connect.index": 1}, {"type": "string", "connect.index": 0}
    assert infer("JSON_SR", {"type": "object", "properties": {"A": first, "B": second}}) == ["`B` STRING", "`A` STRING"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
        {"type": "object"},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": {"type": "null"}}},
        {"type": "object", "properties": {"a": {"type": "array"}}},
    ],
)
def test_json_schemas_without_columns(schema: Any) -> None:
    with pytest.raises(FormatError):
        infer("JSON_SR", schema)


def test_json_data_have_their_schema_id_before_them() -> None:
    registry = CaseRegistry()
    rows = codec(row_format("JSON_SR"), columns_of(A=INTEGER), topic="t", schemas=registry)
    assert rows.encode((1,)) == b'\0\0\0\0\1{"A":1}'
    assert rows.decode(b'\0\0\0\0\1{"a":2}') == (2,)
    # JSON can be read without its schema.
    assert rows.decode(b'\0\0\0\0\x63{"a":3}') == (3,)


# Protobuf


def proto(body: str, imports: str = "") -> str:
    return f'syntax = "proto3"; {imports} {body}'


def test_protobuf_types_become_columns() -> None:
    imports = "".join(
        f'import "{path}";'
        for path in (
            "google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto", "google/type/date.proto",
            "google/type/timeofday.proto", "confluent/type/decimal.proto",
        )
    )  # fmt: skip
    body = """
        message M {
          bool b = 1; uint32 u = 2; uint64 u8 = 3; sint32 z = 4; float f = 5; bytes y = 6; E e = 7;
          repeated string a = 8; map<int32, Inner> m = 9; google.protobuf.Timestamp ts = 10; google.type.Date d = 11;
          google.type.TimeOfDay t = 12; google.protobuf.Int32Value w = 13;
          confluent.type.Decimal dec = 14 [(confluent.field_meta) = { params: [
            { value: "4", key: "precision" }, { value: "2", key: "scale" }]}];
          oneof choice { string left = 15; Inner right = 16; }
          optional int32 o = 17;
          enum E { A = 0; }
          message Inner { int64 n = 1; }
        }
    """
    assert infer("PROTOBUF", proto(body, imports)) == [
        "`CHOICE_0` STRUCT<`LEFT` STRING, `RIGHT` STRUCT<`N` BIGINT>>", "`B` BOOLEAN", "`U` BIGINT", "`U8` BIGINT",
        "`Z` INTEGER", "`F` DOUBLE", "`Y` BYTES", "`E` STRING", "`A` ARRAY<STRING>",
        "`M` MAP<STRING, STRUCT<`N` BIGINT>>", "`TS` TIMESTAMP", "`D` DATE", "`T` TIME", "`W` INTEGER",
        "`DEC` DECIMAL(4, 2)", "`O` INTEGER",
    ]  # fmt: skip


def test_protobuf_columns_are_registered_as_ksqldb_registers_them() -> None:
    columns = columns_of(I=INTEGER, S=STRING)
    text = derived_schema(row_format("PROTOBUF"), columns).text
    assert text == 'syntax = "proto3";\n\nmessage ConnectDefault1 {\n  int32 I = 1;\n  string S = 2;\n}\n'
    optional = derived_schema(row_format("PROTOBUF", {"nullableRepresentation": "OPTIONAL"}), columns).text
    assert "  optional int32 I = 1;\n" in optional
    wrapper = derived_schema(row_format("PROTOBUF", {"nullableRepresentation": "WRAPPER"}), columns).text
    assert "  google.protobuf.Int32Value I = 1;\n" in wrapper
    named = derived_schema(row_format("PROTOBUF", {"fullSchemaName": "com.acme.Order"}), columns).text
    assert "package com.acme;" in named
    assert "message Order {" in named


def test_protobuf_nulls_are_defaults_except_messages() -> None:
    struct = StructType((Field("F", INTEGER),))
    columns = columns_of(I=INTEGER, S=STRING, B=BOOLEAN, A=ArrayType(INTEGER), D=DATE, R=struct)
    rows = codec(row_format("PROTOBUF"), columns, topic="t", schemas=CaseRegistry())
    assert rows.decode(rows.encode((None,) * 6)) == (0, "", False, [], None, None)


def test_protobuf_messages_of_any_schema_are_read() -> None:
    body = "message Other { int32 x = 1; } message M { oneof c { string l = 1; int64 r = 2; } E e = 3; uint64 u = 4; "
    text = proto(body + "enum E { A = 0; B = 1; } }")
    choice = StructType((Field("L", STRING), Field("R", BIGINT)))
    rows, _ = reader("PROTOBUF", text, C_0=choice, E=STRING, U=BIGINT)
    assert rows.decode(proto_data(text, {"r": 5, "e": "B", "u": 2**64 - 1}, "M")) == ((None, 5), "B", -1)
    assert rows.decode(proto_data(text, {}, "M")) == (None, "A", 0)
    assert rows.decode(proto_data(text, {"x": 5}, "Other")) == (None, None, None)


def test_protobuf_messages_are_written_by_name() -> None:
    text = proto("message Other { int32 x = 1; } message M { oneof c { string l = 1; int64 r = 2; } repeated E e = 3; "
                 "enum E { A = 0; B = 1; } }")  # fmt: skip
    _, registry = reader("PROTOBUF", text)
    columns = columns_of(C_0=StructType((Field("R", BIGINT),)), E=ArrayType(STRING))
    form = row_format("PROTOBUF", {"schemaId": "1", "fullSchemaName": "M"})
    rows = codec(form, columns, topic="t", schemas=registry)
    assert rows.encode(((5,), ["B"])) == proto_data(text, {"r": 5, "e": ["B"]}, "M")
    with pytest.raises(RowError, match="not a constant"):
        rows.encode(((5,), ["X"]))


def test_a_recursive_message_has_no_columns() -> None:
    with pytest.raises(FormatError, match="contains itself"):
        infer("PROTOBUF", proto("message M { M m = 1; }"))


@pytest.mark.parametrize("sql_type", [ArrayType(ArrayType(INTEGER)), MapType(STRING, ArrayType(INTEGER))])
def test_collections_inside_of_collections_are_refused(sql_type: SqlType) -> None:
    with pytest.raises(FormatError, match="put it into a STRUCT"):
        derived_schema(row_format("PROTOBUF"), columns_of(A=sql_type))


def test_names_that_protobuf_does_not_have_are_refused() -> None:
    with pytest.raises(FormatError, match="Illegal field name: a-b"):
        derived_schema(row_format("PROTOBUF"), (Column("a-b", INTEGER),))


@pytest.mark.parametrize("value", [0, 5, -1])
def test_bare_messages_are_wrappers_of_one_value(value: int) -> None:
    columns = columns_of(K=INTEGER)
    rows = codec(row_format("PROTOBUF_NOSR").for_key(columns), columns)
    assert rows.decode(rows.encode((value,))) == (value,)
    assert rows.encode((None,)) is None


# Topics


def test_schemas_of_topics_are_registered_checked_and_inferred() -> None:
    registry = CaseRegistry()
    topics, columns, form = TopicSchemas(registry), columns_of(A=INTEGER, B=TIME), row_format("AVRO")
    with pytest.raises(
        FormatError, match="Schema for message values on topic 't' does not exist in the Schema Registry"
    ):
        topics.inferred("t", form)
    topics.register_if_absent("t", form, columns)
    topics.register_if_absent("t", form, columns_of(X=DOUBLE))
    topics.register_if_absent("t", row_format("JSON"), columns)
    assert topics.inferred("t", form) == columns
    by_id = row_format("AVRO", {"schemaId": "1"})
    topics.check("t", by_id, columns_of(A=INTEGER))
    with pytest.raises(FormatError) as refusal:
        topics.check("t", by_id, columns_of(B=TIME))
    assert str(refusal.value) == (
        "The following value columns are changed, missing or reordered: [`B` TIME]. Schema from schema registry is "
        "[`A` INTEGER, `B` TIME]"
    )


def test_data_schemas_keep_what_connect_needs() -> None:
    schema = {"type": "record", "name": "R", "namespace": "n", "fields": [{"name": "a", "type": "int", "default": 7}]}
    found = data_schema_of(parse("AVRO", json.dumps(schema)))
    assert (found.kind, found.name) == (Kind.STRUCT, "n.R")
    assert found.fields[0].schema == DataSchema(Kind.INT32, default=7)


# Serdes


def connect(url: str, user_info: str | None) -> CaseRegistry:
    return REGISTRIES.setdefault(url, CaseRegistry())


REGISTRIES: dict[str, CaseRegistry] = {}


def test_a_serde_of_rows_is_prepared_and_shipped_like_any_other() -> None:
    serde = RowSerde(row_format("AVRO"), columns_of(A=INTEGER))
    ready = ready_serde(serde, {"schema.registry.url": "http://registry"}, "value", connect)
    assert isinstance(ready, RowSerde)
    shipped = pickle.loads(pickle.dumps(ready))
    assert shipped == ready
    assert shipped.deserialize("t", ready.serialize("t", (1,))) == (1,)
    assert shipped.encode is None
    with pytest.raises(InvalidConfigError, match=r"schema\.registry\.url"):
        ready_serde(serde, {}, "value", connect)


def test_a_registry_inside_the_process_is_not_shipped() -> None:
    with pytest.raises(InvalidConfigError, match="mock://"):
        pickle.dumps(RowSerde(row_format("AVRO"), (), RegistryAddress(connect, "mock://x")))


def test_formats_without_registry_need_no_topic() -> None:
    serde = RowSerde(row_format("JSON"), columns_of(A=INTEGER))
    assert serde.encode is not None
    assert serde.encode((1,)) == b'{"A":1}'
    assert ready_serde(serde, {}, "value", connect).deserialize("t", b'{"a":1}') == (1,)


def test_a_registry_format_without_registry_says_so() -> None:
    with pytest.raises(InvalidConfigError, match=r"ksql\.schema\.registry\.url"):
        RowSerde(row_format("AVRO"), columns_of(A=INTEGER)).serialize("t", (1,))


def windowed_key() -> tuple[RowFormat, tuple[Column, ...]]:
    columns = columns_of(K=STRING)
    return row_format("KAFKA").for_key(columns), columns


def test_windowed_keys_are_the_key_and_its_times() -> None:
    key = RowSerde(*windowed_key())
    windowed = Windowed(("a",), Window(1000, 2000))
    assert TimeWindowedSerde(key, 1000).serialize("t", windowed) == b"a" + (1000).to_bytes(8, "big")
    session = SessionWindowedSerde(key)
    assert session.serialize("t", windowed) == b"a" + (2000).to_bytes(8, "big") + (1000).to_bytes(8, "big")
    assert session.deserialize("t", session.serialize("t", windowed)) == windowed


def test_every_type_has_a_schema_in_every_format() -> None:
    types = (BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING, BYTES, DecimalType(5, 2), DATE, TIME, TIMESTAMP)
    columns = tuple(Column(f"C{index}", sql_type) for index, sql_type in enumerate(types))
    for name in ("AVRO", "JSON_SR", "PROTOBUF"):
        form = row_format(name)
        schema = derived_schema(form, columns)
        assert inferred_columns(parse(schema.schema_type, schema.text), form) == columns
