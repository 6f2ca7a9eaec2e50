"""The seven levels: which versions count, in which direction, and where a check ends."""

from __future__ import annotations

import json

import pytest

from moldau.schemas.compatibility import CompatibilityLevel, UnknownCompatibilityLevelError, check
from moldau.schemas.schema import ParsedSchema, parse


def person(*fields: dict[str, object]) -> ParsedSchema:
    return parse("AVRO", json.dumps({"type": "record", "name": "Person", "fields": list(fields)}))


FIRST, LAST = {"name": "firstname", "type": "string"}, {"name": "lastname", "type": "string"}
AGE = {"name": "age", "type": "int", "default": -1}
HOBBY, HOBBY_DEFAULT = {"name": "hobby", "type": "string"}, {"name": "hobby", "type": "string", "default": ""}
V1 = person(FIRST, LAST, AGE)

TRAINING = [
    ("example 1: drops firstname, adds hobby with default", person(LAST, AGE, HOBBY_DEFAULT), True, False),
    ("example 2: drops age, adds hobby without default", person(FIRST, LAST, HOBBY), False, True),
    ("example 3: drops age, adds hobby with default", person(FIRST, LAST, HOBBY_DEFAULT), True, True),
]


@pytest.mark.parametrize(("v2", "backward", "forward"), [row[1:] for row in TRAINING], ids=[row[0] for row in TRAINING])
def test_the_examples_of_the_training_hold(v2: ParsedSchema, backward: bool, forward: bool) -> None:
    verdicts = {level: not check(level, v2, [V1]) for level in CompatibilityLevel}
    assert verdicts == {
        CompatibilityLevel.NONE: True,
        CompatibilityLevel.BACKWARD: backward,
        CompatibilityLevel.BACKWARD_TRANSITIVE: backward,
        CompatibilityLevel.FORWARD: forward,
        CompatibilityLevel.FORWARD_TRANSITIVE: forward,
        CompatibilityLevel.FULL: backward and forward,
        CompatibilityLevel.FULL_TRANSITIVE: backward and forward,
    }


A, B = {"name": "a", "type": "int"}, {"name": "b", "type": "int"}
A_DEFAULT = {"name": "a", "type": "int", "default": 0}


def test_plain_levels_look_at_the_latest_version_only() -> None:
    oldest, latest, new = person(), person(A_DEFAULT), person(A)
    assert check(CompatibilityLevel.BACKWARD, new, [latest, oldest]) == []
    [finding] = check(CompatibilityLevel.BACKWARD_TRANSITIVE, new, [latest, oldest])
    assert finding.against == 1
    assert check(CompatibilityLevel.FORWARD_TRANSITIVE, oldest, [latest, new])[0].against == 1
    assert check(CompatibilityLevel.FULL_TRANSITIVE, new, [latest, oldest])[0].against == 1


def test_a_check_ends_at_the_first_version_at_odds() -> None:
    found = check(CompatibilityLevel.BACKWARD_TRANSITIVE, person(A, B), [person(A), person()])
    assert [(finding.against, finding.additional_info) for finding in found] == [(0, "b")]


def test_full_reports_both_directions() -> None:
    found = check(CompatibilityLevel.FULL, person(A), [person(B)])
    assert [finding.additional_info for finding in found] == ["a", "b"]


def test_without_previous_versions_anything_goes() -> None:
    for level in CompatibilityLevel:
        assert check(level, V1, []) == []


def test_another_schema_type_is_never_compatible() -> None:
    [finding] = check(CompatibilityLevel.BACKWARD, parse("JSON", "{}"), [V1])
    assert finding.message == "Incompatible because of different schema type"
    assert check(CompatibilityLevel.NONE, parse("JSON", "{}"), [V1]) == []


@pytest.mark.parametrize("level", CompatibilityLevel)
@pytest.mark.parametrize(
    ("schema_type", "text"),
    [
        ("AVRO", V1.canonical),
        ("JSON", '{"type":"object","properties":{"a":{"$ref":"#"}},"additionalProperties":false}'),
        ("PROTOBUF", 'syntax = "proto2"; message M { required M a = 1; oneof o { int32 b = 2; } }'),
    ],
)
def test_every_schema_may_follow_itself(level: CompatibilityLevel, schema_type: str, text: str) -> None:
    schema = parse(schema_type, text)
    assert check(level, schema, [schema, parse(schema_type, text)]) == []


def test_levels_are_known_in_any_case() -> None:
    assert CompatibilityLevel.of("full_transitive") is CompatibilityLevel.FULL_TRANSITIVE
    with pytest.raises(UnknownCompatibilityLevelError, match="backward_transitive, forward"):
        CompatibilityLevel.of("SOMETIMES")
