"""A JSON Schema's text becomes a schema, with its references followed and its draft respected."""

from __future__ import annotations

import json

import pytest

from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.schema import parse

PERSON = """
{ "$schema": "http://json-schema.org/draft-07/schema#", "title": "Person", "type": "object",
  "properties": { "name": {"type": "string"}, "age": {"minimum": 0.5, "type": "number"} } }
"""


def test_canonical_text_is_compact_and_keeps_the_order_of_keys() -> None:
    assert parse("JSON", PERSON).canonical == (
        '{"$schema":"http://json-schema.org/draft-07/schema#","title":"Person","type":"object",'
        '"properties":{"name":{"type":"string"},"age":{"minimum":0.5,"type":"number"}}}'
    )
    assert parse("JSON", parse("JSON", PERSON).canonical) == parse("JSON", PERSON)


def test_normalized_text_has_its_keys_in_order() -> None:
    assert parse("JSON", '{"type":"string","title":"b","x-a":{"d":1,"c":2}}').normalized().canonical == (
        '{"title":"b","type":"string","x-a":{"c":2,"d":1}}'
    )


def test_the_name_of_a_schema_is_its_title() -> None:
    assert parse("JSON", PERSON).name == "Person"
    assert parse("JSON", "{}").name is None
    assert parse("JSON", "true").name is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not JSON"),
        ("17", "an object or a boolean"),
        ('"string"', "an object or a boolean"),
        ('{"type":"strnig"}', "strnig"),
        ('{"properties":{"a":{"type":"x"}}}', r"#/properties/a/type"),
        ('{"minLength":-1}', "minimum of 0"),
        ('{"required":"a"}', "array"),
        ('{"$ref":"#/definitions/a"}', "cannot be resolved"),
        ('{"$ref":"other.json"}', "cannot be resolved"),
        ('{"properties":{"a":{"$ref":"http://127.0.0.1:1/x.json"}}}', "cannot be resolved"),
        ('{"$ref":"#/title","title":"a"}', "not a schema"),
        ('{"$ref":"#"}', "back to itself"),
        (
            '{"$ref":"#/definitions/a","definitions":{"a":{"$ref":"#/definitions/b"},"b":{"$ref":"#/definitions/a"}}}',
            "back",
        ),
        ('{"multipleOf":1e999}', "double"),
        ('{"$schema":7}', "string"),
    ],
)
def test_what_is_no_json_schema_is_refused_with_a_reason(text: str, complaint: str) -> None:
    with pytest.raises(InvalidSchemaError, match=complaint):
        parse("JSON", text)


@pytest.mark.parametrize(
    "draft",
    [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/draft-07/schema",
        "http://nobody.example/knows/this",
    ],
)
def test_each_draft_checks_its_schemas(draft: str) -> None:
    assert parse("JSON", json.dumps({"$schema": draft, "type": "object"})).canonical
    with pytest.raises(InvalidSchemaError):
        parse("JSON", json.dumps({"$schema": draft, "type": "thing"}))


def test_draft_4_is_told_from_later_ones() -> None:
    exclusive = {"type": "number", "maximum": 3, "exclusiveMaximum": True}
    assert parse("JSON", json.dumps({"$schema": "http://json-schema.org/draft-04/schema#", **exclusive}))
    with pytest.raises(InvalidSchemaError):
        parse("JSON", json.dumps(exclusive))


def test_a_reference_is_found_by_name_and_relative_to_the_id() -> None:
    address = '{"type":"object","properties":{"street":{"type":"string"}}}'
    by_name = '{"properties":{"home":{"$ref":"address.json"},"street":{"$ref":"address.json#/properties/street"}}}'
    assert parse("JSON", by_name, {"address.json": address}).canonical == by_name
    by_id = '{"$id":"http://club.example/person.json","properties":{"home":{"$ref":"address.json"}}}'
    assert parse("JSON", by_id, {"address.json": address})
    assert parse("JSON", by_id, {"http://club.example/address.json": address})


def test_references_may_build_on_one_another_even_in_circles() -> None:
    a = '{"properties":{"b":{"$ref":"b.json"}}}'
    b = '{"properties":{"a":{"$ref":"a.json"},"main":{"$ref":"main.json"}}}'
    main = '{"properties":{"a":{"$ref":"a.json"}}}'
    schema = parse("JSON", main, {"b.json": b, "a.json": a})
    assert schema.normalized() == schema
    nested = parse("JSON", main, {"a.json": parse("JSON", a, {"b.json": "{}"})})
    assert list(nested.references) == ["a.json"]


def test_a_reference_must_be_a_json_schema() -> None:
    with pytest.raises(InvalidSchemaError, match="of type AVRO"):
        parse("JSON", "{}", {"a": parse("AVRO", '"string"')})
    with pytest.raises(InvalidSchemaError, match="reference 'a'"):
        parse("JSON", "{}", {"a": "{"})


def test_ids_anchors_and_metaschemas_can_be_referred_to() -> None:
    text = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {
            "a": {"$ref": "#here"},
            "b": {"$ref": "http://inner.example/b"},
            "c": {"$ref": "https://json-schema.org/draft/2020-12/schema"},
            "d": {"$dynamicRef": "#here"},
        },
        "$defs": {"a": {"$anchor": "here", "type": "string"}, "b": {"$id": "http://inner.example/b", "type": "null"}},
    }
    assert parse("JSON", json.dumps(text))


def test_a_property_called_ref_is_a_property() -> None:
    assert parse("JSON", '{"properties":{"$ref":{"type":"string"}},"enum":[{"$ref":"nothing"}]}')
