"""An Avro text becomes a schema, and the schema one canonical text."""

from __future__ import annotations

import json

import pytest

from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.schema import SchemaType, parse

PERSON = """
{ "namespace": "club", "name": "Person", "type": "record", "doc": "A member",
  "fields": [
    {"type": "string", "name": "firstname"},
    {"name": "age", "type": {"type": "int"}, "default": -1, "doc": "in years"},
    {"name": "address", "type": {"type": "record", "name": "Address", "namespace": "club",
                                 "fields": [{"name": "street", "type": "string"}]}},
    {"name": "second", "type": ["null", "club.Address"], "default": null}
  ] }
"""


def test_canonical_text_has_one_order_of_attributes_and_short_names() -> None:
    assert parse("AVRO", PERSON).canonical == (
        '{"type":"record","name":"Person","namespace":"club","doc":"A member","fields":['
        '{"name":"firstname","type":"string"},'
        '{"name":"age","type":"int","doc":"in years","default":-1},'
        '{"name":"address","type":{"type":"record","name":"Address","fields":[{"name":"street","type":"string"}]}},'
        '{"name":"second","type":["null","Address"],"default":null}]}'
    )


def test_canonical_text_parses_to_the_same_schema() -> None:
    schema = parse("AVRO", PERSON)
    assert parse("AVRO", schema.canonical) == schema
    assert parse("AVRO", schema.canonical).canonical == schema.canonical


def test_extra_attributes_stay_in_the_order_they_were_written() -> None:
    text = (
        '{"type":"record","name":"R","z":1,"fields":[{"name":"f","type":{"type":"int","b":1,"a":2}}],"y":{"d":1,"c":2}}'
    )
    assert parse("AVRO", text).canonical == (
        '{"type":"record","name":"R","fields":[{"name":"f","type":{"type":"int","b":1,"a":2}}],"z":1,"y":{"d":1,"c":2}}'
    )


def test_normalized_text_orders_what_has_no_order() -> None:
    text = (
        '{"type":"record","name":"R","z":1,"a":{"d":1,"c":2},"aliases":["y","x"],"doc":"","fields":'
        '[{"name":"f","type":{"type":"bytes","scale":2,"precision":4,"logicalType":"decimal","a":0}}]}'
    )
    assert parse("AVRO", text).normalized().canonical == (
        '{"type":"record","name":"R","fields":[{"name":"f","type":{"type":"bytes","logicalType":"decimal",'
        '"precision":4,"scale":2,"a":0}}],"a":{"c":2,"d":1},"z":1,"aliases":["x","y"]}'
    )


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('"string"', '"string"'),
        ('{"type":"string"}', '"string"'),
        ('["null","int"]', '["null","int"]'),
        ('{"items":"int","type":"array"}', '{"type":"array","items":"int"}'),
        ('{"type":"map","values":{"type":"long"}}', '{"type":"map","values":"long"}'),
        ('{"type":"fixed","size":16,"name":"a.b.MD5"}', '{"type":"fixed","name":"MD5","namespace":"a.b","size":16}'),
        (
            '{"type":"enum","name":"E","symbols":["A","B"],"default":"A","aliases":["n.F"]}',
            '{"type":"enum","name":"E","symbols":["A","B"],"default":"A","aliases":["n.F"]}',
        ),
        (
            '{"type":"record","name":"n.R","fields":[{"name":"x","type":{"type":"fixed","name":"F","namespace":"","size":1}}]}',
            '{"type":"record","name":"R","namespace":"n","fields":[{"name":"x","type":'
            '{"type":"fixed","name":"F","namespace":"","size":1}}]}',
        ),
        (
            '{"type":"record","name":"R","fields":[{"name":"x","type":"double","default":1e10,"order":"DESCENDING"}]}',
            '{"type":"record","name":"R","fields":[{"name":"x","type":"double","default":1.0E10,"order":"descending"}]}',
        ),
    ],
)
def test_each_kind_of_type_has_its_canonical_text(text: str, canonical: str) -> None:
    assert parse(SchemaType.AVRO, text).canonical == canonical
    assert parse(SchemaType.AVRO, canonical).canonical == canonical


def test_a_recursive_type_refers_to_itself_by_name() -> None:
    text = '{"type":"record","name":"List","fields":[{"name":"next","type":["null","List"]}]}'
    assert parse("AVRO", text).canonical == text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("string", "not JSON"),
        ('"strnig"', "unknown type 'strnig'"),
        ("17", "not an Avro type"),
        ("{}", 'needs "type"'),
        ('{"type":["null","int"]}', 'needs "type"'),
        ('{"type":"record","name":"R"}', 'needs "fields"'),
        ('{"type":"record","fields":[]}', 'needs "name"'),
        ('{"type":"record","name":"R","fields":[{"name":"a"}]}', "field 'a' has no type"),
        ('{"type":"record","name":"R","fields":["a"]}', "not a field"),
        ('{"type":"record","name":"R","fields":[{"type":"int"}]}', "no Avro name"),
        ('{"type":"record","name":"R","fields":[{"name":"a-b","type":"int"}]}', "no Avro name"),
        ('{"type":"record","name":"1R","fields":[]}', "no Avro name"),
        ('{"type":"record","name":"a..R","fields":[]}', "no Avro name"),
        ('{"type":"record","name":"string","fields":[]}', "primitive"),
        ('{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}', "twice"),
        ('{"type":"record","name":"R","fields":[{"name":"a","type":"int","order":"up"}]}', "order"),
        ('{"type":"record","name":"R","aliases":"S","fields":[]}', "aliases"),
        ('{"type":"enum","name":"E"}', 'needs "symbols"'),
        ('{"type":"enum","name":"E","symbols":["A","A"]}', "twice"),
        ('{"type":"enum","name":"E","symbols":["A"],"default":"B"}', "not one of its symbols"),
        ('{"type":"fixed","name":"F"}', 'needs "size"'),
        ('{"type":"fixed","name":"F","size":-1}', 'needs "size"'),
        ('{"type":"array"}', "needs 'items'"),
        ('{"type":"map"}', "needs 'values'"),
        ('["int",["null"]]', "another union"),
        ('["int","int"]', "'int' twice"),
        ('[{"type":"fixed","name":"F","size":1},{"type":"fixed","name":"F","size":1}]', "defined twice"),
        ('{"type":"int","x":NaN}', "not a JSON number"),
        ('{"type":"int","x":"\\ud800"}', "surrogate"),
    ],
)
def test_what_is_no_avro_schema_is_refused_with_a_reason(text: str, complaint: str) -> None:
    with pytest.raises(InvalidSchemaError, match=complaint):
        parse("AVRO", text)


def test_a_refusal_names_the_place() -> None:
    text = '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"array","items":"nothing"}}]}'
    with pytest.raises(InvalidSchemaError, match=r"at /fields/0/type/items"):
        parse("AVRO", text)


@pytest.mark.parametrize(
    ("avro_type", "default"),
    [
        ('"int"', '"1"'),
        ('"int"', "1.5"),
        ('"int"', "2147483648"),
        ('"int"', "true"),
        ('"long"', "9223372036854775808"),
        ('"string"', "null"),
        ('"null"', "0"),
        ('"boolean"', "0"),
        ('"bytes"', '"\\u0100"'),
        ('{"type":"fixed","name":"F","size":2}', '"a"'),
        ('{"type":"enum","name":"E","symbols":["A"]}', '"B"'),
        ('{"type":"array","items":"int"}', '["a"]'),
        ('{"type":"map","values":"int"}', '{"a":"b"}'),
        ('["string","null"]', "null"),
        ('{"type":"record","name":"S","fields":[{"name":"x","type":"int"}]}', "{}"),
    ],
)
def test_a_default_that_does_not_fit_its_type_is_refused_in_new_schemas_only(avro_type: str, default: str) -> None:
    text = f'{{"type":"record","name":"R","fields":[{{"name":"a","type":{avro_type},"default":{default}}}]}}'
    with pytest.raises(InvalidSchemaError, match=r"Invalid default for field R\.a"):
        parse("AVRO", text)
    assert parse("AVRO", text, validate=False).name == "R"


ADDRESS = '{"type":"record","name":"Address","namespace":"club","fields":[{"name":"street","type":"string"}]}'
MEMBER = '{"type":"record","name":"Member","namespace":"club","fields":[{"name":"home","type":"Address"}]}'


def test_a_reference_lends_its_named_types() -> None:
    schema = parse("AVRO", MEMBER, {"club.Address": ADDRESS})
    assert schema.canonical == MEMBER
    assert list(schema.references) == ["club.Address"]
    assert json.loads(schema.render("resolved"))["fields"][0]["type"]["name"] == "Address"
    assert parse("AVRO", schema.render("resolved")).canonical == schema.render("resolved")
    assert schema.render("no such format") == schema.canonical
    assert schema.normalized() == schema


def test_references_may_build_on_one_another_as_texts_or_parsed() -> None:
    fields = '[{"name":"m","type":"club.Member"},{"name":"a","type":"club.Address"}]'
    club = f'{{"type":"record","name":"Club","fields":{fields}}}'
    as_texts = parse("AVRO", club, {"club.Address": ADDRESS, "club.Member": MEMBER})
    address = parse("AVRO", ADDRESS)
    as_parsed = parse("AVRO", club, {"club.Address": address, "club.Member": parse("AVRO", MEMBER, {"x": address})})
    assert as_texts.canonical == as_parsed.canonical == club
    assert as_texts.render("resolved") == as_parsed.render("resolved")


def test_references_that_disagree_or_lack_a_type_are_refused() -> None:
    other = ADDRESS.replace("street", "road")
    with pytest.raises(InvalidSchemaError, match=r"unknown type 'club\.Address'"):
        parse("AVRO", MEMBER)
    with pytest.raises(InvalidSchemaError, match="reference 'a'"):
        parse("AVRO", MEMBER, {"a": "{"})
    with pytest.raises(InvalidSchemaError, match="in different ways"):
        parse("AVRO", MEMBER, {"a": parse("AVRO", ADDRESS), "b": parse("AVRO", other)})


def test_the_name_of_a_schema_is_its_full_name() -> None:
    assert parse("AVRO", ADDRESS).name == "club.Address"
    assert parse("AVRO", '"string"').name is None
