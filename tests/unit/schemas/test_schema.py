"""The front door: types by name, what all schemas have in common, and texts made to do harm."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from moldau.schemas.compatibility import CompatibilityLevel, check
from moldau.schemas.errors import InvalidSchemaError, UnknownSchemaTypeError
from moldau.schemas.schema import SchemaType, parse


def test_types_are_known_in_any_case_and_none_means_avro() -> None:
    assert [SchemaType.of(name) for name in (None, "", "avro", "Json", "PROTOBUF")] == [
        SchemaType.AVRO,
        SchemaType.AVRO,
        SchemaType.AVRO,
        SchemaType.JSON,
        SchemaType.PROTOBUF,
    ]
    with pytest.raises(UnknownSchemaTypeError, match="Invalid schema type XML"):
        parse("XML", "<a/>")


def test_equal_schemas_are_equal_whatever_the_spelling() -> None:
    assert parse("AVRO", '{"type":"int"}') == parse("AVRO", ' "int" ')
    assert len({parse("JSON", '{"a":1}'), parse("JSON", '{ "a" : 1 }')}) == 1
    assert parse("PROTOBUF", "message M{}") == parse("PROTOBUF", "message M { ; }")
    assert parse("AVRO", '"int"') != parse("JSON", "true")


def test_top_level_fields_are_those_of_the_first_message_or_record() -> None:
    fields = '[{"name":"a","type":"int"},{"name":"b","type":"int"}]'
    assert parse("AVRO", f'{{"type":"record","name":"R","fields":{fields}}}').top_level_fields == {"a", "b"}
    assert parse("AVRO", '"int"').top_level_fields == frozenset()
    assert parse("JSON", '{"properties":{"a":{"properties":{"b":{}}}}}').top_level_fields == {"a"}
    assert parse("JSON", "true").top_level_fields == frozenset()
    assert parse("PROTOBUF", "message M { oneof o { int32 a = 1; } } message N { int32 b = 1; }").top_level_fields == {
        "a"
    }


def test_property_names_that_registries_reserve_are_found_anywhere() -> None:
    parse("JSON", '{"properties":{"$a":{}}}').check_field_names()
    for schema_type, text in (("AVRO", '"int"'), ("PROTOBUF", "message M {}")):
        parse(schema_type, text).check_field_names()
    with pytest.raises(InvalidSchemaError, match=r"'\$\$b'"):
        parse("JSON", '{"properties":{"a":{"properties":{"$$b":{}}}}}').check_field_names()


@contextmanager
def quickly(seconds: float = 10) -> Iterator[None]:
    """Whatever happens inside must not take long, even on a slow machine."""
    start = time.monotonic()
    yield
    assert time.monotonic() - start < seconds


def nested(opening: str, closing: str, depth: int, core: str) -> str:
    return opening * depth + core + closing * depth


DEEP = [
    ("AVRO", nested('{"type":"array","items":', "}", 50_000, '"int"')),
    ("AVRO", nested('{"type":"array","items":', "}", 301, '"int"')),
    ("AVRO", nested("[", "]", 100_000, "")),
    ("AVRO", '{"type":"int","x":' + nested("[", "]", 10_000, "") + "}"),
    ("JSON", nested('{"properties":{"a":', "}}", 50_000, "{}")),
    ("JSON", nested('{"not":', "}", 301, "{}")),
    ("PROTOBUF", nested("message M {", "}", 50_000, "")),
    ("PROTOBUF", "message M { int32 a = 1 [(x) = " + nested("{ a: ", "}", 50_000, "1") + "]; }"),
    ("PROTOBUF", "message M { int32 a = 1 [(x) = " + nested("[", "]", 50_000, "1") + "]; }"),
    ("PROTOBUF", "message M {" + nested("optional group G = 1 {", "}", 50_000, "") + "}"),
]


@pytest.mark.parametrize(
    ("schema_type", "text"), DEEP, ids=[f"{kind} {number}" for number, (kind, _) in enumerate(DEEP)]
)
def test_nesting_without_end_is_refused(schema_type: str, text: str) -> None:
    with quickly(), pytest.raises(InvalidSchemaError):
        parse(schema_type, text)


@pytest.mark.parametrize("depth", [60])
def test_nesting_that_people_write_is_accepted(depth: int) -> None:
    for schema_type, text in (
        ("AVRO", nested('{"type":"array","items":', "}", depth, '"int"')),
        ("JSON", nested('{"properties":{"a":', "}}", depth, "{}")),
        ("PROTOBUF", nested("message M {", "}", 30, "")),
    ):
        schema = parse(schema_type, text)
        assert schema.normalized().canonical
        assert check(CompatibilityLevel.FULL, schema, [schema]) == []


HOSTILE = [
    ("AVRO", '"' + "a" * 1_000_000 + '"'),
    ("AVRO", "9" * 1_000_000),
    ("AVRO", '{"type":"' + "a." * 100_000 + '"}'),
    ("JSON", '{"multipleOf":' + "9" * 5_000 + "}"),
    ("JSON", '{"pattern":"' + "(" * 10_000 + '","type":"x"}'),
    ("PROTOBUF", "/*" * 200_000),
    ("PROTOBUF", '"' * 300_001),
    ("PROTOBUF", "message M { int32 a = " + "1" * 1_000_000 + "; }"),
    ("PROTOBUF", "package " + "a." * 50_000 + ";"),
    ("PROTOBUF", "A" * 1_000_000),
    ("PROTOBUF", "\ud800"),
    ("PROTOBUF", "option a.b.c = 1;" * 10 + "message M { Missing m = 1; }"),
]


@pytest.mark.parametrize(("schema_type", "text"), HOSTILE, ids=[f"{kind} {n}" for n, (kind, _) in enumerate(HOSTILE)])
def test_texts_made_to_waste_time_are_refused(schema_type: str, text: str) -> None:
    with quickly(), pytest.raises(InvalidSchemaError):
        parse(schema_type, text)


LENGTH = 1_200
CHAINS = [
    (
        "AVRO",
        json.dumps(
            [{"type": "record", "name": "R0", "fields": []}]
            + [
                {"type": "record", "name": f"R{number}", "fields": [{"name": "f", "type": f"R{number - 1}"}]}
                for number in range(1, LENGTH)
            ]
        ),
    ),
    (
        "JSON",
        json.dumps(
            {"$ref": "#/definitions/0", "definitions": {"0": {}}}
            | {
                "definitions": {
                    str(n): {"properties": {"a": {"$ref": f"#/definitions/{n - 1}"}}} for n in range(LENGTH)
                }
            }
        ).replace("/-1", f"/{LENGTH - 1}"),
    ),
    ("PROTOBUF", "".join(f"message M{n} {{ optional M{(n + 1) % LENGTH} f = 1; }}" for n in range(LENGTH))),
]


@pytest.mark.parametrize(("schema_type", "text"), CHAINS, ids=[kind for kind, _ in CHAINS])
def test_a_chain_of_types_longer_than_the_stack_is_compared_or_refused(schema_type: str, text: str) -> None:
    with quickly(), suppress(InvalidSchemaError):
        schema, other = parse(schema_type, text), parse(schema_type, text)
        assert schema.normalized().canonical
        assert check(CompatibilityLevel.FULL, schema, [other]) == []


@pytest.mark.parametrize("schema_type", list(SchemaType))
def test_a_large_schema_is_parsed_and_compared_in_seconds(schema_type: SchemaType) -> None:
    count = 2_500
    text = {
        SchemaType.AVRO: json.dumps(
            {
                "type": "record",
                "name": "R",
                "fields": [{"name": f"f{n}", "type": ["null", "string"]} for n in range(count)],
            }
        ),
        SchemaType.JSON: json.dumps(
            {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(count)}}
        ),
        SchemaType.PROTOBUF: "message M {" + "".join(f"optional string f{n} = {n + 1};" for n in range(count)) + "}",
    }[schema_type]
    with quickly():
        schema, other = parse(schema_type, text), parse(schema_type, text)
        assert schema.normalized().canonical
        assert check(CompatibilityLevel.FULL_TRANSITIVE, schema, [other, schema]) == []
