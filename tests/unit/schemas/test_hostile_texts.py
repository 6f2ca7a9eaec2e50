"""Texts of a few kilobytes that would take hours or gigabytes if something in them were walked more than once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.schemas.shared_types import SHARED, json_levels

from moldau.schemas.compatibility import CompatibilityLevel, check
from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.pairs import Effort
from moldau.schemas.schema import parse
from moldau.schemas.values import codec_of

DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("schema_type", SHARED)
def test_a_finding_is_collected_once_however_often_its_type_is_used(schema_type: str) -> None:
    old, new = (parse(schema_type, text) for text in SHARED[schema_type])
    found = check(CompatibilityLevel.FULL_TRANSITIVE, new, [old])
    assert found
    assert len(found) == len(set(found)) < 300
    assert check(CompatibilityLevel.FULL, old, [parse(schema_type, SHARED[schema_type][0])]) == []


@pytest.mark.parametrize("schema_type", SHARED)
def test_every_text_of_a_schema_with_shared_types_stays_as_long_as_the_schema(schema_type: str) -> None:
    schema = parse(schema_type, SHARED[schema_type][0])
    texts = [schema.render(format) for format in (None, "resolved", "serialized", "ignore_extensions")]
    texts += [schema.canonical, schema.normalized().canonical]
    assert max(map(len, texts)) < 20_000
    assert codec_of(schema) is not None


def test_shared_branches_of_combinations_are_compared_once() -> None:
    def levels(leaf: str) -> str:
        definitions: dict[str, Any] = {"L0": {"type": leaf}}
        for level in range(1, 41):
            below = f"#/definitions/L{level - 1}"
            definitions[f"L{level}"] = {
                "type": ["object", "null"],
                "not": {"$ref": below},
                "anyOf": [{"title": "a", "properties": {"x": {"$ref": below}}}, {"items": {"$ref": below}}],
            }
        return json.dumps({"definitions": definitions, "$ref": "#/definitions/L40"})

    assert check(CompatibilityLevel.FULL, parse("JSON", levels("string")), [parse("JSON", levels("integer"))])


def test_a_chain_of_references_is_followed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from moldau.schemas.json_schema.places import Place

    followed, follow = [], Place.target
    monkeypatch.setattr(Place, "target", lambda place: followed.append(1) or follow(place))
    chain = {f"a{n}": {"$ref": f"#/definitions/a{n + 1}"} for n in range(90)} | {"a90": {"type": "string"}}
    properties = {f"p{n}": {"$ref": "#/definitions/a0"} for n in range(200)}
    schema = parse("JSON", json.dumps({"definitions": chain, "properties": properties}))
    assert check(CompatibilityLevel.FULL, schema, [schema]) == []
    assert len(followed) < 2_000, "not 90 for each of the 200 properties"


def test_a_chain_of_references_that_never_ends_is_refused_wherever_it_is_entered() -> None:
    circle = {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}}
    with pytest.raises(InvalidSchemaError, match="leads back to itself"):
        parse("JSON", json.dumps({"definitions": circle}))
    long = {f"a{n}": {"$ref": f"#/definitions/a{n + 1}"} for n in range(150)} | {"a150": {}}
    for names in (long, dict(reversed(long.items()))):
        with pytest.raises(InvalidSchemaError, match="leads back to itself"):
            parse("JSON", json.dumps({"definitions": names}))


@pytest.mark.parametrize(
    "schema",
    [
        {
            "$schema": DRAFT_2020,
            "$defs": {f"a{n}": {"$anchor": f"x{n}", "type": "string"} for n in range(400)},
            "properties": {f"p{n}": {"$ref": f"#x{n}"} for n in range(400)},
        },
        {
            "$id": "http://h/root",
            "definitions": {f"a{n}": {"$id": f"http://h/x{n}", "type": "string"} for n in range(400)},
            "properties": {f"p{n}": {"$ref": f"http://h/x{n}"} for n in range(400)},
        },
    ],
)
def test_anchors_and_ids_are_found_without_searching_the_document_for_each(
    schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from referencing import Resource

    looked_at, anchors = [], Resource.anchors
    monkeypatch.setattr(Resource, "anchors", lambda resource: looked_at.append(1) or anchors(resource))
    parsed = parse("JSON", json.dumps(schema))
    assert check(CompatibilityLevel.FULL, parsed, [parsed]) == []
    assert len(looked_at) < 5_000, "some for each definition, not all of them for each reference"


@pytest.mark.parametrize("text", ['{"$id": 5}', '{"$schema": 1, "$id": {"a": []}}'])
def test_a_document_that_nobody_validated_can_still_be_walked(text: str) -> None:
    schema = parse("JSON", text, validate=False)
    assert check(CompatibilityLevel.BACKWARD, parse("JSON", "{}"), [schema]) == []


def test_findings_count_as_effort_and_are_short() -> None:
    def wide(kind: str) -> str:
        properties = {f"p{n}": {"type": kind} for n in range(300)}
        return json.dumps({"properties": {"x" * 20_000: {"properties": properties}}})

    found = check(CompatibilityLevel.BACKWARD, parse("JSON", wide("string")), [parse("JSON", wide("integer"))])
    assert max(len(finding.message) for finding in found) < 5_000
    effort = Effort(1_000)
    effort.spend_on_text(90_000)
    with pytest.raises(InvalidSchemaError, match="too large or too complex"):
        effort.spend_on_text(90_000)


def test_all_versions_share_one_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.schemas.compatibility.Effort", lambda: Effort(2_000))
    monkeypatch.setattr("moldau.schemas.pairs._MORE_PER_SCHEMA", 10)
    schema = parse("JSON", json_levels("string"))
    assert check(CompatibilityLevel.FULL_TRANSITIVE, schema, [schema]) == []
    with pytest.raises(InvalidSchemaError, match="too large or too complex"):
        check(CompatibilityLevel.FULL_TRANSITIVE, schema, [schema] * 100)


def test_a_pattern_that_stands_for_a_huge_automaton_matches_nothing() -> None:
    huge = "a{1000}" * 200
    old = parse("JSON", json.dumps({"patternProperties": {huge: {"type": "string"}}, "additionalProperties": False}))
    new = parse("JSON", json.dumps({"properties": {"a": {"type": "integer"}}, "additionalProperties": False}))
    assert check(CompatibilityLevel.BACKWARD, new, [old]) == []
    many = {f"{n}{huge}": {"type": "string"} for n in range(40)}
    with pytest.raises(InvalidSchemaError, match="too large or too complex"):
        check(
            CompatibilityLevel.BACKWARD,
            new,
            [parse("JSON", json.dumps({"patternProperties": many, "additionalProperties": False}))],
        )


def test_symbols_of_an_enum_are_looked_up_not_searched() -> None:
    symbols = [f"s{n}" for n in range(20_000)]
    field = {
        "name": "a",
        "type": {"type": "array", "items": {"type": "enum", "name": "E", "symbols": symbols}},
        "default": [symbols[-1]] * 20_000,
    }
    parse("AVRO", json.dumps({"type": "record", "name": "R", "fields": [field]}))


def test_a_hundred_nested_objects_are_a_schema() -> None:
    def nested(leaf: str) -> str:
        schema: dict[str, Any] = {"type": leaf}
        for _ in range(100):
            schema = {"type": "object", "properties": {"a": schema}}
        return json.dumps(schema)

    assert parse("JSON", nested("string")).normalized().canonical
    found = check(CompatibilityLevel.BACKWARD, parse("JSON", nested("string")), [parse("JSON", nested("integer"))])
    assert [finding.error_type for finding in found] == ["TYPE_CHANGED"]
